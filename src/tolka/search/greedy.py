"""Greedy decoding: the most likely token at every step.

Shapes: B active sentences, t tokens so far.
"""

import math

import torch
from torch import Tensor

from tolka.data.batch import EOS
from tolka.kernels.ending import by_ending, on_host
from tolka.models.base import Seq2Seq
from tolka.search.base import Search, extensions, first_tokens, next_log_probabilities
from tolka.search.constraints.rules import Rules
from tolka.search.hypothesis import Hypothesis, Wishes
from tolka.search.options import GreedyConfig as GreedyConfig

_SHRINK_FROM = 0.1  # share of the sentences that have finished, from which on the others are worth copying


class GreedySearch(Search):
    """Take the most likely token at every step."""

    def __init__(self, config: GreedyConfig) -> None:
        self.config = config

    def search(self, model: Seq2Seq, source: Tensor, lengths: Tensor, wishes: Wishes = ()) -> list[list[Hypothesis]]:
        """Return one hypothesis per sentence, scored by its log-probability; none where scores are not finite."""
        gone_ones: list[list[Tensor]] = []  # number, tokens, score and limit of the sentences that left together
        state = model.start(source, lengths)
        token = first_tokens(len(source), source.device)
        active = torch.arange(len(source), device=source.device)  # (B,): the number of each sentence in `source`
        tokens = token.new_empty(len(source), 0)
        rules = Rules(self.config, lengths, wishes)
        total = torch.zeros(len(source), 1, device=source.device)
        limits = self.config.limits(lengths)
        finished = torch.zeros(len(source), dtype=torch.bool, device=source.device)  # (B,): and not yet removed
        step = 0
        while len(active):
            features, state = model.step(token, state)
            next_log_p = next_log_probabilities(model, features)
            if rules:
                rules.apply(next_log_p, tokens[:, None], active)
            best = extensions(next_log_p, total, count=1)
            token, step = best.token, step + 1
            tokens = torch.cat([tokens, token], dim=1)
            # A finished sentence is decoded further, in vain, until several are.
            total = torch.where(finished[:, None], total, best.log_probability)
            finished |= (token[:, 0] == EOS) | (limits == step)
            # The one place in most steps that waits for the device.
            count = int(finished.sum())
            if count < _SHRINK_FROM * len(finished):
                continue
            left, gone = by_ending(finished, count)
            gone_ones.append([each[gone] for each in (active, tokens, total[:, 0], limits)])
            state = state.select(left[:, None])
            tensors = (token, tokens, total, active, limits, finished)
            token, tokens, total, active, limits, finished = (x[left] for x in tensors)
        results: list[list[Hypothesis]] = [[] for _ in range(len(source))]
        # Read together, so that the device is waited for once.
        columns = (each.tolist() for each in on_host(*(each for tensors in gone_ones for each in tensors)))
        for batch in zip(columns, columns, columns, columns, strict=True):
            for number, ids, value, limit in zip(*batch, strict=True):
                if math.isfinite(value):
                    has_end = EOS in ids[:limit]
                    ids = ids[: ids.index(EOS) if has_end else limit]
                    results[number] = [Hypothesis(ids, value, value, has_end)]
        return results
