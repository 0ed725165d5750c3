"""Batches of sentences, padded to a rectangle.

Shapes: B sentences, S longest source, T longest target. Ids: `<pad>` 0, `<s>` 1, `</s>` 2, `<unk>` 3, everywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tolka.kernels.packing import token_positions
from tolka.tokenizer.special_tokens import BOS, EOS, PAD, UNK

__all__ = ["BOS", "EOS", "PAD", "UNK", "Batch", "Flat", "Ids", "collate", "collate_flat"]

Ids = npt.NDArray[np.integer] | Sequence[int]


@dataclass(frozen=True)
class Batch:
    """Padded ids on one device, as `collate` returns them.

    source (B, S): x_1 .. x_n </s> <pad>*.   source_lengths (B,): with </s>.
    target_in (B, T): <s> y_1 .. y_m <pad>*. target_out (B, T): y_1 .. y_m </s> <pad>*. target_lengths (B,): m + 1.
    source_positions (M,): the indices in source, flattened, that hold no padding.
    target_positions (N,): those in target_out of the tokens that the model is to predict: neither padding nor tags.
    tokens: N, the number of these, </s> included.
    target_tags: how many tags y_1, y_2, .. are. Decoding forces them, so that no loss and no score counts them.
    """

    source: Tensor
    source_lengths: Tensor
    target_in: Tensor
    target_out: Tensor
    target_lengths: Tensor
    source_positions: Tensor
    target_positions: Tensor
    tokens: int
    target_tags: int = 0

    @property
    def targets(self) -> Tensor:
        """The reference ids (N,)."""
        # By positions that `collate` has computed on the CPU: a mask would make a GPU count first, and wait.
        return self.target_out.flatten()[self.target_positions]

    def valid(self, states: Tensor) -> Tensor:
        """Return the states that predict the references: (B, T, D) -> (N, D)."""
        return states.flatten(0, 1)[self.target_positions]

    @property
    def positions(self) -> int:
        """Number of positions on both sides, padding included: a measure of the cost of computation."""
        return self.source.numel() + self.target_in.numel()

    def halves(self) -> tuple["Batch", "Batch"]:
        """Return both halves of the pairs, each with as little padding as it needs; ValueError for one pair."""
        middle = len(self.source) // 2
        if not middle:
            raise ValueError("a batch of one pair has no halves")
        return self.part(slice(None, middle)), self.part(slice(middle, None))

    def part(self, rows: slice) -> "Batch":
        """Return a batch of some of the pairs, with as little padding as they need."""
        source_lengths, target_lengths = self.source_lengths[rows], self.target_lengths[rows]
        longest_source, longest_target = int(source_lengths.max()), int(target_lengths.max())
        return _batch(
            (self.source[rows, :longest_source], source_lengths),
            self.target_in[rows, :longest_target],
            (self.target_out[rows, :longest_target], target_lengths),
            self.target_tags,
        )

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on `device`."""
        if device.type == "cpu":
            return self
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        tensors = {name: value for name, value in own.items() if isinstance(value, Tensor)}
        # One copy of all of them; from pinned memory, which the system cannot move away, it overlaps with computation.
        flat = torch.cat([tensor.flatten() for tensor in tensors.values()]).int().pin_memory()
        parts = flat.to(device, non_blocking=True).long().split([tensor.numel() for tensor in tensors.values()])
        moved = {name: part.view(tensors[name].shape) for name, part in zip(tensors, parts, strict=True)}
        return replace(self, **moved)


@dataclass(frozen=True)
class Flat:
    """Rows of ids, concatenated: ids (total,), lengths (B,)."""

    ids: npt.NDArray[np.integer]
    lengths: npt.NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[Ids]) -> "Flat":
        """Concatenate one or more rows."""
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        return cls(np.concatenate([np.asarray(row, dtype=np.int64) for row in rows]), lengths)

    def tagged(self, tags: npt.NDArray[np.integer]) -> "Flat":
        """Return the rows with tags (B, number of tags), or the same ones (number of tags,), at their beginning."""
        count = tags.shape[-1]
        if not count:
            return self
        starts = np.cumsum(self.lengths) - self.lengths
        ids = np.insert(self.ids, np.repeat(starts, count), np.broadcast_to(tags, (len(starts), count)).ravel())
        return Flat(ids, self.lengths + count)

    def with_eos(self) -> tuple[Tensor, Tensor]:
        """Return the rows, each followed by </s> and padding, (B, longest) int64, and their lengths (B,), with </s>."""
        padded = self._padded(0)
        padded[np.arange(len(padded)), self.lengths] = EOS
        return torch.from_numpy(padded), torch.from_numpy(self.lengths + 1)

    def with_bos(self) -> Tensor:
        """Return the rows, each with <s> before it and padding after it, (B, longest) int64."""
        padded = self._padded(1)
        padded[:, 0] = BOS
        return torch.from_numpy(padded)

    def _padded(self, first: int) -> npt.NDArray[np.int64]:
        """Return the rows from column `first`, with a column more than the longest has ids."""
        # One assignment through a mask, which is filled row by row, in the order of `ids`; no loop over rows.
        padded = np.full((len(self.lengths), int(self.lengths.max()) + 1), PAD, dtype=np.int64)
        positions = np.arange(padded.shape[1]) - first
        padded[(positions >= 0) & (positions < self.lengths[:, None])] = self.ids
        return padded


def collate(sources: Sequence[Ids], targets: Sequence[Ids], tags: Sequence[Ids] = ((), ())) -> Batch:
    """Return the Batch of id rows without special symbols; <s>, </s> and the tags of a direction are added.

    tags: ids at the beginning of each source, and of each target.
    """
    return collate_flat(Flat.of(sources), Flat.of(targets), tags)


def collate_flat(sources: Flat, targets: Flat, tags: Sequence[Ids] = ((), ())) -> Batch:
    """Return the Batch of concatenated rows; see `collate`. tags: also of each row, (B, number of tags)."""
    sources = sources.tagged(np.asarray(tags[0], dtype=np.int64))
    targets = targets.tagged(np.asarray(tags[1], dtype=np.int64))
    return _batch(sources.with_eos(), targets.with_bos(), targets.with_eos(), np.shape(tags[1])[-1])


def _batch(source: tuple[Tensor, Tensor], target_in: Tensor, target: tuple[Tensor, Tensor], tags: int) -> Batch:
    """Return the Batch of padded rows. source, target: rows and their lengths. tags: of each target."""
    (source_rows, source_lengths), (target_out, target_lengths) = source, target
    positions = token_positions(target_lengths, target_out.size(1))
    return Batch(
        source=source_rows,
        source_lengths=source_lengths,
        target_in=target_in,
        target_out=target_out,
        target_lengths=target_lengths,
        source_positions=token_positions(source_lengths, source_rows.size(1)),
        target_positions=positions[positions % target_out.size(1) >= tags] if tags else positions,
        tokens=len(positions) - tags * len(target_lengths),
        target_tags=tags,
    )
