"""Data sets of the Hugging Face Hub, or a local folder of the same shape, through the `datasets` library."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tolka.errors import ConfigError, DataError
from tolka.registry import did_you_mean
from tolka.text.corpora.files import FilesConfig
from tolka.text.corpus import CORPORA, Corpus, CorpusConfig, Pair, PairSource


@CORPORA.register("hub")
@dataclass(frozen=True)
class HubConfig(CorpusConfig):
    """A data set by name: with a `translation` column, or one column per language code."""

    name: str = "hub"
    """the kind of corpus: hub"""
    path: str = ""
    """the data set: OWNER/NAME on the Hub, or a local folder of the same shape"""
    subset: str = ""
    """the data set's configuration, where it has several (de-en)"""
    revision: str = ""
    """commit or tag of the data set; empty = the newest"""
    train: list[str] = field(default_factory=lambda: ["train"])
    """name of the training split, or a list"""
    valid: list[str] = field(default_factory=lambda: ["validation"])
    """name of the validation split, or a list"""
    test: list[str] = field(default_factory=lambda: ["test"])
    """name of a test split, or a list: each is scored on its own"""
    root: str = ""
    """folder that holds the same data as text files; when given, nothing is downloaded"""
    root_train: list[str] = field(default_factory=lambda: ["train"])
    """prefix of the training files in that folder, or a list"""
    root_valid: list[str] = field(default_factory=lambda: ["valid"])
    """prefix of the validation files in that folder, or a list"""
    root_test: list[str] = field(default_factory=lambda: ["test"])
    """prefix of a test set in that folder, or a list"""

    def open(self) -> Corpus:
        """See CorpusConfig.open; downloads the data set unless it is in the cache, or `root` holds it."""
        if self.root:
            return FilesConfig(
                source=self.source,
                target=self.target,
                root=self.root,
                train=self.root_train,
                valid=self.root_valid,
                test=self.root_test,
            ).open()
        if not self.path:
            raise ConfigError("corpus.path is missing: give a data set, as in corpus.path=OWNER/NAME")
        return Corpus(self._splits(self.train), self._splits(self.valid), self._splits(self.test))

    def _splits(self, names: list[str]) -> list[PairSource]:
        return [HubSplit(self, name) for name in names]


class HubSplit(PairSource):
    """One split of a data set."""

    def __init__(self, config: HubConfig, split: str) -> None:
        self.name = split
        self._config = config
        self._rows = _load(config, split)
        self._columns(self._rows.column_names)

    def _columns(self, names: list[str]) -> None:
        """DataError unless both languages can be found."""
        wanted = (self._config.source, self._config.target)
        self._nested = "translation" in names
        if self._nested:
            first = self._rows[0]["translation"] if len(self._rows) else dict.fromkeys(wanted)
            names = list(first)
        for language in wanted:
            if language not in names:
                raise DataError(
                    f"{self._config.path} ({self.name}) has no column '{language}'.{did_you_mean(language, names)}"
                )

    def read(self) -> Iterator[Pair]:
        """See PairSource.read. Line feeds inside a row become blanks: a sentence is one line."""
        for number, row in enumerate(self._rows):
            cells = row["translation"] if self._nested else row
            texts = [cells[self._config.source], cells[self._config.target]]
            for text in texts:
                if not isinstance(text, str | None):
                    raise DataError(f"{self._config.path} ({self.name}), row {number}: {text!r} is no text")
            yield Pair(*((text or "").replace("\n", " ") for text in texts))

    def fingerprint(self) -> str:
        """See PairSource.fingerprint."""
        return str(self._rows._fingerprint)

    def count(self) -> int:
        """See PairSource.count."""
        return len(self._rows)


def _load(config: HubConfig, split: str) -> Any:
    """The split as a `datasets.Dataset`; every way to fail becomes one line."""
    # The library would try again for a minute without a network; one failed request is answer enough.
    os.environ.setdefault("HF_HUB_DOWNLOAD_TIMEOUT", "10")
    import datasets

    datasets.disable_progress_bars()
    try:
        return datasets.load_dataset(
            _local_or_name(config.path), config.subset or None, split=split, revision=config.revision or None
        )
    except Exception as error:  # the library raises dozens of kinds, of its own and of its dependencies
        reason = " ".join(str(error).split())[:200]
        raise DataError(
            f"corpus.path '{config.path}' (split {split}) could not be loaded: {type(error).__name__}: {reason}. "
            "Without a network, give a local folder, or text files with corpus=files"
        ) from None


def _local_or_name(path: str) -> str:
    folder = Path(path).expanduser()
    return str(folder) if folder.exists() else path
