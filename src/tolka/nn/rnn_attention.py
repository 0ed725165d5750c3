"""Attention of a recurrent decoder: a_t = softmax(score(s_t, h_j)), c_t = sum_j a_tj h_j (Luong et al. 2015).

Shapes: B sentences, T decoder states a sentence (steps, or hypotheses at one step), S source, D width of states.
"""

import torch
from torch import Tensor, nn

from tolka.nn.linear import Linear


class Alignment(nn.Module):
    """The attention weights. score: dot = <s, h>; general = s W h (Luong et al. 2015); additive = v tanh(W s + U h)
    (Bahdanau et al. 2015).
    """

    def __init__(self, score: str, width: int) -> None:
        super().__init__()
        self.score = score
        if score == "general":
            self.key = Linear(width, width, bias=False)
        elif score == "additive":
            self.key = Linear(width, width)
            self.query = Linear(width, width, bias=False)
            self.energy = Linear(width, 1, bias=False)

    def keys(self, encoded: Tensor) -> Tensor:
        """(B, S, D) -> (B, S, D): the part of the score that is independent of the decoder, computed once."""
        if self.score == "dot":
            return encoded
        keys: Tensor = self.key(encoded)
        return keys

    def weights(self, states: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        """states (B, T, D), `keys(encoded)`, mask (B, S) true at tokens -> (B, T, S); each row sums to 1."""
        if self.score == "additive":
            scores = self.energy(torch.tanh(self.query(states)[:, :, None] + keys[:, None])).squeeze(-1)
        else:
            scores = states @ keys.transpose(1, 2)
        weights: Tensor = scores.masked_fill(~mask[:, None], float("-inf")).softmax(-1)
        return weights
