"""Sampling: translations drawn from the model's distribution, or from its likely part.

Shapes: B active sentences, n samples a sentence, V vocabulary, L longest translation.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tolka.data.batch import EOS
from tolka.errors import ConfigError
from tolka.models.base import Seq2Seq
from tolka.options.checks import at_least, at_most, share_below_one, zero_or_more
from tolka.search.base import SEARCHES, Search, SearchConfig, active_rows, first_tokens, next_log_probabilities
from tolka.search.hypothesis import NO_WISH, Hypothesis, Wish
from tolka.search.rules import Rules

_MAX_SAMPLES = 10**6
_SORTED_AT_FIRST = 2048  # of the tokens, in search of those that top_p leaves
_LEAST_TEMPERATURE, _MAX_TEMPERATURE = 0.01, 100.0


@SEARCHES.register("sampling")
@dataclass(frozen=True)
class SamplingConfig(SearchConfig):
    """Options of sampling. A token must pass each of top_k, top_p, min_p and epsilon; the most likely one always does.

    A search that chooses among samples builds this one with n_best as their number.
    """

    name: str = "sampling"
    """the kind of search: sampling"""
    temperature: float = 1.0
    """log-probabilities are divided by it before a token is drawn; below 1 = likely tokens more often"""
    top_k: int = 0
    """only the k most likely tokens are drawn; 0 = off"""
    top_p: float = 1.0
    """only the fewest most likely tokens are drawn that have this probability together; 1 = off"""
    min_p: float = 0.0
    """only tokens are drawn with this share of the most likely one's probability (Nguyen et al. 2024); 0 = off"""
    epsilon: float = 0.0
    """only tokens with this probability are drawn (Hewitt et al. 2022); 0 = off"""
    seed: int = 1
    """of the random numbers; a sentence's samples depend on it and on the sentence, not on its neighbours"""
    n_best: int = 1
    """samples drawn for each sentence, the most likely one first"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.temperature == 0:
            raise ConfigError("search.temperature is 0: search=greedy takes the most likely token every time")
        at_least(self, "search", _LEAST_TEMPERATURE, "temperature")
        at_most(self, "search", _MAX_TEMPERATURE, "temperature")
        zero_or_more(self, "search", "off", "top_k")
        if not 0.0 < self.top_p <= 1.0:
            raise ConfigError(f"search.top_p ({self.top_p}) must be above 0 and at most 1 (off)")
        share_below_one(self, "search", "min_p", "epsilon")
        at_least(self, "search", 0, "seed")
        at_least(self, "search", 1, "n_best")
        at_most(self, "search", _MAX_SAMPLES, "n_best")

    @property
    def width(self) -> int:
        return self.n_best

    @property
    def returned(self) -> int:
        return self.n_best

    def probabilities(self, log_p: Tensor) -> Tensor:
        """log_p (..., V) -> the probabilities (..., V) that tokens are drawn with, in float64, not normalised."""
        p = log_p.double()  # a copy
        if self.temperature != 1.0:
            p /= self.temperature
        p = torch.softmax(p, dim=-1, out=p) if p.device.type == "cpu" else p.softmax(dim=-1)
        least: Tensor | None = None  # (..., 1): the lowest probability that is drawn
        if self.min_p or self.epsilon:
            highest = p.amax(dim=-1, keepdim=True)
            least = torch.clamp(highest * self.min_p, min=self.epsilon).minimum(highest)
        if 0 < self.top_k < p.size(-1) or self.top_p < 1.0:
            least_likely = self._leave_likely(p)
            least = least_likely if least is None else torch.maximum(least, least_likely)
        return p if least is None else p.masked_fill_(p < least, 0.0)

    def _leave_likely(self, p: Tensor) -> Tensor:
        """Return the lowest probability (..., 1) that passes top_k and top_p, which look at p (..., V).

        Where it is not among the largest ones, or several tokens have it of which not all pass, all are sorted; those
        that fail are set to 0, and the result is 0. Of equal tokens, those with the lower id pass.
        """
        count = p.size(-1)
        if self.top_p < 1.0:
            count = min(count, _SORTED_AT_FIRST)
        if self.top_k:
            count = min(count, self.top_k + 1)
        values = p.topk(count, dim=-1).values
        number = self._likely(values).sum(dim=-1, keepdim=True)
        least = values.gather(-1, (number - 1).clamp(min=0))
        is_clear = (values.gather(-1, number.clamp(max=count - 1)) < least) & (number < count)
        if not bool(is_clear.all()):
            is_unclear = ~is_clear[..., 0]
            ordered = p[is_unclear].sort(dim=-1, descending=True, stable=True)
            ordered.values.masked_fill_(~self._likely(ordered.values), 0.0)
            p[is_unclear] = torch.zeros_like(ordered.values).scatter_(-1, ordered.indices, ordered.values)
            least[is_unclear] = 0.0
        return least

    def _likely(self, values: Tensor) -> Tensor:
        """Return which of probabilities in descending order pass top_k and top_p."""
        is_likely = torch.ones_like(values, dtype=torch.bool)
        if self.top_p < 1.0:
            is_likely = values.cumsum(dim=-1) - values < self.top_p
        if self.top_k:
            is_likely[..., self.top_k :] = False
        return is_likely

    def build(self) -> "SamplingSearch":
        return SamplingSearch(self)


class SamplingSearch(Search):
    """Draw every token of n_best translations from the model's distribution."""

    def __init__(self, config: SamplingConfig) -> None:
        self.config = config

    def search(
        self, model: Seq2Seq, source: Tensor, lengths: Tensor, scored: bool = True, wishes: Sequence[Wish] = ()
    ) -> list[list[Hypothesis]]:
        """Return n_best samples of each sentence, the most likely one first; several may be equal.

        Log-probabilities and scores are the model's, whatever the temperature. Sample j of a sentence is the same
        however many are drawn. It depends on seed, source and prefix, and on nothing else.
        """
        count = self.config.n_best
        limits = self.config.limits(lengths)
        rules = Rules(self.config, lengths, wishes)
        uniform = self._uniform_numbers(source, limits, wishes)  # (B, n, L)
        state = model.start(source, lengths)
        active = torch.arange(len(source), device=source.device)  # (B,): the number of each sentence in `source`
        token = first_tokens(len(source), source.device)  # (B, n), with n = 1 at first
        tokens = token.new_empty(len(source), 1, 0)
        total = torch.zeros(len(source), count, device=source.device)
        length = torch.zeros(len(source), count, dtype=torch.long, device=source.device)  # `</s>` counted; 0 = active
        results: list[list[Hypothesis]] = [[] for _ in range(len(source))]
        step = 0
        while len(active):
            features, state = model.step(token, state)
            log_p = next_log_probabilities(model, features)  # (B, n, V)
            if rules:
                rules.apply(log_p, tokens, active)
            token = draw(self.config.probabilities(log_p), uniform[active, :, step])
            # All n samples of a sentence extend the same empty one at first.
            total += log_p.expand(-1, count, -1).gather(2, token[..., None])[..., 0].masked_fill_(length > 0, 0.0)
            tokens = torch.cat([tokens.expand(-1, count, -1), token[..., None]], dim=2)
            step += 1
            length = torch.where((token == EOS) & (length == 0), step, length)
            rows = torch.arange(len(active), device=source.device)[:, None].expand(-1, count)
            if step > 1:
                rows = torch.arange(len(active) * count, device=source.device).view(-1, count)
            is_finished = (length > 0).all(dim=1) | (limits <= step)
            if bool(is_finished.any()):
                done = (each[is_finished].tolist() for each in (active, tokens, length, total))
                for number, *samples in zip(*done, strict=True):
                    results[number] = _sorted_samples(*samples)
                left = active_rows(~is_finished)
                parts = (token, tokens, total, length, active, limits, rows)
                token, tokens, total, length, active, limits, rows = (each[left] for each in parts)
            if len(active) and (step == 1 or bool(is_finished.any())):
                state = state.select(rows)
        return results

    def _uniform_numbers(self, source: Tensor, limits: Tensor, wishes: Sequence[Wish]) -> Tensor:
        """Return (B, n, L) numbers in [0, 1), one for each sample and step, from a generator for each sentence."""
        longest = int(limits.max())
        numbers = np.zeros((len(source), self.config.n_best, longest))
        rows = zip(source.tolist(), limits.tolist(), wishes or [NO_WISH] * len(source), strict=True)
        for number, (ids, limit, wish) in enumerate(rows):
            text = f"{self.config.seed} {ids[: ids.index(EOS)]} {list(wish.prefix)}"
            key = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "little")
            generator = np.random.Generator(np.random.Philox(key=key))
            numbers[number, :, :limit] = generator.random((self.config.n_best, limit))
        return torch.from_numpy(numbers).to(source.device)


def draw(p: Tensor, uniform: Tensor) -> Tensor:
    """Return the tokens (B, n) at which the cumulative sum of p exceeds uniform (B, n) times its total.

    p (B, n, V), or (B, 1, V) for all n; not normalised. A token with p = 0 is never drawn.
    """
    cumulative = p.cumsum(dim=-1)
    total = cumulative[..., -1]
    value = torch.minimum(uniform * total, torch.nextafter(total, torch.zeros_like(total)))
    value = value[:, :, None] if p.size(1) == uniform.size(1) else value[:, None]
    return torch.searchsorted(cumulative, value.contiguous(), right=True).flatten(1).clamp_(max=p.size(-1) - 1)


def _sorted_samples(tokens: list[list[int]], lengths: list[int], log_p: list[float]) -> list[Hypothesis]:
    """Return the samples, the most likely one first; those without a finite probability are left out."""
    samples = [
        Hypothesis(ids[: length - 1] if length else ids, value, value, length > 0)
        for ids, length, value in zip(tokens, lengths, log_p, strict=True)
        if math.isfinite(value)
    ]
    return sorted(samples, key=lambda sample: -sample.score)
