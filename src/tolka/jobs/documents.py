"""Translate documents, whose form stays: the whole work of mt-translate on them."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tolka.documents.base import Document
from tolka.documents.placing import needs_alignment, place
from tolka.documents.text import EDIT, Text
from tolka.errors import ConfigError, DataError
from tolka.jobs.document_plan import Planned
from tolka.jobs.formats import LineResult
from tolka.jobs.notes import UnusualLines
from tolka.jobs.options import TranslateConfig
from tolka.jobs.output import identity_of
from tolka.system.atomic import replace_text, whole_file
from tolka.system.number_format import count_text, json_text
from tolka.system.progress import Say, bar
from tolka.system.resumable import ResumableFile
from tolka.text.direction import Direction, is_named
from tolka.text.languages import installed_identifier
from tolka.text.lines import digest_of
from tolka.text.scripts import is_in_other_script
from tolka.text.windows import full_windows
from tolka.translation.alignment import alignments_of
from tolka.translation.request import Request
from tolka.translation.segments import TextError

if TYPE_CHECKING:
    from tolka.jobs.translation import Job
    from tolka.translation.translator import Translator

_SAMPLE = 2000  # characters by which the language of a document is told
_FEWEST = 100  # characters of a sample whose language is told


@dataclass
class _Report:
    """What became of the texts of a document. left_alone: reason -> number. to_check: for a person to look at."""

    path: Path
    output: Path | None
    translated: int = 0
    reused: int = 0
    left_alone: Counter[str] = field(default_factory=Counter)
    to_check: list[dict[str, Any]] = field(default_factory=list)

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


def translate_documents(job: "Job", planned: Sequence[Planned], config: TranslateConfig, say: Say) -> None:
    """Translate the documents of a job, each whole or not at all.

    say: receives notes. TolkaError, in one line, for what cannot be done: before the first one for a document that is
    broken.
    """
    # All are read before anything is translated, which may take hours.
    samples = {each.path: _sample(each.document) for each in planned if each.document}
    total = sum(count for count, _ in samples.values())

    from tolka.translation.opening import open_model

    translator = open_model(job.models, config.search, config.decoding, "", say)
    for path, (_, sample) in samples.items() if config.input.format == "auto" else ():
        _check_language(path, sample, translator.direction)
    work = _Work(job, config, translator, say)
    reports = []
    with bar("translating", total, " texts", shown=not job.is_on_screen) as progress:
        work.tick = progress.update
        for each in planned:
            if each.document:
                reports.append(work.translate(each, each.document))
            else:
                work.copy(each)
    for line in work.lines(reports):
        say(line)
    if job.report:
        replace_text(job.report, json_text({"documents": [each.values() for each in reports]}, ensure_ascii=False, indent=1))


def _sample(document: Document) -> tuple[int, str]:
    """Return how many texts of a document are to be translated, and their beginning."""
    count, sample = 0, ""
    for text in document.texts():
        if not text.reason:
            count += 1
            sample += f"{text.source} " if len(sample) < _SAMPLE else ""
    return count, sample
