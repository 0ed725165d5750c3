"""The token store: ids of a corpus as memory-mapped arrays, written as a stream and shared between processes."""

import json
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tolka.data.buckets import Lengths
from tolka.errors import DataError
from tolka.tokenizer.language_tags import NO_TAGS, Tags

if TYPE_CHECKING:
    from tolka.data.batch import Batch

_SUMMARY = "store.json"
_SIDES = ("source", "target")


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
    def sides(self) -> tuple[tuple[npt.NDArray[np.integer], npt.NDArray[np.int64]], ...]:
        """Ids and offsets of the sources, and those of the targets."""
        return (self.source_ids, self.source_offsets), (self.target_ids, self.target_offsets)

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

        source, target = (Flat(*_gather_rows(ids, offsets, rows)) for ids, offsets in self.sides)
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
    # Not `np.diff`, which for a memory-mapped file would hold eight bytes for each pair besides the result.
    return np.subtract(offsets[1:], offsets[:-1], out=np.empty(len(offsets) - 1, dtype=np.int32), casting="same_kind")


def joined(stores: Sequence[TokenStore]) -> TokenStore:
    """Return several stores as one, in memory."""
    arrays: list[Any] = []
    for side in zip(*(store.sides for store in stores), strict=True):
        arrays.append(np.concatenate([ids for ids, _ in side]))
        arrays.append(np.concatenate([[0], np.cumsum(np.concatenate([np.diff(offsets) for _, offsets in side]))]))
    return TokenStore(*arrays)


def _map(path: Path, dtype: "np.dtype[Any]", count: int) -> npt.NDArray[Any]:
    """Map a file of `count` values; ValueError if it has another size."""
    if path.stat().st_size != count * dtype.itemsize:
        raise ValueError(f"{path.name} has {path.stat().st_size} bytes, not {count * dtype.itemsize}")
    if count == 0:  # an empty file cannot be mapped
        return np.zeros(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r", shape=(count,))


def write_store(folder: Path, stores: Iterable[TokenStore], vocabularies: tuple[int, int]) -> int:
    """Write the pairs of several stores into `folder`, one store at a time; return the number of pairs."""
    # Two bytes a token where the ids fit: half the disk and the page cache.
    dtypes = [np.dtype(np.uint16 if size <= 2**16 else np.int32) for size in vocabularies]
    pairs, tokens = 0, [0, 0]
    with ExitStack() as files:
        ids_files, offsets_files = (
            [files.enter_context((folder / f"{side}.{kind}").open("wb")) for side in _SIDES]
            for kind in ("ids", "offsets")
        )
        for file in offsets_files:
            file.write(np.int64(0).tobytes())
        for store in stores:
            for number, (ids, offsets) in enumerate(store.sides):
                ids_files[number].write(ids.astype(dtypes[number], copy=False).tobytes())
                # A store's own offsets begin with 0.
                offsets_files[number].write((offsets[1:] + tokens[number]).tobytes())
                tokens[number] += len(ids)
            pairs += len(store)
    names = [dtype.name for dtype in dtypes]
    summary = {"pairs": pairs, "tokens": dict(zip(_SIDES, tokens, strict=True))}
    (folder / _SUMMARY).write_text(json.dumps({**summary, "dtypes": dict(zip(_SIDES, names, strict=True))}))
    return pairs
