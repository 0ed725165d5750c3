"""Greedy decoding: the likeliest token at every step.

Shapes: B sentences still at work, t tokens so far.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from tolka.batch import EOS
from tolka.models.base import Seq2Seq
from tolka.search.base import SEARCHES, Hypothesis, SearchConfig, first_tokens, likeliest


@SEARCHES.register("greedy")
@dataclass(frozen=True)
class GreedyConfig(SearchConfig):
    """Options of greedy decoding."""

    name: str = "greedy"
    """the kind of search: greedy"""

    @property
    def width(self) -> int:
        """See SearchConfig.width."""
        return 1

    def search(self, model: Seq2Seq, source: Tensor, lengths: Tensor) -> list[list[Hypothesis]]:
        """See SearchConfig.search; one hypothesis a sentence, scored by its log-probability. Finished ones leave."""
        done: list[Hypothesis | None] = [None] * len(source)
        state = model.start(source, lengths)
        token = first_tokens(len(source), source.device)
        alive = torch.arange(len(source), device=source.device)  # (B,): which input each row is
        tokens = token.new_empty(len(source), 0)
        total = torch.zeros(len(source), 1, device=source.device)
        limits = self.limits(lengths)
        step = 0
        while len(alive):
            features, state = model.step(token, state)
            best = likeliest(model, features, total, count=1)
            step += 1
            total, token = best.log_probability, best.token
            tokens = torch.cat([tokens, token], dim=1)
            ended = token[:, 0] == EOS
            leaves = ended | (limits == step)
            if bool(leaves.any()):
                rows = zip(*(x[leaves].tolist() for x in (alive, tokens, total[:, 0], ended)), strict=True)
                for number, ids, log_p, finished in rows:
                    done[number] = Hypothesis(ids[:-1] if finished else ids, log_p, log_p, finished)
                stay = (~leaves).nonzero()
                state = state.select(stay)
                token, tokens, total, alive, limits = (x[stay[:, 0]] for x in (token, tokens, total, alive, limits))
        return [[hypothesis] for hypothesis in done if hypothesis is not None]
