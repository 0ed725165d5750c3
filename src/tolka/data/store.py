"""The token store: ids of a corpus as memory-mapped arrays, written as a stream and shared between processes."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from tolka.data.buckets import Lengths
from tolka.errors import DataError
from tolka.tokenizer.tags import NO_TAGS, Tags

if TYPE_CHECKING:
    from tolka.data.batch import Batch

_SUMMARY = "store.json"
_SIDES = ("source", "target")
_CHUNK = 2**20  # lengths that are computed at once


@dataclass(frozen=True)
class PartTags:
    """Tags of the pairs of a store, which consists of parts in one direction each.

    tags: of each part; as many for all. pairs: number of those of each part; a single part may be of any length.
    """

    tags: tuple[Tags, ...] = (NO_TAGS,)
    pairs: tuple[int, ...] = (0,)

    @property
    def counts(self) -> tuple[int, int]:
        """Number of tags of a source, and of a target."""
        return len(self.tags[0].source), len(self.tags[0].target)

    def numbers(self, rows: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the number, from 0, of the part that each of these pairs is in."""
        # The parts before the last end where the next begins.
        return np.searchsorted(np.cumsum(self.pairs)[:-1], np.asarray(rows), side="right")

    def of(self, rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the tags of the pairs with these numbers: (rows, tags of a source) and (rows, tags of a target)."""
        parts = self.numbers(rows)
        source, target = (np.array([getattr(each, side) for each in self.tags], dtype=np.int64) for side in _SIDES)
        return source[parts], target[parts]


@dataclass(frozen=True)
class TokenStore:
    """Pairs of id rows, without special symbols. Row i of a side is ids[offsets[i] : offsets[i + 1]].

    tags: of the directions, which only batches have.
    """

    source_ids: npt.NDArray[np.integer]
    source_offsets: npt.NDArray[np.int64]
    target_ids: npt.NDArray[np.integer]
    target_offsets: npt.NDArray[np.int64]
    tags: PartTags = PartTags()

    def __len__(self) -> int:
        return len(self.source_offsets) - 1

    @property
    def source_lengths(self) -> Lengths:
        """(pairs,): tokens of each source, without </s>."""
        return _lengths(self.source_offsets)

    @property
    def target_lengths(self) -> Lengths:
        """(pairs,): tokens of each target, without </s>."""
        return _lengths(self.target_offsets)

    @property
    def lengths(self) -> tuple[Lengths, Lengths]:
        """Those of sources and of targets in a batch, tags included."""
        of_source, of_target = self.tags.counts
        lengths = self.source_lengths, self.target_lengths
        return (lengths[0] + of_source, lengths[1] + of_target) if of_source or of_target else lengths

    def target_tokens(self, rows: npt.NDArray[np.int64]) -> int:
        """Return the target tokens that a batch of these pairs counts: with </s>, and without tags."""
        return int((self.target_offsets[rows + 1] - self.target_offsets[rows] + 1).sum())

    def source(self, index: int) -> npt.NDArray[np.integer]:
        """Return the ids of one source."""
        return self.source_ids[self.source_offsets[index] : self.source_offsets[index + 1]]

    def target(self, index: int) -> npt.NDArray[np.integer]:
        """Return the ids of one target."""
        return self.target_ids[self.target_offsets[index] : self.target_offsets[index + 1]]

    def batch(self, rows: npt.NDArray[np.int64]) -> "Batch":
        """Return the Batch of the pairs with these numbers, in this order."""
        from tolka.data.batch import Flat, collate_flat  # torch, which processes that prepare text do without

        sides = (self.source_ids, self.source_offsets), (self.target_ids, self.target_offsets)
        source, target = (Flat(*_gather_rows(ids, offsets, rows)) for ids, offsets in sides)
        return collate_flat(source, target, self.tags.of(rows))

    def has(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[bool]:
        """Return whether each of these pairs of ids is one of the store's."""
        wanted = [(len(source), len(target), source[0], source[-1]) for source, target in pairs if source]
        rows = np.flatnonzero(self.source_lengths)
        starts, ends = self.source_offsets[rows], self.source_offsets[rows + 1]
        found = self.source_lengths[rows], self.target_lengths[rows], self.source_ids[starts], self.source_ids[ends - 1]
        # Of millions of rows few agree in all four, so that only those are compared.
        alike = rows[np.isin(_mixed(found), _mixed(np.array(wanted, dtype=np.int64).reshape(-1, 4).T))]
        there = {(tuple(self.source(row).tolist()), tuple(self.target(row).tolist())) for row in alike}
        return [(tuple(source), tuple(target)) in there for source, target in pairs]

    @classmethod
    def open(cls, folder: Path) -> "TokenStore":
        """Map what `write_store` wrote; DataError when a file is missing or of the wrong size."""
        # Mapped: a corpus may be larger than memory, and processes on one machine share what they have read.
        try:
            summary = json.loads((folder / _SUMMARY).read_text())
            arrays: list[Any] = []
            for side in _SIDES:
                dtype = np.dtype(summary["dtypes"][side])
                arrays.append(_map(folder / f"{side}.ids", dtype, summary["tokens"][side]))
                arrays.append(_map(folder / f"{side}.offsets", np.dtype(np.int64), summary["pairs"] + 1))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{folder}: the token store is damaged ({error}); delete the folder to have it made again"
            ) from None
        return cls(*arrays)

    @classmethod
    def from_rows(cls, sources: list[list[int]], targets: list[list[int]]) -> "TokenStore":
        """Return a store in memory, for validation sets and tests."""
        arrays: list[Any] = []
        for rows in (sources, targets):
            arrays.append(np.fromiter(chain.from_iterable(rows), np.int32))
            arrays.append(np.cumsum([0, *map(len, rows)], dtype=np.int64))
        return cls(*arrays)


def _mixed(columns: Iterable[npt.NDArray[np.integer]]) -> npt.NDArray[np.uint64]:
    """Return one number for each row of the columns; different rows may, but seldom do, have the same."""
    first, *others = (column.astype(np.uint64) for column in columns)
    for column in others:
        first = first * np.uint64(1_000_003) + column
    return first


def _gather_rows(
    ids: npt.NDArray[np.integer], offsets: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.int64]]:
    """Gather rows of one side, and their lengths."""
    # Without a loop, as a batch may have thousands: position i of the result is ids[i + start - new start] of its row.
    starts = offsets[rows]
    lengths = offsets[rows + 1] - starts
    new_starts = np.cumsum(lengths) - lengths
    return ids[np.repeat(starts - new_starts, lengths) + np.arange(lengths.sum())], lengths


def _lengths(offsets: npt.NDArray[np.int64]) -> Lengths:
    """Return the differences of the offsets."""
    # In chunks: `np.diff` of a memory-mapped file would hold eight bytes for each pair besides the result.
    lengths = np.empty(len(offsets) - 1, dtype=np.int32)
    for start in range(0, len(lengths), _CHUNK):
        part = offsets[start : start + _CHUNK + 1]
        np.subtract(part[1:], part[:-1], out=lengths[start : start + _CHUNK], casting="same_kind")
    return lengths


def joined(stores: Sequence[TokenStore]) -> TokenStore:
    """Return several stores as one, in memory."""
    arrays: list[Any] = []
    for ids, offsets in (("source_ids", "source_offsets"), ("target_ids", "target_offsets")):
        lengths = [np.diff(getattr(store, offsets)) for store in stores]
        arrays.append(np.concatenate([getattr(store, ids) for store in stores]))
        arrays.append(np.concatenate([[0], np.cumsum(np.concatenate(lengths))]))
    return TokenStore(*arrays)


def _map(path: Path, dtype: "np.dtype[Any]", count: int) -> npt.NDArray[Any]:
    """Map a file of `count` values; ValueError if it has another size."""
    if path.stat().st_size != count * dtype.itemsize:
        raise ValueError(f"{path.name} has {path.stat().st_size} bytes, not {count * dtype.itemsize}")
    if count == 0:  # an empty file cannot be mapped
        return np.zeros(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r", shape=(count,))


class _Side:
    """Writes the ids and offsets of one side."""

    def __init__(self, folder: Path, side: str, vocabulary: int) -> None:
        # Two bytes a token where the ids fit: half the disk and the page cache.
        self.dtype = np.dtype(np.uint16 if vocabulary <= 2**16 else np.int32)
        self.ids: BinaryIO = (folder / f"{side}.ids").open("wb")
        self.offsets: BinaryIO = (folder / f"{side}.offsets").open("wb")
        self.tokens = 0
        self.offsets.write(np.int64(0).tobytes())

    def append(self, ids: npt.NDArray[np.integer], offsets: npt.NDArray[np.int64]) -> None:
        """Append the rows of a store, whose offsets begin with 0."""
        self.ids.write(ids.astype(self.dtype, copy=False).tobytes())
        self.offsets.write((offsets[1:] + self.tokens).tobytes())
        self.tokens += len(ids)

    def close(self) -> None:
        self.ids.close()
        self.offsets.close()


def write_store(folder: Path, stores: Iterable[TokenStore], vocabularies: tuple[int, int]) -> int:
    """Write the pairs of several stores into `folder`, one store at a time; return the number of pairs."""
    sides = [_Side(folder, side, size) for side, size in zip(_SIDES, vocabularies, strict=True)]
    pairs = 0
    try:
        for store in stores:
            sides[0].append(store.source_ids, store.source_offsets)
            sides[1].append(store.target_ids, store.target_offsets)
            pairs += len(store)
    finally:
        for side in sides:
            side.close()
    summary = {
        "pairs": pairs,
        "tokens": {name: side.tokens for name, side in zip(_SIDES, sides, strict=True)},
        "dtypes": {name: side.dtype.name for name, side in zip(_SIDES, sides, strict=True)},
    }
    (folder / _SUMMARY).write_text(json.dumps(summary))
    return pairs
