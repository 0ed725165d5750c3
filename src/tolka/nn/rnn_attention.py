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
            # The two projections are added, so that one bias serves both; one on the energies would cancel out in the
            # softmax.
            self.key = Linear(width, width)
            self.query = Linear(width, width, bias=False)
            self.energy = Linear(width, 1, bias=False)

    def keys(self, encoded: Tensor) -> Tensor:
        """(B, S, D) -> (B, S, D): the part of the score that is independent of the decoder."""
        # Once per sentence instead of once per step: W h_j for general, where s (W h) = (s W) h, U h_j for additive.
        return encoded if self.score == "dot" else self.key(encoded)

    def weights(self, states: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        """states (B, T, D), `keys(encoded)`, mask (B, S) true at tokens -> (B, T, S); each row sums to 1."""
        if self.score == "additive":
            # (B, T, 1, D) + (B, 1, S, D): D values for each pair of positions, where the other scores need one.
            scores = self.energy(torch.tanh(self.query(states)[:, :, None] + keys[:, None])).squeeze(-1)
        else:
            # Unscaled, as in the paper: only the Transformer divides by sqrt(D).
            scores = states @ keys.transpose(1, 2)
        # exp(-inf) = 0: padding has weight 0, and the tokens' weights sum to 1.
        return scores.masked_fill(~mask[:, None], float("-inf")).softmax(-1)
