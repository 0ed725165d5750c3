"""Exposure bias: how a model performs on its own output, which teacher forcing never shows it.

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
    """Sums at each target position, from 0, over the sentences that reach it; the last token of each is `</s>`.

    forced_nll, free_nll: -log p of the reference token, in nats, after the reference's tokens and after the model's
    greedy ones. on_track: of `tokens` sentences, those whose greedy tokens so far are the reference's.
    """

    forced_nll: list[float]
    free_nll: list[float]
    on_track: list[int]
    tokens: list[int]

    @property
    def forced(self) -> list[float]:
        """Mean nll at each position with the reference's tokens as input."""
        return [nll / tokens for nll, tokens in zip(self.forced_nll, self.tokens, strict=True)]

    @property
    def free(self) -> list[float]:
        """Mean nll at each position with the model's own tokens as input."""
        return [nll / tokens for nll, tokens in zip(self.free_nll, self.tokens, strict=True)]

    @property
    def gap(self) -> float:
        """Nats per token, over all positions, by which the model's own tokens are worse as input."""
        return (sum(self.free_nll) - sum(self.forced_nll)) / sum(self.tokens)


def loss_by_position(model: Seq2Seq, batches: Iterable[Batch]) -> LossByPosition:
    """Measure the references step by step twice: with their own tokens, and with the model's greedy ones as input.

    The second is what a decoder is in for when it translates, and what training with teacher forcing never shows it:
    exposure bias (Ranzato et al. 2016), which scheduled sampling (Bengio et al. 2015) is meant to cure. The
    reference's length decides where a sentence ends, so `</s>` is never fed, however likely. Beside real errors, the
    free loss charges what is right in other words or in another order.

    batches: on the model's device. Dropout is off meanwhile. No batches give empty lists.
    """
    totals = torch.zeros(4, 0, dtype=torch.float64)
    training = model.training
    model.eval()
    try:
        for batch in batches:
            totals = _added(totals, _sums(model, batch))
    finally:
        model.train(training)
    forced_nll, free_nll, on_track, tokens = totals.tolist()
    return LossByPosition(forced_nll, free_nll, list(map(int, on_track)), list(map(int, tokens)))


@torch.no_grad()
def _sums(model: Seq2Seq, batch: Batch) -> Tensor:
    """Return (4, T): the fields of LossByPosition, in their order."""
    forced, _ = _run(model, batch, _truth)
    free, fed = _run(model, batch, _most_likely)
    same = (fed == batch.target_in).cumprod(dim=1)
    counted = torch.stack([forced, free, same, torch.ones_like(same)]) * (batch.target_out != PAD)
    return counted.sum(dim=1).cpu()


def _run(model: Seq2Seq, batch: Batch, choose: _Choice) -> tuple[Tensor, Tensor]:
    """Return the nll (B, T) of the reference tokens in float64, padding included, and the input tokens (B, T)."""
    state = model.start(batch.source, batch.source_lengths)
    token = batch.target_in[:, 0]  # <s>
    nll, fed = [], []
    for truth in batch.target_out.unbind(dim=1):
        fed.append(token)
        features, state = model.step(token[:, None], state)
        log_p = model.logits(features)[:, 0].double().log_softmax(dim=-1)
        nll.append(-log_p.gather(1, truth[:, None])[:, 0])
        token = choose(log_p, truth)
    return torch.stack(nll, dim=1), torch.stack(fed, dim=1)


def _truth(log_p: Tensor, truth: Tensor) -> Tensor:
    return truth


def _most_likely(log_p: Tensor, truth: Tensor) -> Tensor:
    """Return the most likely token, except special symbols."""
    never = torch.tensor([PAD, BOS, EOS], device=log_p.device)
    return log_p.index_fill(1, never, float("-inf")).argmax(dim=-1)


def _added(totals: Tensor, sums: Tensor) -> Tensor:
    """(4, T) + (4, T'): the shorter one counts as 0 beyond its end."""
    longest = max(totals.size(1), sums.size(1))
    return F.pad(totals, (0, longest - totals.size(1))) + F.pad(sums, (0, longest - sums.size(1)))
