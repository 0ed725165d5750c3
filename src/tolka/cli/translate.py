"""mt-translate: one translation per line of text."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tolka.cli import common
from tolka.cli.common import DONE, MODEL_HELP, Parser, check_output, is_among, models_of, settings_help, sort_out
from tolka.errors import ConfigError, DataError
from tolka.system.progress import bar, say
from tolka.version import __version__

if TYPE_CHECKING:
    from tolka.cli.translate_formats import Format, Result
    from tolka.cli.translate_input import GivenTranslations, TextsToTranslate
    from tolka.cli.translate_output import Journal
    from tolka.config.translate_schema import TranslateConfig
    from tolka.text.pairs import Pair
    from tolka.translation.batch_decoder import Tick
    from tolka.translation.translator import Translator

_EXAMPLES = """examples:
  echo "I love you." | mt-translate runs/sample
  mt-translate runs/sample news.en -o news.ko search.beam_size=10
  mt-translate runs/sample book.en -o book.ko resume=true    go on where the same command was interrupted
  mt-translate runs/sample news.en output.format=jsonl       with scores of the tokens, and word alignments
  mt-translate runs/sample news.tsv input.column=2           one column of a table
  mt-translate runs/sample --score news.en news.ko           log-probabilities of given translations
  mt-translate runs/a,runs/b,runs/c news.en                  three models together: the mean of their probabilities
  mt-translate runs/sample news.en --attention maps          where it looked: maps/000001.png and .json, and so on
  mt-translate runs/sample news.en alignments=true           each line with its word alignment: ... TAB 0-0 1-2

settings (key=value):
"""


def main() -> None:
    """Run `mt-translate` as a console script."""
    common.main(run)


def run(arguments: Sequence[str]) -> int:
    """Parse the arguments, translate or score, and report on stderr what was unusual."""
    options = _parsed(arguments)
    files, settings = sort_out(options.inputs)
    models = models_of(options.model)

    from tolka.cli.translate_input import check_files

    check_files(files)
    _check_places(options.output, options.attention)

    from tolka.cli.translate_notes import Tally
    from tolka.cli.translate_output import Journal, open_output
    from tolka.config.translate_command import translate_config

    config = translate_config(settings)
    _cross_check(config, options, files)
    texts = _texts(files, config, options.score)
    typed = not files and sys.stdin.isatty()
    if typed:
        say("type a line to translate it; end with Ctrl-D")
    total = texts.count()

    from tolka.translation.opening import open_model
    from tolka.translation.segments import TextError

    title, shown = "scoring" if options.score else "translating", not typed and not _on_screen(options.output)
    others = {"--score": options.score, "--attention": options.attention is not None}
    with open_output(options.output, config, models, others) as out:
        journal = Journal(out, config.decoding.window)
        translator = open_model(
            models, config.search, config.decoding, _needs_attention(config, options.attention), say
        )
        tally = Tally(translator.direction, options.score, journal.tally)
        form = _format(config, translator, options.attention, options.score, journal.done)
        windows = _windows(texts, journal, config.decoding.window, options.output)

        def process(window: "Sequence[Pair]") -> None:
            results = _results(translator, window, options.score, form.scored, progress.update)
            for line in form.lines(results):
                out.write(f"{line}\n".encode())
            out.flush()  # whoever wrote these lines may be waiting
            tally.add(results)

        # The bar begins here, so that its rate, and the time left, are those of translating.
        with bar(title, total, " lines", journal.done, shown=shown) as progress:
            try:
                for window in windows:
                    try:
                        process(window)
                    except TextError as error:
                        process(window[: error.number])
                        raise DataError(f"{texts.place(tally.counts.lines + 1, error.of_prefix)}: {error}") from None
                    journal.record(window, tally.as_dict())
            except DataError:  # a line that cannot be read: those before it are translated
                progress.close()
                form.conclude()
                tally.conclude(is_complete=False)
                raise
    form.conclude()
    texts.conclude()
    tally.conclude()
    return DONE


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of mt-translate."""
    parser = Parser(
        prog="mt-translate",
        description="Translate text line by line: files, or standard input when none is named.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL", help=MODEL_HELP)
    parser.add_argument("inputs", nargs="*", metavar="FILE|key=value", help="texts to translate, and settings")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="OUT", help="write there, all or nothing, not to standard output"
    )
    parser.add_argument(
        "--score",
        action="store_true",
        help="score the second of two files as the translation of the first, line by line: score TAB translation",
    )
    parser.add_argument(
        "--attention",
        type=Path,
        metavar="DIR",
        help="write attention maps there: a picture and a JSON file for each line",
    )
    parser.add_argument("--version", action="version", version=__version__)
    if {"-h", "--help"} & set(arguments):
        parser.epilog = _EXAMPLES + settings_help("translate")
    return parser.parse_intermixed_args(arguments)


def _check_places(output: Path | None, attention: Path | None) -> None:
    """Raise DataError for what cannot be written; create the folder of the attention maps."""
    if output:
        check_output(output)
    if attention:
        if attention.exists() and not attention.is_dir():
            raise DataError(f"{attention} is a file; --attention takes a folder to write to")
        attention.mkdir(parents=True, exist_ok=True)


def _cross_check(config: "TranslateConfig", options: argparse.Namespace, files: Sequence[Path]) -> None:
    """Raise ConfigError for settings and options that do not go together; note what has no effect."""
    output = config.output
    if options.output and is_among(options.output, files):
        say(f"note: {options.output} is replaced by its {'scores' if options.score else 'translation'}")
    if output.resume and options.output is None:
        raise ConfigError("resume=true goes on with a file that was begun: name it with -o")
    if output.resume and options.output.exists() and not options.output.is_file():
        raise ConfigError(
            f"resume=true needs a file that can be read again, and {options.output} is a pipe or a device"
        )
    if output.format == "nbest" and (options.attention or output.alignments):
        asked = "--attention" if options.attention else "output.alignments=true"
        raise ConfigError(f"output.format=nbest has no place for {asked}: choose text, or jsonl, which has alignments")
    if output.format == "text" and config.search.returned > 1 and not options.score:
        say(
            f"note: of {config.search.returned} translations of each line (search.n_best) the best one is written; "
            "output.format=nbest or jsonl writes all"
        )


def _needs_attention(config: "TranslateConfig", attention: Path | None) -> str:
    """Return the setting that reads a model's attention; "" if there is none."""
    if attention:
        return "--attention"
    if config.output.format == "jsonl":
        return "output.format=jsonl"
    return "output.alignments=true" if config.output.alignments else ""


def _format(
    config: "TranslateConfig", translator: "Translator[Any]", folder: Path | None, given: bool, done: int
) -> "Format":
    """Return the format that output.format names.

    folder: for attention maps, or None. given: whether the translations were given. done: lines written already.
    """
    from tolka.cli.translate_formats import NBestLines, TextLines

    name, alignments = config.output.format, config.output.alignments
    if name == "nbest":
        return NBestLines(done)
    if not _needs_attention(config, folder):
        return TextLines(None, alignments=False, given=given)

    from tolka.cli.translate_json import AttentionMaps, JsonLines

    looks = folder is not None or (alignments and name == "text")
    attention = AttentionMaps(translator, folder, done) if looks else None
    return JsonLines(translator, attention) if name == "jsonl" else TextLines(attention, alignments, given)


def _texts(files: Sequence[Path], config: "TranslateConfig", scored: bool) -> "TextsToTranslate | GivenTranslations":
    """Return what is read."""
    from tolka.cli.translate_input import GivenTranslations, TextsToTranslate

    limit = config.decoding.line_limit
    if scored:
        return GivenTranslations(files, config.input, limit)
    texts = TextsToTranslate(files, config.input, limit)
    texts.note_documents()
    return texts


def _windows(
    texts: "TextsToTranslate | GivenTranslations", journal: "Journal", size: int, output: Path | None
) -> "Iterator[list[Pair]]":
    """Yield the lines in groups that are translated at once: full ones, unless somebody may wait for an answer."""
    from tolka.text.windows import full_windows

    if output is None and texts.are_still_written:
        return texts.arriving(size)
    return full_windows(journal.remaining(texts.read()), size)


def _results(
    translator: "Translator[Any]", window: "Sequence[Pair]", given: bool, scored: bool, tick: "Tick"
) -> "list[Result]":
    """Translate a window, or score its translations, which are given then. scored: whether scores are needed."""
    from tolka.cli.translate_formats import Result
    from tolka.translation.request import Request
    from tolka.translation.scoring import score_given

    sources, targets = [pair.source for pair in window], [pair.target for pair in window]
    if given:
        scores = score_given(translator, sources, targets, tick)
        return [Result(source, *each) for source, each in zip(sources, scores, strict=True)]
    prefixes = targets if any(targets) else []
    translations = translator.translate(sources, Request(prefixes=prefixes, scored=scored), tick)
    return [Result(source, translation) for source, translation in zip(sources, translations, strict=True)]


def _on_screen(output: Path | None) -> bool:
    """Return whether the translations are printed where a progress bar would be."""
    return output is None and sys.stdout is not None and sys.stdout.isatty()
