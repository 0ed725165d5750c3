"""Exposure bias: the loss of a model that is fed its own output instead of the reference.

Shapes: B sentences, T target positions, V vocabulary.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from tolka.data.batch import BOS, EOS, PAD, Batch
from tolka.models.base import Seq2Seq

# (log-probabilities (B, V) at a position, the reference's tokens (B,) there) -> the tokens (B,) to feed next.
_Choice = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class LossByPosition:
    """Sums at each target position, from 0, over the sentences that reach it; `</s>` is the last token of each.

    forced_nll, free_nll: -log p of the reference token, in nats, after the reference's own tokens and after the model's
    greedy ones. on_track: how many of the `tokens` sentences have the reference's tokens so far when decoded greedily.
    """

    forced_nll: list[float]
    free_nll: list[float]
    on_track: list[int]
    tokens: list[int]

    @property
    def forced(self) -> list[float]:
        """Mean nll at each position when the model is fed the reference."""
        return [nll / tokens for nll, tokens in zip(self.forced_nll, self.tokens, strict=True)]

    @property
    def free(self) -> list[float]:
        """Mean nll at each position when the model is fed its own output."""
        return [nll / tokens for nll, tokens in zip(self.free_nll, self.tokens, strict=True)]

    @property
    def gap(self) -> float:
        """Mean difference free - forced, in nats per token over all positions."""
        return (sum(self.free_nll) - sum(self.forced_nll)) / sum(self.tokens)


def loss_by_position(model: Seq2Seq, batches: Iterable[Batch]) -> LossByPosition:
    """Measure the loss of the references step by step, twice: fed the reference, and fed the greedy output.

    The second is the situation of translating, which training with teacher forcing never shows the model: exposure bias
    (Ranzato et al. 2016), which scheduled sampling (Bengio et al. 2015) is meant to reduce. The reference's length
    decides where a sentence ends, so `</s>` is never fed. Besides real errors, the free loss penalises correct
    translations in other words or in another order.

    batches: on the model's device. Dropout is off. Without batches the lists are empty.
    """
    totals = torch.zeros(4, 0, dtype=torch.float64)
    training = model.training
    model.eval()
    try:
        for batch in batches:
            totals = _add_padded(totals, _sums(model, batch))
    finally:
        model.train(training)
    forced_nll, free_nll, on_track, tokens = totals.tolist()
    return LossByPosition(forced_nll, free_nll, list(map(int, on_track)), list(map(int, tokens)))


@torch.no_grad()
def _sums(model: Seq2Seq, batch: Batch) -> Tensor:
    """Return (4, T): the fields of LossByPosition, in their order."""
    forced, _ = _run(model, batch, _reference)
    free, fed = _run(model, batch, _likeliest)
    on_track = (fed == batch.target_in).cumprod(dim=1)
    counted = torch.stack([forced, free, on_track, torch.ones_like(on_track)]) * (batch.target_out != PAD)
    return counted.sum(dim=1).cpu()


def _run(model: Seq2Seq, batch: Batch, choose: _Choice) -> tuple[Tensor, Tensor]:
    """Return the nll (B, T) of the reference tokens, in float64, padding included, and the tokens (B, T) fed."""
    state = model.start(batch.source, batch.source_lengths)
    token = batch.target_in[:, 0]  # <s>
    nll, fed = [], []
    for reference in batch.target_out.unbind(dim=1):
        fed.append(token)
        features, state = model.step(token[:, None], state)
        log_p = model.logits(features)[:, 0].double().log_softmax(dim=-1)
        nll.append(-log_p.gather(1, reference[:, None])[:, 0])
        token = choose(log_p, reference)
    return torch.stack(nll, dim=1), torch.stack(fed, dim=1)


def _reference(log_p: Tensor, reference: Tensor) -> Tensor:
    return reference


def _likeliest(log_p: Tensor, reference: Tensor) -> Tensor:
    """Return the most likely token that does not end the sentence."""
    excluded = torch.tensor([PAD, BOS, EOS], device=log_p.device)
    return log_p.index_fill(1, excluded, float("-inf")).argmax(dim=-1)


def _add_padded(totals: Tensor, sums: Tensor) -> Tensor:
    """Add (4, T) and (4, T'), the shorter one padded with 0."""
    longest = max(totals.size(1), sums.size(1))
    return F.pad(totals, (0, longest - totals.size(1))) + F.pad(sums, (0, longest - sums.size(1)))
