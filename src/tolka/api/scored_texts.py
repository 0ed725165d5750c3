"""The texts that mt-eval reads: references, sources, and translations of files or of models."""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tolka.config.schemas import EvaluateConfig
from tolka.errors import ConfigError, DataError, all_of
from tolka.evaluation.input_notes import NamedText, as_text, count_error
from tolka.metrics.metric import References
from tolka.model_directory.names import models_of
from tolka.model_directory.settings import Folders
from tolka.system.progress import Say, bar
from tolka.text.corpora.sacrebleu_sets import SACREBLEU, sacrebleu_files
from tolka.text.direction import UNKNOWN, Direction, is_named
from tolka.text.lines import LineLimit, read_lines, refuse_pipe, user_path, without_compression
from tolka.text.pairs import FURTHER
from tolka.text.readers import BothSides, reader_of
from tolka.text.readers.base import ColumnSetting
from tolka.text.readers.wmt import WmtFile, segments
from tolka.translation.opening import open_model
from tolka.translation.translator import Translator

STDIN = "-"
_COLUMNS = ColumnSetting(
    "the columns",
    "Call two columns as the model's languages are",
    "or give source and reference as plain text, a sentence a line",
)
_READ_AS_TEXT = (".tsv", ".csv", ".jsonl", ".json")  # of which a line may be a text, or what mt-translate has written


@dataclass(frozen=True)
class ScoredTexts:
    """References of the same lines, at least one, and the sources, if they are given."""

    references: Sequence[NamedText]
    source: NamedText | None

    @property
    def as_references(self) -> References:
        """The references and the sources as scores take them: their lines, without the names of files."""
        return References([lines for _, lines in self.references], self.source[1] if self.source else None)

    def needed_source(self, what: str) -> NamedText:
        """Return the sources; ConfigError where there are none. what: needs them."""
        if self.source is None:
            raise ConfigError(f"source=FILE is missing: {what}")
        return self.source


def read_texts(config: EvaluateConfig, say: Say, models: Folders = ()) -> ScoredTexts:
    """Read the references and the sources that a configuration names.

    say: receives notes. models: tell by their languages which side is which of a source file that has both, as a TMX.
    ConfigError without references; DataError for files that cannot be read, are empty or differ in their lines.
    """
    files, limit = config.files, config.decoding.line_limit
    if reader := _reader_of_both(config):
        return _read_both_sides(reader, config, say, models)
    if not files.reference:
        raise ConfigError("reference=FILE is missing: scores need references")
    if [files.hypothesis, files.source, *files.reference].count(STDIN) > 1:
        raise ConfigError("- is standard input, which can be one of the files alone")
    named = [*(("reference", path) for path in files.reference), *([("source", files.source)] if files.source else [])]

    def read(key: str, path: str) -> NamedText:
        where = str(_sacrebleu_file(key, path, config, models)) if path.startswith(SACREBLEU) else path
        return path, read_text(where, limit, of_sources=key == "source")

    references = all_of(*(partial(read, *each) for each in named))
    source = references.pop() if files.source else None
    for other in (*references[1:], *([source] if source else [])):
        if len(other[1]) != len(references[0][1]):
            raise count_error(other, references[0])
    return ScoredTexts(references, source)


def _sacrebleu_file(key: str, name: str, config: EvaluateConfig, models: Folders) -> Path:
    """Return sacreBLEU's file of a side of a test set. key: source or reference."""
    direction = Direction(config.decoding.source, config.decoding.target)
    if not direction.is_known and models:
        direction = open_model(models, config.search, config.decoding).direction
    if not direction.is_known:
        raise ConfigError(f"{key}={name} does not say its languages: type decoding.source=CODE decoding.target=CODE")
    return sacrebleu_files(name, direction, key)[key == "reference"]


def _reader_of_both(config: EvaluateConfig) -> type[BothSides] | None:
    """Return the reader of a source file that has the references as well, where none are named; else None."""
    files = config.files
    return reader_of(user_path(files.source)) if files.source and not files.reference else None


def _read_both_sides(reader: type[BothSides], config: EvaluateConfig, say: Say, models: Folders) -> ScoredTexts:
    """Read a file that has sources and references."""
    path = user_path(name := config.files.source)
    if not models:
        raise ConfigError(
            f"source={name} has both sides, and only a model's languages tell which is which: name a model, or give "
            "source and reference as plain text"
        )
    refuse_pipe(path)
    direction = open_model(models, config.search, config.decoding).direction
    if not all(map(is_named, direction)):
        raise ConfigError(
            f"source={name} has both sides, and the model knows several languages: name two of them with "
            "decoding.source=CODE decoding.target=CODE"
        )
    pairs_of = reader(path, name, direction, [], limit=config.decoding.line_limit)
    pairs_of.setting = _COLUMNS
    read = list(pairs_of.read())
    pairs = [pair for pair in read if not pair.flaw]
    if flaws := Counter(pair.flaw for pair in read if pair.flaw):
        reasons = ", ".join(f"{count} {flaw}" for flaw, count in flaws.most_common())
        say(f"note: {name}: {flaws.total()} of {len(read)} pairs are left out: {reasons}")
    if not pairs:
        raise DataError(f"{name}: there are no pairs of {direction.source} and {direction.target}")
    source = (f"{name} ({direction.source})", [pair.source for pair in pairs])
    return ScoredTexts([(f"{name} ({direction.target})", [pair.target for pair in pairs])], source)


def read_parallel(
    config: EvaluateConfig, say: Say, command: str, models: Folders
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the lines of the sources and of their one reference, for a command whose model translates the sources.

    ConfigError for other files than these; DataError as `read_texts`.
    """
    files = config.files
    has_reference = len(files.reference) == 1 or _reader_of_both(config)
    if not files.source or not has_reference or files.hypothesis:
        raise ConfigError(f"{command} takes a model, source=FILE and reference=FILE: it translates the sources itself")
    texts = read_texts(config, say, models)
    return texts.needed_source("the model translates it")[1], texts.references[0][1]


def read_text(path: str, limit: LineLimit, *, of_sources: bool = False) -> list[str]:
    """Return the lines of a file, or of standard input for "-"; DataError if it cannot be read or is empty.

    Of a test set of WMT they are its segments. of_sources: those of the sources, where it has both sides.
    """
    if path == STDIN:
        if sys.stdin is None:
            raise DataError("- is standard input, and that is closed: name a file")
        lines = list(read_lines(Path("standard input"), limit=limit, stream=sys.stdin.buffer))
    else:
        file = user_path(path)
        # A pipe that nobody writes to would hang; a shell makes /dev/fd/63 of <(...), to which a process writes.
        if file.parts[:2] != ("/", "dev"):
            refuse_pipe(file)
        ending = without_compression(file).suffix.lower()
        if ending in (".sgm", ".sgml"):
            return [text for _, text in segments(file, limit)]
        if ending == ".xml":
            read = WmtFile(file, path, UNKNOWN, (), limit).read()
            pairs = [pair for pair in read if not pair.flaw.startswith(FURTHER)]
            if broken := next((pair for pair in pairs if pair.flaw), None):
                raise DataError(f"{broken.source}: {broken.flaw}")
            return [pair.source if of_sources else pair.target for pair in pairs]
        if reader_of(file) and ending not in _READ_AS_TEXT:
            raise DataError(
                f"{path} has both sides, and no text a line: give it as source= of a model, without reference="
            )
        lines = list(read_lines(file, limit=limit))
    if not lines:
        raise DataError(f"{path}: the file is empty")
    return lines


def is_model(system: str) -> bool:
    """Return whether a system is one of models, and no file of translations."""
    path = user_path(system)
    # A file may have a comma in its name, and what is neither is told as a file is.
    return path.is_dir() or (not path.exists() and (system.startswith("hub:") or "," in system))


def translations_of(system: str, texts: ScoredTexts, config: EvaluateConfig, say: Say) -> tuple[NamedText, str, str]:
    """Return the translations of a system, their language ("" if unknown) and a note on them.

    system: a file of translations, or what stands for models in mt-translate, which then translate the sources. say:
    receives notes. DataError where it is neither.
    """
    if not is_model(system):
        text, note = as_text((system, read_text(system, config.decoding.line_limit)))
        return text, config.files.language, note
    _, lines = texts.needed_source(f"{system} is a model, which translates it")
    translator: Translator[Any] = open_model(models_of(system), config.search, config.decoding, say=say)
    with bar(f"translating by {system}", len(lines), " lines") as progress:
        translations = system, translator(lines, tick=progress.update)
    return translations, config.files.language or translator.direction.target, ""
