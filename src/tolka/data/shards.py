"""Shards of a training text, each cleaned and encoded independently, by any process.

A shard is a folder. Its files, in the order in which they are written: `raw` (pairs as read), `text` (cleaned pairs)
with `cleaned.json`, `new.npy` (which cleaned pairs are not duplicates), a token store with `encoded.json`. Each step
moves its files there when they are whole, and its JSON file last, so that this file shows that the step was completed.
Two processes that do the same step write the same bytes.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import compress
from operator import not_
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tolka.data.store import TokenStore, write_store
from tolka.errors import DataError
from tolka.system.atomic import replaced_files
from tolka.text.cleaning.cleaner import Marks, Reject, Tally, duplicate_key, duplicate_reason, judge, marks_of
from tolka.text.cleaning.steps import CleaningConfig
from tolka.text.direction import UNKNOWN, Direction
from tolka.text.pairs import Pair
from tolka.tokenizer.tokenizer import Tokenizer

# What one process works on at a time: its memory, and what an interruption loses.
SHARD_PAIRS = 50_000
_CELL_BREAK = re.compile(r"[\t\n\r]")


@dataclass(frozen=True)
class Task:
    """The settings by which every shard is cleaned and encoded. held_out, set_aside: see `judge`."""

    cleaning: CleaningConfig
    max_length: int
    held_out: Marks
    set_aside: Marks = frozenset()


class Shard:
    """Consecutive pairs of the text."""

    def __init__(self, folder: Path, pairs: int = 0, direction: Direction = UNKNOWN) -> None:
        """pairs: how many were read."""
        self.folder, self.count, self.direction = folder, pairs, direction

    def is_done(self, step: str) -> bool:
        """Return whether a step, `cleaned` or `encoded`, was completed."""
        return (self.folder / f"{step}.json").is_file()

    def write(self, pairs: list[Pair]) -> None:
        """Write the pairs as they were read; no text may contain a line feed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.count = len(pairs)
        with replaced_files(self.folder, last="raw") as new:
            _write_pairs(new / "raw", pairs)

    def clean(self, task: Task) -> None:
        """Change or drop each pair by itself; write the marks by which duplicates are recognised."""
        tally, rejected = Tally(), list[tuple[Pair, str]]()
        raw, held_out = _read_pairs(self.folder / "raw"), (task.held_out, task.set_aside)
        pairs = list(judge(raw, task.cleaning, self.direction, tally, rejected.append, *held_out))
        with replaced_files(self.folder, last="cleaned.json") as new:
            _write_rejected(new / "cleaning.tsv", rejected)
            _write_pairs(new / "text", pairs)
            if key := duplicate_key(task.cleaning):
                np.save(new / "marks.npy", marks_of(pairs, key))
            tally.kept = len(pairs)
            (new / "cleaned.json").write_text(json.dumps(tally.as_dict()), encoding="utf-8")
        # Not read again: the text is on the disk once, not twice.
        (self.folder / "raw").unlink(missing_ok=True)

    def marks(self) -> npt.NDArray[np.uint64]:
        """Return the marks of the cleaned pairs, (pairs,), which are equal for duplicates."""
        return np.asarray(np.load(self.folder / "marks.npy"))

    def save_new(self, new: npt.NDArray[np.bool_]) -> None:
        """Save which of the cleaned pairs are not duplicates."""
        with replaced_files(self.folder, last="new.npy") as files:
            np.save(files / "new.npy", new)

    def _new(self) -> npt.NDArray[np.bool_] | None:
        path = self.folder / "new.npy"
        return np.load(path) if path.exists() else None

    @property
    def kept(self) -> int:
        """Number of pairs left after `clean` and `save_new`."""
        new = self._new()
        return self.tally("cleaned").kept if new is None else int(new.sum())

    def _cleaned(self) -> tuple[list[Pair], list[bool]]:
        """Return the cleaned pairs, and which are not duplicates; DataError if the file is incomplete."""
        pairs, new = list(_read_pairs(self.folder / "text")), self._new()
        if len(pairs) != self.tally("cleaned").kept:
            raise self.damaged()
        return pairs, [True] * len(pairs) if new is None else new.tolist()

    def damaged(self) -> DataError:
        """Return the error to raise if the files are not what they should be."""
        return DataError(f"{self.folder} is damaged: delete {self.folder.parent} to have the text prepared again")

    def pairs(self) -> Iterator[Pair]:
        """Return the cleaned pairs without duplicates."""
        return compress(*self._cleaned())

    def encode(self, task: Task, tokenizer: Tokenizer) -> None:
        """Encode the cleaned pairs, except duplicates and those with too many tokens."""
        pairs, is_new = self._cleaned()
        rejected = [(pair, duplicate_reason(task.cleaning)) for pair in compress(pairs, map(not_, is_new))]
        tally, new_pairs = Tally(dropped=Counter(reason for _, reason in rejected)), [*compress(pairs, is_new)]
        fitting = [*fitting_rows(new_pairs, tokenizer, self.direction, task.max_length, tally, rejected.append)]
        with replaced_files(self.folder, last="encoded.json") as new:
            _write_rejected(new / "encoding.tsv", rejected)
            store = TokenStore.from_rows([source for source, _ in fitting], [target for _, target in fitting])
            tally.kept = write_store(new, [store], (tokenizer.source_size, tokenizer.target_size))
            (new / "encoded.json").write_text(json.dumps(tally.as_dict()), encoding="utf-8")

    def tally(self, step: str) -> Tally:
        """Return the tally of a completed step: cleaned, encoded."""
        return Tally.of(json.loads((self.folder / f"{step}.json").read_text(encoding="utf-8")))

    def rejected(self) -> bytes:
        """Return the lines of the pairs that were dropped in both steps."""
        return b"".join((self.folder / f"{step}.tsv").read_bytes() for step in ("cleaning", "encoding"))


def work_on(shard: Shard, task: Task, tokenizer: Tokenizer | None = None, modules: Sequence[str] = ()) -> int:
    """Clean a shard, or with a tokenizer encode it, in whatever process; return its number of pairs.

    modules: those that register steps of one's own.
    """
    for module in modules:
        import_module(module)
    # A worker of a command that was killed may have finished it just now.
    with suppress(FileNotFoundError):
        if tokenizer is None:
            shard.clean(task)
        else:
            shard.encode(task, tokenizer)
    if not shard.is_done("encoded" if tokenizer else "cleaned"):
        raise shard.damaged()
    return shard.count


def fitting_rows(
    pairs: Sequence[Pair],
    tokenizer: Tokenizer,
    direction: Direction,
    max_length: int,
    tally: Tally,
    reject: Reject = lambda rejected: None,
) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the ids of pairs with at most `max_length` subwords on each side; count and `reject` each of the others."""
    sources = tokenizer.encode_source([pair.source for pair in pairs], direction)
    targets = tokenizer.encode_target([pair.target for pair in pairs])
    for pair, source, target in zip(pairs, sources, targets, strict=True):
        if max(len(source), len(target)) <= max_length:
            yield source, target
        else:
            tally.dropped[f"over {max_length} tokens"] += 1
            reject((pair, f"over {max_length} tokens"))


def _write_pairs(path: Path, pairs: Sequence[Pair]) -> None:
    content = "".join(f"{pair.source}\n{pair.target}\n{pair.flaw}\n" for pair in pairs).encode()
    # A line feed within a text would shift every later pair.
    assert content.count(b"\n") == 3 * len(pairs), f"a text for {path} holds a line feed"
    path.write_bytes(content)


def _write_rejected(path: Path, rejected: Iterable[tuple[Pair, str]]) -> None:
    """Write a file of dropped pairs: a line with reason, source and target for each."""
    rows = ((reason, pair.source, pair.target) for pair, reason in rejected)
    lines = ("\t".join(_CELL_BREAK.sub(" ", text) for text in row) for row in rows)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())


def _read_pairs(path: Path) -> Iterator[Pair]:
    lines = path.read_bytes().decode().split("\n")
    yield from map(Pair, lines[:-1:3], lines[1::3], lines[2::3])
