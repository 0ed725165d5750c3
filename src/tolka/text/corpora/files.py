"""Corpora of text files, found from a prefix, or with both sides in one file; the embedded sample."""

import glob
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from itertools import chain
from pathlib import Path

from tolka.errors import ConfigError, DataError, all_of
from tolka.options.settings import setting
from tolka.system.package_data import sample_dir
from tolka.system.surrogates import printable
from tolka.text.corpora.base import CORPORA, Corpus, CorpusConfig, Entry, SetSize
from tolka.text.corpora.sacrebleu_sets import SACREBLEU, sacrebleu_files
from tolka.text.direction import Direction
from tolka.text.lines import (
    ADDRESS,
    COMPRESSIONS,
    near_path,
    refuse_binary,
    refuse_pipe,
    user_path,
    without_compression,
)
from tolka.text.pairs import PairSource, ParallelFiles, Scored
from tolka.text.readers import FORMATS, reader_of
from tolka.text.readers.base import SIDES
from tolka.text.readers.columns import TsvFile
from tolka.text.scripts import plain_code


@CORPORA.register("files")
@dataclass(frozen=True)
class FilesConfig(CorpusConfig):
    """Files PREFIX.<source> and PREFIX.<target>, or files that hold both sides; plain or compressed."""

    name: str = "files"
    """the kind of corpus: files"""
    root: str = setting("", literal=True, any_bytes=True)
    """folder that what follows starts from; empty = the current one"""
    train: list[Entry] = setting(default_factory=list, literal=True, any_bytes=True)
    """prefix (data/train: data/train.en, .de), file with both sides, [[SOURCE,TARGET]]; {text:, source:, target:}; *"""
    valid: list[Entry] = setting(default_factory=list, literal=True, any_bytes=True)
    """the same for the validation text; or what is set aside of train: a share (0.01), a number of pairs, or auto"""
    test: list[Entry] = setting(default_factory=list, literal=True, any_bytes=True)
    """the same for test sets, each scored on its own; sacrebleu:wmt22; or what is set aside of train, as for valid"""
    columns: list[str] = setting(default_factory=list, literal=True)
    """source's and target's columns: names, or numbers from 1; [] = the language codes; of one file: [[FILE,2,4]]"""
    score: str = setting("", literal=True)
    """column of the training text with a score of each pair, or what follows a prefix: data/train.score; '' = none"""
    min_score: float = setting(0.0, needs=("corpus.score", "corpus.score"))
    """training pairs with a lower score are left out, and counted"""

    def find(self) -> Corpus:
        for key in ("train", "valid"):
            if not getattr(self, key):
                raise ConfigError(
                    f"corpus.{key} is missing: give the prefix of two files, as in corpus.{key}=data/{key}, or a file "
                    f"with both sides, as in corpus.{key}=data/{key}.tsv"
                    + ("; or have pairs of the training text set aside: corpus.valid=auto" if key == "valid" else "")
                )
        sizes = {key: size for key in ("valid", "test") if (size := self._size(key))}
        entries = {"train": self.train, "valid": self.valid, "test": self.test} | {key: [] for key in sizes}
        train, valid, tests = all_of(*(partial(self._sources, *each) for each in entries.items()))
        sources = [*chain(*train), *chain(*valid), *chain(*tests)]
        if self.columns and not any(getattr(source, "columns", ()) for source in sources):
            raise ConfigError(
                f"corpus.columns ({', '.join(self.columns)}): no file of corpus.train, valid and test has columns, as "
                "tsv, csv, jsonl and parquet have: leave it out"
            )
        return Corpus(train, list(chain(*valid)), list(chain(*tests)), sizes=sizes)

    def _size(self, key: str) -> SetSize | None:
        """Return the size of a set held out of the training text; None if corpus.<key> names texts."""
        entries = getattr(self, key)
        if len(entries) != 1 or not isinstance(entries[0], str):
            return None
        base = self._folder() / user_path(entries[0])
        # A text that is called 500 or auto is meant where there is one.
        is_text = base.name and (base.is_file() or _side_path(base, self.direction.source))
        return None if is_text else SetSize.of(key, entries)

    def _sources(self, key: str, entries: Sequence[Entry]) -> list[list[PairSource]]:
        """Return the sources of each entry of corpus.<key>."""
        found = [[*self._texts(*self.split_entry(entry), key)] for entry in entries]
        # data/test for data/test.tsv.gz; a prefix stays as it is.
        plain = [without_compression(base).with_suffix("") if reader_of(base) else base for base, _ in chain(*found)]
        for (_, source), name in zip(chain(*found), _names(plain), strict=True):
            source.name = source.name or printable(name)
        return [[source for _, source in texts] for texts in found]

    def _texts(self, entry: str | list[str], direction: Direction, key: str) -> Iterator[tuple[Path, PairSource]]:
        """Yield the texts of an entry, each with the path after which it is called, unless it has a name."""
        if isinstance(entry, str) and entry.startswith(SACREBLEU):
            files = sacrebleu_files(entry, direction, f"corpus.{key}")
            found = [(files[0], self._two_files(*files, key, entry.removeprefix(SACREBLEU).replace("/", "-")))]
        elif isinstance(entry, str):
            bases = self._expanded(entry, direction, key)
            found = [(base, self._source_of(base, direction, self.columns, key)) for base in bases]
        elif len(entry) == 2:
            source, target = (self._folder() / user_path(path) for path in entry)
            found = [(source, self._two_files(source, target, key))]
        elif len(entry) == 3:
            bases = [_existing_file(base, key) for base in self._expanded(entry[0], direction, key)]
            found = [(base, self._source_of(base, direction, entry[1:], key, is_table=True)) for base in bases]
        else:
            raise ConfigError(
                f"corpus.{key} ([{','.join(entry)}]): a list in the list is [SOURCE,TARGET], two files, or "
                "[FILE,COLUMN,COLUMN], a file and its columns of source and target"
            )
        for base, pairs in found:
            pairs.direction = direction
            yield base, pairs

    def _two_files(self, source: Path, target: Path, key: str, name: str = "") -> PairSource:
        if self.score and key == "train":
            raise ConfigError(f"corpus.score ({self.score}) is of a table or of a prefix, not of two files: {source}")
        return _pair_of_files(_existing_file(source, key), _existing_file(target, key), name)

    def _expanded(self, entry: str, direction: Direction, key: str) -> list[Path]:
        """Return the prefixes and files of an entry: itself, or a pattern's matches, sorted by name."""
        if ADDRESS.match(entry):
            raise ConfigError(
                f"corpus.{key} ({entry}) names what is elsewhere, and files are read: download and unpack it first; a "
                "dataset of Hugging Face is named by corpus=hub corpus.path=OWNER/NAME"
            )
        base = self._folder() / user_path(entry)
        if not entry or not base.name:
            raise ConfigError(
                f"corpus.{key} ('{entry}') must be the prefix of two files, as in corpus.{key}=data/{key}, or a file"
            )
        # A name may have commas, stars and brackets in it.
        if base.exists() or _side_path(base, direction.source):
            return [base]
        if "," in entry:
            listed = f"[{entry}], or [[{entry}]] for two files of one text"
            raise ConfigError(f"corpus.{key} ({entry}): a list has brackets: corpus.{key}={listed}")
        if not set(entry) & set("*?["):
            return [base]
        # Only the entry is a pattern: the folder's name may have brackets, too.
        pattern = os.path.join(glob.escape(str(self._folder())), user_path(entry))
        found = _matching(pattern, direction)
        if not found:
            raise DataError(
                f"corpus.{key}: nothing is called {base}: no file with both sides, and none with .{direction.source} "
                f"after that name{_ending_hint(base, direction)}"
            )
        return found

    def _source_of(
        self, base: Path, direction: Direction, columns: list[str], key: str, is_table: bool = False
    ) -> PairSource:
        """Return the text of a prefix, or of a file with both sides. is_table: whether it is said to have columns."""
        # Pairs of held-out sets are never chosen by their score.
        score, has_sides = self.score if key == "train" else "", bool(_side_path(base, direction.source))
        reader = reader_of(base) or (TsvFile if columns and not has_sides else None)
        if base.is_file() and reader:
            # corpus.columns is for those files of several that have columns; a list of this file's own must fit it.
            has_columns = is_table or reader.has_columns
            columns = columns if has_columns else []
            table = reader(base, "", direction, columns)
            if not score:
                return table
            if not has_columns:
                raise ConfigError(f"corpus.score ({score}) names a column, and {base} has none")
            return Scored(table, reader(base, "", direction, [[*columns, *direction][0], score]), self.min_score)
        refuse_pipe(base)
        if base.is_dir() and not has_sides:
            held = [str(each) for each in _matching(os.path.join(glob.escape(str(base)), "*"), direction)]
            advice = f"type corpus.{key}={held[0]}, or another of {', '.join(held[:6])}" if held else "it has no text"
            raise DataError(f"corpus.{key}: {base} is a folder; {advice} of {' and '.join(direction)}")
        hint = _ending_hint(base, direction)
        source, target = (_side_file(base, language, key, hint) for language in direction)
        pairs = _pair_of_files(source, target, "")
        if not score:
            return pairs
        return Scored(pairs, ParallelFiles(source, _side_file(base, score, key, hint), ""), self.min_score)

    def _folder(self) -> Path:
        return user_path(self.root)


@CORPORA.register("sample")
@dataclass(frozen=True)
class SampleConfig(FilesConfig):
    """The English-Korean sample in the package."""

    name: str = "sample"
    """the kind of corpus: sample"""
    root: str = ""
    """folder that holds the sample's files; empty = the one that travels with the package"""
    train: list[Entry] = field(default_factory=lambda: ["train"])
    """prefix of the training files inside the sample's folder, or a list"""
    valid: list[Entry] = field(default_factory=lambda: ["valid"])
    """prefix of the validation files, or a list; or a share of train, a number of its pairs, or auto"""
    test: list[Entry] = field(default_factory=lambda: ["test_fresh", "test_unseen"])
    """fresh sentences, and combinations whose parts were seen only apart: each is scored on its own"""

    def _folder(self) -> Path:
        return user_path(self.root) if self.root else sample_dir()


def _matching(pattern: str, direction: Direction) -> list[Path]:
    """Return the files with both sides and the prefixes that match a pattern, sorted by name."""
    files = {Path(path) for path in glob.glob(pattern) if reader_of(Path(path))}
    endings = [f".{direction.source}{ending}" for ending in _side_endings()]
    return sorted(files | {Path(path.removesuffix(end)) for end in endings for path in glob.glob(pattern + end)})


def _names(bases: Sequence[Path]) -> list[str]:
    """Return short names, with as many folders as tell them apart: new-test for new/test, beside old/test."""
    for parts in range(1, max((len(base.parts) for base in bases), default=0) + 1):
        names = ["-".join(base.parts[-parts:]) for base in bases]
        if len(set(names)) == len(names):
            return names
    return [base.name for base in bases]


def _ending_hint(base: Path, direction: Direction) -> str:
    """Return a hint to leave out the language's ending, if the prefix has one."""
    name = without_compression(base).name
    endings = [f".{language}" for language in direction if name.endswith(f".{language}")]
    return f"; leave out {endings[0]}: a prefix stands for both sides" if endings else ""


def _side_endings() -> list[str]:
    """Return what follows the language in the names of a prefix's files."""
    return [f"{ending}{compression}" for ending in ("", *SIDES) for compression in COMPRESSIONS]


def _side_path(base: Path, language: str) -> Path | None:
    """Return the existing file of a prefix and a language, or else of its plain code, plain before compressed."""
    codes = (language, re.split("[-_]", language)[0], plain_code(language))
    paths = (base.with_name(f"{base.name}.{code}{ending}") for code in codes for ending in _side_endings())
    return next(filter(Path.is_file, paths), None)


def _existing_file(path: Path, key: str) -> Path:
    """Return the path of a file; DataError if there is none."""
    refuse_pipe(path)
    if not path.is_file():
        raise DataError(f"corpus.{key}: there is no file {path}{near_path(path)}")
    return path


def _pair_of_files(source: Path, target: Path, name: str) -> PairSource:
    endings = [without_compression(path).suffix.lower() for path in (source, target)]
    return next((SIDES[ending] for ending in endings if ending in SIDES), ParallelFiles)(source, target, name)


def _side_file(base: Path, language: str, key: str, hint: str) -> Path:
    """Return the file of a prefix and a language; DataError if there is none. hint: for the message."""
    if path := _side_path(base, language):
        return path
    plain, folder = f"{base}.{language}", base.parent
    if not folder.is_dir():
        raise DataError(f"corpus.{key}: there is no folder {folder} (looking for {plain})")
    refuse_pipe(Path(plain))
    # Likely a table without an ending, or the source's file in place of a prefix.
    if base.is_file() and not hint:
        refuse_binary(base)
        columns, both = (shlex.quote(f"corpus.{key}=[[{base},{others}]]") for others in ("1,2", "TARGETS"))
        raise DataError(
            f"corpus.{key}: {base} is one file, and does not end like one with both sides ({', '.join(FORMATS)}). If "
            f"tabs separate its columns, name them: {columns}; if commas do, rename it to .csv; if the targets are in "
            f"another file, name both: {both}"
        )
    names = sorted(path.name for path in folder.iterdir())
    begin_so = [name for name in names if name.startswith(base.name)]
    similar = begin_so[:6] or get_close_matches(Path(plain).name, names, n=6)
    hint = hint or (f"; near it: {', '.join(similar)}" if similar else "")
    if reader_of(base):
        raise DataError(f"corpus.{key}: there is no file {base}{hint}")
    raise DataError(
        f"corpus.{key}: there is no {plain}, plain or as {', '.join(COMPRESSIONS[1:])}{hint}. A prefix stands for two "
        f"files that end in .{language} and the other language's code; a file with both sides ends in "
        f"{', '.join(FORMATS)}"
    )


PRESETS = {"files": FilesConfig(target="de"), "sample": SampleConfig()}
"""What `corpus=` can choose."""
