"""Translate or score files or standard input: the whole work of mt-translate."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tolka.documents.base import Document
from tolka.errors import ConfigError, DataError
from tolka.evaluation.verdict_evidence import USELESS, WEAK
from tolka.jobs.document_plan import planned_documents
from tolka.jobs.documents import translate_documents
from tolka.jobs.formats import AttentionMaps, CheckList, Format, JsonLines, LineResult, NBestLines, TextLines
from tolka.jobs.inputs import Texts, kind_of_ending
from tolka.jobs.job import Job
from tolka.jobs.notes import UnusualLines
from tolka.jobs.options import TranslateConfig
from tolka.jobs.output import Journal, open_output
from tolka.system.progress import Say, bar
from tolka.text.direction import Direction, is_named
from tolka.text.languages import code_of_text
from tolka.text.pairs import Pair
from tolka.text.windows import full_windows
from tolka.translation.request import Request

if TYPE_CHECKING:
    from tolka.translation.batch_decoder import Tick
    from tolka.translation.translator import Translator


def translate_files(job: Job, config: TranslateConfig, say: Say) -> None:
    """Translate or score, window by window. say: receives notes, a line each; those on unusual lines come at the end.

    TolkaError, in one line, for what cannot be done; lines before one that cannot be read are still written.
    """
    job.check(config)
    if documents := planned_documents(job, config):
        translate_documents(job, documents, config, say)
        return
    if config.input.memory:
        raise ConfigError("input.memory stands in for the model in documents, and these are lines: leave it out")
    if (
        job.output
        and (kind := kind_of_ending(job.output, has_column=False))
        and issubclass(kind, Document)
        and kind.is_binary
    ):
        raise DataError(f"{job.output}: lines are written, which are no {job.output.suffix}: name another ending")
    if job.report:
        raise ConfigError("--json reports on documents, and these are lines: output.format=jsonl has a report on each")
    if job.output and job.output.is_dir():
        raise DataError(f"{job.output} is a folder; name a file to write")
    if job.attention:
        job.attention.mkdir(parents=True, exist_ok=True)
    if config.output.format == "text" and config.search.returned > 1 and not job.are_given:
        say(
            f"note: of {config.search.returned} translations of each line (search.n_best) the best one is written; "
            "output.format=nbest or jsonl writes all"
        )
    texts = Texts(job.inputs, config.input, config.decoding.line_limit, job.stdin, job.are_given)
    for note in dict.fromkeys(texts.notes()):
        say(f"note: {note}")
    if job.is_typed:
        say("type a line to translate it; end with Ctrl-D")
    total = texts.count()

    # Imported only now, since it takes seconds with torch: errors in files and settings come without waiting.
    from tolka.translation.opening import open_model
    from tolka.translation.segments import TextError

    options = {"--score": job.are_given, "--attention": job.attention is not None}
    with open_output(job.output, job.stdout, config, job.models, options, say) as out:
        translator = open_model(job.models, config.search, config.decoding, say)
        journal = Journal(out, translator.window)
        replaced_tags = translator.tokenizer.replaced_tags(translator.direction)
        tally = UnusualLines(translator.direction, job.are_given, journal.tally, replaced_tags)
        form = _format(job, config, translator, journal.done)
        size, is_awaited = translator.window, job.output is None and texts.are_still_written
        windows = texts.arriving(size) if is_awaited else full_windows(journal.remaining(texts.read()), size)
        if not journal.done:
            out.write(form.head.encode())

        def process(window: Sequence[Pair]) -> None:
            tally.direction = _named_source(translator, window, say)
            results = _results(translator, window, job.are_given, form.scored, progress.update)
            lines = form.lines(results)
            out.write("".join(f"{line}\n" for line in lines).encode())
            out.flush()  # the program that wrote these lines may be waiting for an answer
            # By the texts alone where a format shows no flags: probabilities would take another pass of the model.
            by_texts = [pair.source for pair in window], [each.translation for each in results]
            tally.add(results, form.flagged or translator.flags(*by_texts))

        # The bar begins here, so that its rate, and the time left, are those of translating.
        title, shown = "scoring" if job.are_given else "translating", not job.is_typed and not job.is_on_screen
        with bar(title, total, " lines", journal.done, shown=shown) as progress:
            try:
                for window in windows:
                    try:
                        process(window)
                    except TextError as error:
                        process(window[: error.number])  # the lines before it
                        raise DataError(f"{texts.place(tally.counts['lines'] + 1, error.of_prefix)}: {error}") from None
                    journal.record(window, tally.counts)  # only now that its lines are written
            except DataError:  # a line that cannot be read: those before it are written, and their notes belong here
                progress.close()
                for note in (*form.last_notes(), *tally.notes(is_complete=False)):
                    say(note)
                raise
        out.write(form.tail.encode())
    for note in (*form.last_notes(), *(f"note: {each}" for each in texts.last_notes()), *tally.notes()):
        say(note)
    judged = translator.verdict or {}
    if tally.counts["lines"] and judged.get("level") in (USELESS, WEAK):
        say(f"note: by the verdict of its training: {judged['sentences'][0]}")


def _named_source(translator: "Translator[Any]", window: Sequence[Pair], say: Say) -> Direction:
    """Return the translator's direction; of a model of many languages, an unnamed source is told by its text."""
    request, codes = translator.request, translator.tokenizer.languages
    named, target = request.direction
    if target in codes and not is_named(named):
        source = code_of_text((pair.source for pair in window), [code for code in codes if code != target])
        if source:
            say(f"note: the source is taken for {source}, by its text; source=CODE names another language")
            translator.request = replace(request, direction=Direction(source, target))
    return translator.direction


def _format(job: Job, config: TranslateConfig, translator: "Translator[Any]", done: int) -> Format:
    """Return the format that output.format names. done: lines that an interrupted job has written."""
    name, alignments = config.output.format, config.output.alignments
    if name == "nbest":
        return NBestLines(done)
    if name in ("table", "html"):
        return CheckList(translator, name == "html", done)
    reads = job.attention is not None or (alignments and name == "text")
    attention = AttentionMaps(translator, job.attention, done) if reads else None
    return JsonLines(translator, attention) if name == "jsonl" else TextLines(attention, alignments, job.are_given)


def _results(
    translator: "Translator[Any]", window: Sequence[Pair], given: bool, scored: bool, tick: "Tick"
) -> list[LineResult]:
    """Translate a window, or score its given translations. scored: whether scores are needed."""
    sources, targets = [pair.source for pair in window], [pair.target for pair in window]
    if given:
        scores = translator.score(zip(sources, targets, strict=True), tick)
        return [LineResult(source, *each) for source, each in zip(sources, scores, strict=True)]
    request = Request(prefixes=targets if any(targets) else (), scored=scored)
    translations = translator.translate(sources, request, tick)
    return [LineResult(source, translation) for source, translation in zip(sources, translations, strict=True)]
