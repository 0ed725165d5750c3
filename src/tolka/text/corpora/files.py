"""Pairs of text files, found from a prefix; and the embedded sample, which is such files."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tolka.errors import ConfigError, DataError
from tolka.resources import sample_dir
from tolka.text.corpus import CORPORA, Corpus, CorpusConfig, PairSource, ParallelFiles
from tolka.text.lines import user_path


@CORPORA.register("files")
@dataclass(frozen=True)
class FilesConfig(CorpusConfig):
    """Files PREFIX.<source> and PREFIX.<target>, plain or gzip."""

    name: str = "files"
    """the kind of corpus: files"""
    root: str = ""
    """folder that relative prefixes start from; empty = the current one"""
    train: list[str] = field(default_factory=list)
    """prefix of the training files, or a list: data/train stands for data/train.en and data/train.de"""
    valid: list[str] = field(default_factory=list)
    """prefix of the validation files, or a list"""
    test: list[str] = field(default_factory=list)
    """prefix of a test set, or a list: each is scored on its own"""

    def open(self) -> Corpus:
        """See CorpusConfig.open."""
        for key in ("train", "valid"):
            if not getattr(self, key):
                raise ConfigError(
                    f"corpus.{key} is missing: give the prefix of two files, as in corpus.{key}=data/{key}"
                )
        return Corpus(self._sources("train"), self._sources("valid"), self._sources("test"))

    def _sources(self, key: str) -> list[PairSource]:
        bases = [self._base(prefix, key) for prefix in getattr(self, key)]
        return [self._find(base, name, key) for base, name in zip(bases, _names(bases), strict=True)]

    def _base(self, prefix: str, key: str) -> Path:
        base = self._folder() / user_path(prefix)
        if not prefix or not base.name:
            raise ConfigError(
                f"corpus.{key} ('{prefix}') must be the prefix of two files, as in corpus.{key}=data/{key}"
            )
        return base

    def _find(self, base: Path, name: str, key: str) -> ParallelFiles:
        source, target = (_existing(base, language, key) for language in (self.source, self.target))
        return ParallelFiles(source, target, name)

    def _folder(self) -> Path:
        return user_path(self.root)


@CORPORA.register("sample")
@dataclass(frozen=True)
class SampleConfig(FilesConfig):
    """The English-Korean sample that travels with the package."""

    name: str = "sample"
    """the kind of corpus: sample"""
    root: str = ""
    """folder that holds the sample's files; empty = the one that travels with the package"""
    train: list[str] = field(default_factory=lambda: ["train"])
    """prefix of the training files inside the sample's folder, or a list"""
    valid: list[str] = field(default_factory=lambda: ["valid"])
    """prefix of the validation files, or a list"""
    test: list[str] = field(default_factory=lambda: ["test_fresh", "test_unseen"])
    """fresh sentences, and combinations whose parts were seen only apart: each is scored on its own"""

    def _folder(self) -> Path:
        return user_path(self.root) if self.root else sample_dir()


def _names(bases: Sequence[Path]) -> list[str]:
    """Short names, with as many of the folders as tell them apart: new/test and old/test are new-test and old-test."""
    for parts in range(1, max((len(base.parts) for base in bases), default=0) + 1):
        names = ["-".join(base.parts[-parts:]) for base in bases]
        if len(set(names)) == len(names):
            return names
    return [base.name for base in bases]


def _existing(base: Path, language: str, key: str) -> Path:
    plain = base.with_name(f"{base.name}.{language}")
    packed = base.with_name(f"{plain.name}.gz")
    for path in (plain, packed):
        if path.is_file():
            return path
    folder = base.parent
    if not folder.is_dir():
        raise DataError(f"corpus.{key}: there is no folder {folder} (looking for {plain})")
    near = sorted(p.name for p in folder.iterdir() if p.name.startswith(base.name[:3]))[:6]
    hint = f"; near it: {', '.join(near)}" if near else ""
    raise DataError(
        f"corpus.{key}: neither {plain} nor {packed.name} exists{hint}. "
        f"A prefix stands for two files that end in .{language} and the other language's code"
    )
