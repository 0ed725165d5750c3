"""Greedy decoding: the most likely token at every step.

Shapes: B sentences still at work, t tokens so far.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from tolka.data.batch import EOS
from tolka.models.base import Seq2Seq
from tolka.search.base import (
    SEARCHES,
    Hypothesis,
    SearchConfig,
    compacted,
    first_tokens,
    most_likely,
    most_likely_token,
)

# Share of the sentences: on a CPU others move into the places of those that go, elsewhere all are copied.
_GONE_TOGETHER_ON_CPU, _GONE_TOGETHER = 0.05, 0.1


@SEARCHES.register("greedy")
@dataclass(frozen=True)
class GreedyConfig(SearchConfig):
    """Options of greedy decoding."""

    name: str = "greedy"
    """the kind of search: greedy"""

    @property
    def width(self) -> int:
        """One hypothesis per sentence."""
        return 1

    def search(self, model: Seq2Seq, source: Tensor, lengths: Tensor, scored: bool = True) -> list[list[Hypothesis]]:
        """Return one hypothesis per sentence, scored by its log-probability; finished sentences leave in groups."""
        done: list[Hypothesis | None] = [None] * len(source)
        state = model.start(source, lengths)
        token = first_tokens(len(source), source.device)
        alive = torch.arange(len(source), device=source.device)  # (B,): which input each row is
        tokens = token.new_empty(len(source), 0)
        total = torch.full((len(source), 1), 0.0 if scored else math.nan, device=source.device)
        limits = self.limits(lengths)
        gone = torch.zeros(len(source), dtype=torch.bool, device=source.device)  # (B,): done, and not yet left
        together = _GONE_TOGETHER_ON_CPU if source.device.type == "cpu" else _GONE_TOGETHER
        step = 0
        while len(alive):
            features, state = model.step(token, state)
            if scored:
                best = most_likely(model, features, total, count=1)
                total, token = best.log_probability, best.token
            else:
                token = most_likely_token(model, features)
            step += 1
            tokens = torch.cat([tokens, token], dim=1)
            ended = token[:, 0] == EOS
            leaves = (ended | (limits == step)) & ~gone
            if bool(leaves.any()):
                rows = zip(*(x[leaves].tolist() for x in (alive, tokens, total[:, 0], ended)), strict=True)
                for number, ids, log_p, finished in rows:
                    done[number] = Hypothesis(ids[:-1] if finished else ids, log_p, log_p, finished)
                gone |= leaves
                if int(gone.sum()) < len(gone) * together:
                    continue
                stay = compacted(~gone)
                state = state.select(stay[:, None])
                kept = (token, tokens, total, alive, limits, gone)
                token, tokens, total, alive, limits, gone = (x[stay] for x in kept)
        return [[hypothesis] for hypothesis in done if hypothesis is not None]
