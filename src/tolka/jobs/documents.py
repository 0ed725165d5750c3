"""Translate documents, whose form stays: the whole work of mt-translate on them."""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tolka.documents.base import Document
from tolka.documents.text import EDIT, Text
from tolka.errors import DataError
from tolka.jobs.document_plan import Planned
from tolka.jobs.document_texts import Outcome, TextTranslation, read_memory
from tolka.jobs.job import Job
from tolka.jobs.notes import UnusualLines
from tolka.jobs.options import TranslateConfig
from tolka.jobs.output import identity_of, written_whole
from tolka.system.atomic import whole_file
from tolka.system.number_format import count_text, json_text
from tolka.system.progress import Say, bar
from tolka.system.resumable import ResumableFile
from tolka.text.direction import Direction, is_named
from tolka.text.languages import installed_identifier
from tolka.text.lines import digest_of
from tolka.text.scripts import is_in_other_script, language_tag

if TYPE_CHECKING:
    from tolka.translation.batch_decoder import Tick
    from tolka.translation.translator import Translator

_SAMPLE = 2000  # characters by which the language of a document is told
_FEWEST = 100  # characters of a sample whose language is told


@dataclass
class DocumentReport:
    """What became of the texts of a document. left_alone: reason -> number. to_check: for a person to look at."""

    path: Path
    output: Path | None
    translated: int = 0
    reused: int = 0
    left_alone: Counter[str] = field(default_factory=Counter)
    to_check: list[dict[str, Any]] = field(default_factory=list)

    def add(self, texts: Sequence[Text], outcomes: Sequence[Outcome]) -> None:
        """Add texts, and what became of those that were to be translated, in order, which is written now."""
        remaining = iter(outcomes)
        for text in texts:
            if text.reason:
                if text.reason != EDIT:
                    self.left_alone[text.reason] += 1
                continue
            how, text.written, translation, why = next(remaining)
            self.translated += how == "translated"
            self.reused += how == "reused"
            if why:
                values = {"where": text.where, "why": why, "source": text.source, "translation": translation}
                self.to_check.append(values)

    def line(self) -> str:
        """Return the report in one line."""
        total = self.translated + self.reused + self.left_alone.total()
        reasons = ", ".join(f"{reason} {count}" for reason, count in self.left_alone.most_common())
        parts = [f"{self.translated} translated", f"{self.reused} from the memory" if self.reused else ""]
        parts.append(f"{self.left_alone.total()} left alone ({reasons})" if reasons else "")
        return f"{self.output or self.path}: {count_text(total, 'text')}: {', '.join(filter(None, parts))}"

    def values(self) -> dict[str, Any]:
        """Return plain values for a JSON file."""
        return {
            "input": str(self.path),
            "output": self.output and str(self.output),
            "translated": self.translated,
            "reused": self.reused,
            "left_alone": dict(self.left_alone),
            "check": self.to_check,
        }


def translate_documents(job: Job, planned: Sequence[Planned], config: TranslateConfig, say: Say) -> None:
    """Translate the documents of a job, each whole or not at all.

    say: receives notes. TolkaError, in one line, for what cannot be done: before the first one for a document that is
    broken.
    """
    # All are read before anything is translated, which may take hours.
    samples = {each.path: _sample(each.open()) for each in planned if each.open}
    total = sum(count for count, _ in samples.values())

    from tolka.translation.opening import open_model

    translator = open_model(job.models, config.search, config.decoding, say)
    for path, (_, sample) in samples.items() if config.input.format == "auto" else ():
        _check_language(path, sample, translator.direction)
    work = _Work(job, config, translator, say)
    # A job on several documents that is resumed goes on behind those that are finished.
    outputs = {each.output: each.path for each in planned if config.output.resume and len(planned) > 1}
    finished = {
        out for out, path in outputs.items() if out and out.exists() and out.stat().st_mtime >= path.stat().st_mtime
    }
    reports, copied = list[DocumentReport](), 0
    with bar("translating", total, " texts", shown=not job.is_on_screen) as progress:
        work.tick = progress.update
        for each in planned:
            if each.output in finished:
                progress.update(samples[each.path][0] if each.open else 0)
            elif each.open:
                reports.append(work.translate(each, each.open()))
            else:
                assert each.output, "only a folder has files that are copied"
                each.output.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(each.path, each.output)
                copied += 1
    if finished:
        say(f"note: {count_text(len(finished), 'file')} in {job.output} stay, as they are newer than their originals")
    if copied:
        say(f"note: {count_text(copied, 'file')} of other kinds: copied as they are")
    for line in (*map(DocumentReport.line, reports), *work.tally.notes()):
        say(line)
    if job.report:
        values = {"documents": [each.values() for each in reports]}
        with whole_file(job.report) as stream:
            stream.write(json_text(values, ensure_ascii=False, indent=1).encode() + b"\n")


def _sample(document: Document) -> tuple[int, str]:
    """Return how many texts of a document are to be translated, and their beginning."""
    count, sample = 0, ""
    for text in document.texts():
        if not text.reason:
            count += 1
            sample += f"{text.source} " if len(sample) < _SAMPLE else ""
    return count, sample


def _check_language(path: Path, sample: str, direction: Direction) -> None:
    """Raise DataError for a text that is surely in another language than that from which the model translates."""
    source, identifier = direction.source, installed_identifier()
    if len(sample) < _FEWEST or not is_named(source):
        return
    is_other = is_in_other_script(sample, source) or (
        identifier is not None and identifier.is_other(identifier.likelihoods(sample), source)
    )
    if is_other:
        raise DataError(
            f"{path}: its text is not in {source}, from which the model translates ({direction}); to translate it all "
            "the same, name its format with input.format"
        )


def _windows(texts: Iterable[Text], size: int) -> Iterator[list[Text]]:
    """Yield lists of texts of which `size` are to be translated, or fewer in the last one."""
    window, count = list[Text](), 0
    for text in texts:
        window.append(text)
        count += not text.reason
        if count == size:
            yield window
            window, count = [], 0
    if window:
        yield window


def written(
    document: Document,
    direction: Direction,
    size: int,
    outcomes: Callable[[int, Sequence[Text]], Sequence[Outcome]],
    report: DocumentReport,
) -> Iterator[bytes]:
    """Yield the parts of a document as it is written translated, and add what became of its texts to the report.

    size: of windows, in texts. outcomes: translates the texts of a window, of which it receives the number, from 0.
    """
    document.direction = Direction(*map(language_tag, direction))
    for number, window in enumerate(_windows(document.texts(), size)):
        report.add(window, outcomes(number, [text for text in window if not text.reason]))
        yield from map(document.write, window)
    yield document.end()


class _Work:
    """Translates one document after the other with one model.

    tick: receives each batch's share of the texts. tally: counts of what was unusual in them.
    """

    def __init__(self, job: Job, config: TranslateConfig, translator: "Translator[Any]", say: Say) -> None:
        self._job, self._config, self._translator, self._say = job, config, translator, say
        memory = read_memory(config, translator.direction)
        self.tally = UnusualLines(translator.direction, unit="text", lister=str(job.report or "--json FILE"))
        self._texts = TextTranslation(translator, memory, self.tally)
        self.tick: Tick = lambda share: None

    @cached_property
    def _identity(self) -> dict[str, Any]:
        """What a resumed job must have in common with the interrupted one: for it, the whole model is read once."""
        return identity_of(self._config, self._job.models, {})

    def translate(self, planned: Planned, document: Document) -> DocumentReport:
        """Translate a document; what was written of it before is not translated again if the job is resumed."""
        report = DocumentReport(planned.path, planned.output)
        if planned.output:
            planned.output.parent.mkdir(parents=True, exist_ok=True)
        with self._kept(planned) as kept, written_whole(planned.output, self._job.stdout) as out:
            done = [json.loads(line) for line in kept.path.read_bytes().splitlines()] if kept else []
            if kept and done:
                self.tally.counts.update(kept.state["tally"])
                self._say(f"resuming {planned.output} after {count_text(sum(map(len, done)), 'text')}")

            def outcomes(number: int, texts: Sequence[Text]) -> list[Outcome]:
                if number < len(done):
                    self.tick(len(texts))
                    return [Outcome(*values) for values in done[number]]
                found = self._texts.outcomes(texts, self.tick)
                if kept:
                    kept.write(json_text(found).encode() + b"\n")
                    kept.record({"tally": dict(self.tally.counts)})
                return found

            translator = self._translator
            out.writelines(written(document, translator.direction, translator.window, outcomes, report))
        for note in document.notes():
            self._say(f"note: {planned.path}: {note}")
        return report

    @contextmanager
    def _kept(self, planned: Planned) -> Iterator[ResumableFile | None]:
        """Open what is kept of an interrupted job: a line for each window of texts, until the document is written."""
        if not (self._config.output.resume and planned.output):
            yield None
            return
        identity = {**self._identity, "the document": digest_of(planned.path)}
        file = ResumableFile(planned.output.resolve(), identity)
        try:
            yield file
            file.discard()
        finally:
            if file.state:
                self._say(f"note: what is translated is kept in {file.path}; the same command continues there")
            file.close()
