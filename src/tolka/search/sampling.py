"""Sampling: translations drawn from the model's distribution, or from its likely part.

Shapes: B active sentences, n samples a sentence, V vocabulary, L longest translation.
"""

import hashlib
import math

import numpy as np
import torch
from torch import Tensor

from tolka.data.batch import EOS
from tolka.kernels.ending import are_worth_removing, by_ending, on_host
from tolka.kernels.top_k import leave_likely
from tolka.models.base import Seq2Seq
from tolka.search.base import Search, first_tokens, next_log_probabilities
from tolka.search.constraints.rules import Rules
from tolka.search.hypothesis import NO_WISH, Hypothesis, Wishes
from tolka.search.options import SamplingConfig as SamplingConfig


def drawing_probabilities(options: SamplingConfig, log_p: Tensor) -> Tensor:
    """log_p (..., V) -> the probabilities (..., V) that tokens are drawn with, in float64, not normalised."""
    # In float64, a copy: a cumulative sum over the vocabulary is compared with uniform numbers (see `draw`).
    p = log_p.double()
    if options.temperature != 1.0:
        p /= options.temperature
    p = p.softmax(dim=-1)
    if 0 < options.top_k < p.size(-1) or options.top_p < 1.0:
        p.masked_fill_(p < leave_likely(p, options.top_k, options.top_p), 0.0)
    if options.epsilon:
        # The most likely token is drawn even where its own probability is lower.
        p.masked_fill_(p < p.amax(dim=-1, keepdim=True).clamp(max=options.epsilon), 0.0)
    return p


class SamplingSearch(Search):
    """Draw every token of n_best translations from the model's distribution."""

    def __init__(self, config: SamplingConfig) -> None:
        self.config = config

    def search(self, model: Seq2Seq, source: Tensor, lengths: Tensor, wishes: Wishes = ()) -> list[list[Hypothesis]]:
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
        ended = torch.zeros(len(source), dtype=torch.bool, device=source.device)  # (B,): and not yet removed
        results: list[list[Hypothesis]] = [[] for _ in range(len(source))]
        step = 0
        while len(active):
            features, state = model.step(token, state)
            log_p = next_log_probabilities(model, features)  # (B, n, V)
            if rules:
                rules.apply(log_p, tokens, active)
            token = draw(drawing_probabilities(self.config, log_p), uniform[active, :, step])
            # All n samples of a sentence extend the same empty one at first. A sample that has ended is drawn further
            # until all of its sentence have, and adds 0.
            is_done = (length > 0) | ended[:, None]
            total += log_p.expand(-1, count, -1).gather(2, token[..., None])[..., 0].masked_fill_(is_done, 0.0)
            tokens = torch.cat([tokens.expand(-1, count, -1), token[..., None]], dim=2)
            step += 1
            length = torch.where((token == EOS) & ~is_done, step, length)
            rows = torch.arange(len(active), device=source.device)[:, None].expand(-1, count)
            if step > 1:
                rows = torch.arange(len(active) * count, device=source.device).view(-1, count)
            ended |= (length > 0).all(dim=1) | (limits <= step)
            ended_count = int(ended.sum())
            removes = are_worth_removing(ended_count, len(active), source.device)
            if removes:
                left, gone = by_ending(ended, ended_count)
                columns = on_host(*(each[gone] for each in (active, tokens, length, total, limits)))
                for number, *samples in zip(*(each.tolist() for each in columns), strict=True):
                    results[number] = _sorted_samples(*samples)
                tensors = (token, tokens, total, length, active, limits, ended, rows)
                token, tokens, total, length, active, limits, ended, rows = (each[left] for each in tensors)
            # Samples keep their rows: a state is selected only to make n of one, and where sentences have ended.
            if len(active) and (step == 1 or removes):
                state = state.select(rows)
        return results

    def _uniform_numbers(self, source: Tensor, limits: Tensor, wishes: Wishes) -> Tensor:
        """Return (B, n, L) numbers in [0, 1), one for each sample and step, from a generator for each sentence."""
        # Seeded by all that a sentence's samples may depend on, and not by its place in the batch. Philox takes a
        # digest as its key, so that a generator for each sentence costs little.
        longest = int(limits.max())
        numbers = np.zeros((len(source), self.config.n_best, longest))
        rows = zip(source.tolist(), limits.tolist(), wishes or [NO_WISH] * len(source), strict=True)
        for number, (ids, limit, wish) in enumerate(rows):
            text = f"{self.config.seed} {ids[: ids.index(EOS)]} {list(wish.prefix)}"
            key = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "little")
            generator = np.random.Generator(np.random.Philox(key=key))
            # Row by row: sample j has the same numbers however many samples there are.
            numbers[number, :, :limit] = generator.random((self.config.n_best, limit))
        return torch.from_numpy(numbers).to(source.device)


def draw(p: Tensor, uniform: Tensor) -> Tensor:
    """Return the tokens (B, n) at which the cumulative sum of p exceeds uniform (B, n) times its total.

    p (B, n, V), or (B, 1, V) for all n; not normalised. A token with p = 0 is never drawn.
    """
    # Inverse transform sampling. The sum's last value is the total, so that p need not be normalised.
    cumulative = p.cumsum(dim=-1)
    total = cumulative[..., -1]
    # Below the total even where rounding makes u * total equal to it: past the end there is no token.
    value = torch.minimum(uniform * total, torch.nextafter(total, torch.zeros_like(total)))
    value = value[:, :, None] if p.size(1) == uniform.size(1) else value[:, None]
    # right=True: strictly above the value, so that a token with p = 0, whose sum equals the one before, is passed over.
    return torch.searchsorted(cumulative, value.contiguous(), right=True).flatten(1).clamp_(max=p.size(-1) - 1)


def _sorted_samples(tokens: list[list[int]], lengths: list[int], log_p: list[float], limit: int) -> list[Hypothesis]:
    """Return the samples, the most likely one first; those without a finite probability are left out."""
    samples = [
        Hypothesis(ids[: length - 1] if length else ids[:limit], value, value, length > 0)
        for ids, length, value in zip(tokens, lengths, log_p, strict=True)
        if math.isfinite(value)
    ]
    return sorted(samples, key=lambda sample: -sample.score)
