"""Data sets of the Hugging Face Hub, or a local folder of the same shape, through the `datasets` library."""

import copy
import hashlib
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from tolka.errors import ConfigError, DataError, reason_of
from tolka.options.checks import at_least
from tolka.options.settings import setting
from tolka.text.corpora.base import CORPORA, Corpus, CorpusConfig, Entry, SetSize, as_typed
from tolka.text.corpora.files import FilesConfig
from tolka.text.direction import Direction
from tolka.text.lines import LINE_LIMIT, user_path
from tolka.text.pairs import Pair, PairSource, PairStream
from tolka.text.readers.base import check_columns, texts_of

_FINGERPRINT_PAIRS = 100  # pairs of a stream that its fingerprint depends on
_HUB_TIMEOUT_SECONDS = 3.0


@CORPORA.register("hub")
@dataclass(frozen=True)
class HubConfig(CorpusConfig):
    """A data set by name, with a `translation` column or one column per language code."""

    name: str = "hub"
    """the kind of corpus: hub"""
    path: str = setting("", literal=True)
    """the data set: OWNER/NAME on the Hub, or a local folder of the same shape"""
    subset: str = setting("", literal=True)
    """the data set's configuration, where it has several (de-en)"""
    revision: str = setting("", literal=True)
    """commit or tag of the data set; empty = the newest"""
    train: list[Entry] = setting(default_factory=lambda: ["train"], literal=True, any_bytes=True)
    """name of the training split, or a list"""
    valid: list[Entry] = setting(default_factory=lambda: ["validation"], literal=True, any_bytes=True)
    """name of the validation split, or a list; or what is set aside of train: a share (0.01), a number, or auto"""
    test: list[Entry] = setting(default_factory=lambda: ["test"], literal=True, any_bytes=True)
    """name of a test split, or a list, each scored on its own; or what is set aside of train, as for valid"""
    root: str = setting("", literal=True, any_bytes=True)
    """folder that holds the same data as text files, named as the splits are; when given, nothing is downloaded"""
    streaming: bool = False
    """read the training split as a stream, again from the start when it ends, instead of preparing it first"""
    buffer: int = setting(100_000, needs=("corpus.streaming", "corpus.streaming=true"))
    """pairs of a stream that are read, shuffled and batched together; the tokenizer learns from the first ones"""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, "corpus", 1, "buffer")
        if self.streaming and not self.path:
            raise ConfigError("corpus.streaming=true reads a data set: give one, as in corpus.path=OWNER/NAME")
        is_mixed = self.weights or self.temperature != 1
        if self.streaming and (len(self.train) != 1 or self.is_of_several_directions or is_mixed):
            raise ConfigError(
                f"corpus.train ({', '.join(map(as_typed, self.train))}): a stream is of one split, in one direction, "
                "without weights and temperature"
            )
        for key in ("valid", "test") if self.streaming else ():
            if SetSize.of(key, getattr(self, key)):
                raise ConfigError(
                    f"corpus.{key} ({getattr(self, key)[0]}): of a stream, whose end is not known, nothing can be set "
                    "aside; name a split, or leave out corpus.streaming"
                )

    def find(self) -> Corpus:
        """Open the data set: from `root`, from the cache, or downloaded."""
        if self.streaming:
            stream = HubStream(self)
            # What the tokenizer learns from.
            head = HubSplit(self, stream.name, stream.direction, self.buffer)
            held_out = self._files() if self.root else Corpus([], self._opened(self.valid), self._opened(self.test))
            return Corpus([[head]], held_out.valid, held_out.tests, stream, self.buffer)
        if self.root:
            return self._files()
        if not self.path:
            raise ConfigError("corpus.path is missing: give a data set, as in corpus.path=OWNER/NAME")
        sizes = {key: size for key in ("valid", "test") if (size := SetSize.of(key, getattr(self, key)))}
        train = [[split] for split in self._opened(self.train)]
        valid, test = (self._opened(getattr(self, key)) if key not in sizes else [] for key in ("valid", "test"))
        return Corpus(train, valid, test, sizes=sizes)

    def _files(self) -> Corpus:
        # FilesConfig wants a training text: of a stream, only the held-out sets are in files.
        return FilesConfig(
            source=self.source,
            target=self.target,
            root=self.root,
            train=self.train if not self.streaming else self.valid,
            valid=self.valid,
            test=self.test,
        ).find()

    def _opened(self, entries: Sequence[Entry]) -> list[PairSource]:
        return [HubSplit(self, str(split), direction) for split, direction in map(self.split_entry, entries)]


class HubSplit(PairSource):
    """One split of a data set, streamed or not, read from the first row to the last, or the first rows of one."""

    def __init__(self, config: HubConfig, split: str, direction: Direction, most: int | None = None) -> None:
        """most: number of rows to read, if not all. DataError for what cannot be loaded, or lacks a column."""
        self.name, self.direction, self.config, self._most = split, direction, config, most
        self.rows = _load(config, split)
        # A stream may not know its columns before a row is read.
        names = self.rows.column_names or list(next(iter(self.rows), {}))
        self._nested = "translation" in names
        if self._nested:
            # The first rows may have no translation at all.
            cells = next((row["translation"] for row in self.rows if row["translation"]), None)
            names = list(cells if isinstance(cells, dict) else direction)
        check_columns(direction, names, f"{config.path} ({split})", "Columns are named after the languages")

    def read(self) -> Iterator[Pair]:
        """Yield a pair per row. Line feeds inside a row become spaces: a sentence is one line."""
        data, number = f"{self.config.path} ({self.name})", -1
        try:
            for number, row in enumerate(islice(self.rows, self._most)):
                cells = row["translation"] if self._nested else row
                yield Pair(*texts_of(cells, self.direction, f"{data}, row {number}", LINE_LIMIT))
        except DataError:
            raise
        except Exception as error:  # as in _load, dozens of kinds
            raise DataError(f"{data}, after row {number + 1}: {type(error).__name__}: {reason_of(error)}") from None

    def fingerprint(self) -> str:
        if not self.config.streaming:
            return ":".join((self.rows._fingerprint, *self.direction))
        # The library has no fingerprint of a stream, and to read all of its beginning would take too long.
        config = self.config
        named = [config.path, config.subset, config.revision, self.name, *self.direction, str(self._most)]
        pairs = islice(self.read(), self._most and _FINGERPRINT_PAIRS)
        return hashlib.sha256("\0".join([*named, *(f"{p.source}\n{p.target}" for p in pairs)]).encode()).hexdigest()

    def count(self) -> int:
        """Return the number of pairs; of a stream the maximum, or 0 if nobody can say."""
        return self._most or 0 if self.config.streaming else len(self.rows)


class HubStream(PairStream):
    """The training split of a streamed data set."""

    def __init__(self, config: HubConfig) -> None:
        split, self.direction = config.split_entry(config.train[0])
        self.name, self.config = str(split), config
        self._split = HubSplit(config, self.name, self.direction)
        self._times, self._position, self._pairs = 0, None, self._split.read()

    def _begin(self, times: int, position: Any) -> None:
        """Read from `position` on; None for the beginning. times: how often the text was read to its end."""
        self._split.rows = _load(self.config, self.name)
        if position is not None:
            self._split.rows.load_state_dict(position)
        self._times, self._position, self._pairs = times, position, self._split.read()

    def take(self, count: int) -> list[Pair]:
        pairs = list(islice(self._pairs, count))
        if len(pairs) == count:
            self._position = self._split.rows.state_dict()
            return pairs
        if not pairs and self._position is None:
            raise DataError(f"{self.config.path} ({self.name}) has no rows")
        self._begin(self._times + 1, None)
        return pairs or self.take(count)

    def state(self) -> dict[str, Any]:
        return {"times": self._times, "place": copy.deepcopy(self._position)}

    def seek(self, state: dict[str, Any]) -> None:
        state = {"times": 0, "place": None, **state}
        # To open the data set again takes a request to the Hub.
        if state != self.state():
            self._begin(state["times"], copy.deepcopy(state["place"]))


def _load(config: HubConfig, split: str) -> Any:
    """Return the split as a `datasets.Dataset` or IterableDataset; every failure becomes a DataError."""
    import datasets

    datasets.disable_progress_bars()
    folder = user_path(config.path)
    try:
        if (folder / "dataset_dict.json").is_file():  # written by DatasetDict.save_to_disk
            saved = datasets.load_from_disk(str(folder))[split]
            return saved.to_iterable_dataset() if config.streaming else saved
        if not folder.exists():
            _go_offline_if_unreachable()
        name = str(folder) if folder.exists() else config.path
        subset, revision = config.subset or None, config.revision or None
        return datasets.load_dataset(name, subset, split=split, revision=revision, streaming=config.streaming)
    except Exception as error:
        # The library raises dozens of kinds, of its own and of its dependencies.
        raise DataError(
            f"corpus.path '{config.path}' (split {split}) could not be loaded: {type(error).__name__}: "
            f"{reason_of(error)}. Without a network, give a local folder, or text files with corpus=files; "
            "corpus.train, corpus.valid and corpus.test name the splits, 'corpus.test=[]' none"
        ) from None


def _go_offline_if_unreachable() -> None:
    """Put the libraries into offline mode, without retries but with their cache, if the Hub cannot be reached."""
    import datasets
    import huggingface_hub

    endpoint = huggingface_hub.constants.ENDPOINT
    try:
        urllib.request.urlopen(endpoint, timeout=_HUB_TIMEOUT_SECONDS).close()
    except OSError as error:
        # A Hub that answers with an error is there; the libraries' own message will say more.
        if not isinstance(error, urllib.error.HTTPError):
            huggingface_hub.constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True


PRESETS = {"hub": HubConfig(target="de")}
"""What `corpus=` can choose."""
