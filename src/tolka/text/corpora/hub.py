"""Data sets of the Hugging Face Hub, or a local folder of the same shape, through the `datasets` library."""

import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tolka.errors import ConfigError, DataError
from tolka.registry import did_you_mean
from tolka.text.corpora.files import FilesConfig
from tolka.text.corpus import CORPORA, Corpus, CorpusConfig, Pair, PairSource
from tolka.text.lines import user_path

_SECONDS_TO_REACH_THE_HUB = 3.0


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

    def find(self) -> Corpus:
        """See CorpusConfig.find; downloads the data set unless it is in the cache, or `root` holds it."""
        if self.root:
            return FilesConfig(
                source=self.source,
                target=self.target,
                root=self.root,
                train=self.root_train,
                valid=self.root_valid,
                test=self.root_test,
            ).find()
        if not self.path:
            raise ConfigError("corpus.path is missing: give a data set, as in corpus.path=OWNER/NAME")
        return Corpus(
            [[split] for split in self._splits(self.train)], self._splits(self.valid), self._splits(self.test)
        )

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
            first = next((row["translation"] for row in self._rows if row["translation"]), dict.fromkeys(wanted))
            if not isinstance(first, dict):
                raise DataError(
                    f"{self._config.path} ({self.name}): 'translation' holds {first!r}, not a text for each language"
                )
            names = list(first)
        for language in wanted:
            if language not in names:
                raise DataError(
                    f"{self._config.path} ({self.name}) has no column '{language}'.{did_you_mean(language, names)}"
                )

    def read(self) -> Iterator[Pair]:
        """See PairSource.read. Line feeds inside a row become blanks: a sentence is one line."""
        for number, row in enumerate(self._rows):
            cells = (row["translation"] or {}) if self._nested else row
            texts = [cells.get(self._config.source), cells.get(self._config.target)]
            for text in texts:
                if not isinstance(text, str | None):
                    raise DataError(f"{self._config.path} ({self.name}), row {number}: {text!r} is no text")
            yield Pair(*((text or "").replace("\n", " ") for text in texts))

    def fingerprint(self) -> str:
        """See PairSource.fingerprint."""
        return f"{self._rows._fingerprint}:{self._config.source}:{self._config.target}"

    def count(self) -> int:
        """See PairSource.count."""
        return len(self._rows)


def _load(config: HubConfig, split: str) -> Any:
    """The split as a `datasets.Dataset`; every way to fail becomes one line."""
    import datasets

    datasets.disable_progress_bars()
    folder = user_path(config.path)
    try:
        if (folder / "dataset_dict.json").is_file():  # written by DatasetDict.save_to_disk
            return datasets.load_from_disk(str(folder))[split]
        if not folder.exists():
            _spare_retries()
        name = str(folder) if folder.exists() else config.path
        return datasets.load_dataset(name, config.subset or None, split=split, revision=config.revision or None)
    except Exception as error:  # the library raises dozens of kinds, of its own and of its dependencies
        reason = " ".join(str(error).split())[:200]
        raise DataError(
            f"corpus.path '{config.path}' (split {split}) could not be loaded: {type(error).__name__}: {reason}. "
            "Without a network, give a local folder, or text files with corpus=files"
        ) from None


def _spare_retries() -> None:
    """Put the libraries into their offline mode when the Hub cannot be reached: they would try again for half a minute.

    What is in their cache is still found.
    """
    import datasets
    import huggingface_hub

    endpoint = huggingface_hub.constants.ENDPOINT
    try:
        urllib.request.urlopen(endpoint, timeout=_SECONDS_TO_REACH_THE_HUB).close()
    except urllib.error.HTTPError:
        pass  # an answer, if not a friendly one: the libraries' own message will say more
    except OSError:
        huggingface_hub.constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
