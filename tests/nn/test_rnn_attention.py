"""Scores of a recurrent decoder's attention, by their formulas."""

import math

import pytest
import torch

from tolka.nn.rnn_attention import Alignment

B, T, S, D = 2, 3, 5, 4


@pytest.mark.parametrize("score", ["dot", "general", "additive"])
def test_scores_by_hand(score: str) -> None:
    torch.manual_seed(0)
    layer = Alignment(score, D).double()
    states, encoded = torch.randn(B, T, D).double(), torch.randn(B, S, D).double()
    mask = torch.tensor([[True] * 5, [True, True, False, False, False]])
    found = layer.weights(states, layer.keys(encoded), mask)
    assert found.shape == (B, T, S)
    for b in range(B):
        for t in range(T):
            scores = []
            for j in range(S):
                s, h = states[b, t], encoded[b, j]
                if score == "dot":
                    value = s @ h
                elif score == "general":
                    value = s @ (layer.key.weight @ h)
                else:
                    value = layer.energy.weight[0] @ torch.tanh(
                        layer.query.weight @ s + layer.key.weight @ h + layer.key.bias
                    )
                scores.append(math.exp(value.item()) if mask[b, j] else 0.0)
            for j in range(S):
                assert found[b, t, j].item() == pytest.approx(scores[j] / sum(scores))
