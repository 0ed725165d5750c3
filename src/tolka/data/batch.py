"""Batches of sentences, padded to a rectangle.

Shapes: B sentences, S longest source, T longest target. Ids: `<pad>` 0, `<s>` 1, `</s>` 2, `<unk>` 3, everywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tolka.text.tokenizer.special_tokens import BOS, EOS, PAD, UNK

__all__ = ["BOS", "EOS", "PAD", "UNK", "Batch", "Flat", "Ids", "collate", "collate_flat", "token_positions"]

Ids = npt.NDArray[np.integer] | Sequence[int]


@dataclass(frozen=True)
class Batch:
    """Padded ids on one device; made by `collate`.

    source (B, S): x_1 .. x_n </s> <pad>*.   source_lengths (B,): with </s>.
    target_in (B, T): <s> y_1 .. y_m <pad>*. target_out (B, T): y_1 .. y_m </s> <pad>*. target_lengths (B,): m + 1.
    source_positions (M,), target_positions (N,): where source and target_out, flattened, are no padding, row by row.
    tokens: the target tokens that count, </s> included: N, or less of a batch that was `filled`.
    """

    source: Tensor
    source_lengths: Tensor
    target_in: Tensor
    target_out: Tensor
    target_lengths: Tensor
    source_positions: Tensor
    target_positions: Tensor
    tokens: int

    @property
    def targets(self) -> Tensor:
        """The ids to be predicted, (N,), without padding."""
        return self.target_out.flatten()[self.target_positions]

    def valid(self, states: Tensor) -> Tensor:
        """(B, T, D) -> (N, D): the rows of positions that hold a target token."""
        return states.flatten(0, 1)[self.target_positions]

    def with_words_dropped(self, rate: float) -> "Batch":
        """Return the batch with each token that is *read* (source, target_in) replaced by `<unk>` at `rate`.

        Word dropout (Bowman et al. 2016, section 3.1); also what SimCut cuts here (Gao et al. 2022 cut embeddings to
        zero instead, and `<unk>` has one that is learnt). What is to be predicted stays, as do `<s>`, `</s>` and
        padding. Drawn from torch's default generator of the device.
        """
        if rate == 0.0:
            return self
        return replace(self, source=_dropped(self.source, rate), target_in=_dropped(self.target_in, rate))

    def filled(self, sentences: int, sources: int, targets: int, longest: int) -> "Batch":
        """Return the batch with padding pairs appended, up to so many sentences and tokens per side, on a CPU.

        The padding pairs do not count; batches of different size get one shape, (sentences, longest) on both sides. A
        pair has 1 to `longest` tokens on both sides, or none on either; ValueError if that is impossible.
        """
        known = (self.source_lengths, sources), (self.target_lengths, targets)
        pairs = max(-(-(tokens - int(lengths.sum())) // longest) for lengths, tokens in known)
        source_lengths, target_lengths = (_with_more(*side, pairs, sentences, longest) for side in known)
        return Batch(
            source=_enlarged(self.source, sentences, longest),
            source_lengths=source_lengths,
            target_in=_enlarged(self.target_in, sentences, longest),
            target_out=_enlarged(self.target_out, sentences, longest),
            target_lengths=target_lengths,
            source_positions=token_positions(source_lengths, longest),
            target_positions=token_positions(target_lengths, longest),
            tokens=self.tokens,
        )

    @property
    def is_filled(self) -> bool:
        """Whether some targets are padding that does not count."""
        return self.tokens < len(self.target_positions)

    @property
    def positions(self) -> int:
        """Padded positions of both sides, with which the cost of computation grows."""
        return self.source.numel() + self.target_in.numel()

    def halves(self) -> tuple["Batch", "Batch"]:
        """Return the first and the last half of its pairs, with only the padding that they need; ValueError for one
        pair.
        """
        middle = len(self.source) // 2
        if not middle:
            raise ValueError("a batch of one pair has no halves")
        return self._part(slice(None, middle)), self._part(slice(middle, None))

    def first(self, rows: int) -> "Batch":
        """Return its first pairs, with only the padding that they need."""
        return self._part(slice(None, rows))

    def _part(self, rows: slice) -> "Batch":
        source_lengths, target_lengths = self.source_lengths[rows], self.target_lengths[rows]
        longest_source, longest_target = int(source_lengths.max()), int(target_lengths.max())
        return Batch(
            source=self.source[rows, :longest_source],
            source_lengths=source_lengths,
            target_in=self.target_in[rows, :longest_target],
            target_out=self.target_out[rows, :longest_target],
            target_lengths=target_lengths,
            source_positions=token_positions(source_lengths, longest_source),
            target_positions=token_positions(target_lengths, longest_target),
            tokens=int(target_lengths.sum()),
        )

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on `device`; copies from pinned memory overlap with computation."""
        if device.type == "cpu":
            return self
        tensors = [field.name for field in fields(self) if field.name != "tokens"]
        moved = {name: getattr(self, name).pin_memory().to(device, non_blocking=True) for name in tensors}
        return replace(self, **moved)


def token_positions(lengths: Tensor, longest: int) -> Tensor:
    """Return (N,): the positions in (B, longest), flattened, at which rows of `lengths` (B,) have their ids."""
    return (torch.arange(longest) < lengths[:, None]).flatten().nonzero().squeeze(1)


def _with_more(lengths: Tensor, tokens: int, pairs: int, sentences: int, longest: int) -> Tensor:
    """Return (sentences,): the lengths, `pairs` more of 1 to `longest` that sum up to `tokens`, and zeros."""
    none, left = sentences - len(lengths) - pairs, tokens - int(lengths.sum())
    if none < 0 or not 0 <= pairs <= left <= pairs * longest or int(lengths.max()) > longest:
        raise ValueError(
            f"{len(lengths)} sentences of {int(lengths.sum())} tokens cannot be {sentences} of {tokens}, at most "
            f"{longest} each"
        )
    more = 1 + (left - pairs - torch.arange(pairs) * (longest - 1)).clamp(0, longest - 1)
    return torch.cat([lengths, more, more.new_zeros(none)])


def _enlarged(ids: Tensor, sentences: int, longest: int) -> Tensor:
    """Pad (B, L) to (sentences, longest)."""
    room = ids.new_full((sentences, longest), PAD)
    room[: len(ids), : ids.size(1)] = ids
    return room


def _dropped(ids: Tensor, rate: float) -> Tensor:
    """Replace a share of the ids (B, L) by `<unk>`; the special symbols are the ids below it."""
    dropped = (torch.rand(ids.shape, device=ids.device) < rate) & (ids > UNK)
    return ids.masked_fill(dropped, UNK)


@dataclass(frozen=True)
class Flat:
    """Rows of ids, concatenated: ids (total,), lengths (B,)."""

    ids: npt.NDArray[np.integer]
    lengths: npt.NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[Ids]) -> "Flat":
        """Concatenate rows; at least one."""
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        return cls(np.concatenate([np.asarray(row, dtype=np.int64) for row in rows]), lengths)

    def ended(self) -> tuple[Tensor, Tensor]:
        """Return (B, longest) int64, each row followed by </s> and padding, and their lengths (B,)."""
        padded = self._padded(0)
        padded[np.arange(len(padded)), self.lengths] = EOS
        return torch.from_numpy(padded), torch.from_numpy(self.lengths + 1)

    def begun(self) -> Tensor:
        """Return (B, longest) int64, each row after a <s>, then padding."""
        padded = self._padded(1)
        padded[:, 0] = BOS
        return torch.from_numpy(padded)

    def _padded(self, first: int) -> npt.NDArray[np.int64]:
        """Return rows that begin at column `first`, with space for one symbol."""
        padded = np.full((len(self.lengths), int(self.lengths.max()) + 1), PAD, dtype=np.int64)
        places = np.arange(padded.shape[1]) - first
        padded[(places >= 0) & (places < self.lengths[:, None])] = self.ids
        return padded


def collate(sources: Sequence[Ids], targets: Sequence[Ids]) -> Batch:
    """Return the Batch of id rows without special symbols; <s> and </s> are added."""
    return collate_flat(Flat.of(sources), Flat.of(targets))


def collate_flat(sources: Flat, targets: Flat) -> Batch:
    """Return the Batch of concatenated rows, as `collate`."""
    (source, source_lengths), (target_out, target_lengths) = sources.ended(), targets.ended()
    return Batch(
        source=source,
        source_lengths=source_lengths,
        target_in=targets.begun(),
        target_out=target_out,
        target_lengths=target_lengths,
        source_positions=token_positions(source_lengths, source.size(1)),
        target_positions=token_positions(target_lengths, target_out.size(1)),
        tokens=int(target_lengths.sum()),
    )
