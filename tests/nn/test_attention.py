"""Attention against its formula, written out with loops in float64; positions against theirs."""

import math

import pytest
import torch

from tolka.nn.attention import CrossAttention, SelfAttention, attend, attention_weights
from tolka.nn.feedforward import FeedForward
from tolka.nn.positions import LearnedPositions, SinusoidalPositions, sinusoids


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_attend_equals_the_formula(causal: bool, masked: bool) -> None:
    torch.manual_seed(0)
    query, key = torch.randn(2, 3, 4, 5).double(), torch.randn(2, 3, 4, 5).double()
    value = torch.randn(2, 3, 4, 6).double()
    visible = torch.tensor([[True, True, True, True], [True, True, False, False]])
    mask = visible[:, None, None, :] if masked else None
    if masked and causal:
        mask, causal = mask & torch.ones(4, 4, dtype=torch.bool).tril(), False  # type: ignore[operator]
        looks_back = True
    else:
        looks_back = causal
    fused = attend(query, key, value, mask, causal)
    for b in range(2):
        for h in range(3):
            for t in range(4):
                seen = [s for s in range(4) if (not looks_back or s <= t) and (not masked or visible[b, s])]
                scores = [float(query[b, h, t] @ key[b, h, s]) / math.sqrt(5) for s in seen]
                total = sum(math.exp(score) for score in scores)
                expected = sum(math.exp(e) / total * value[b, h, s] for e, s in zip(scores, seen, strict=True))
                torch.testing.assert_close(fused[b, h, t], expected)


def test_weights_times_values_is_the_fused_result() -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 2, 5, 4).double() for _ in range(3))
    torch.testing.assert_close(
        attention_weights(query, key, None, causal=True) @ value, attend(query, key, value, None, causal=True)
    )


def test_attention_dropout_drops_weights_and_keeps_their_mean() -> None:
    torch.manual_seed(0)
    query, key, value = torch.zeros(1, 1, 2000, 4), torch.zeros(1, 1, 50, 4), torch.ones(1, 1, 50, 4)
    result = attend(query, key, value, None, causal=False, rate=0.5)
    assert result.std() > 0.05
    assert result.mean().item() == pytest.approx(1.0, abs=0.02)


def test_fused_projections_are_three_and_two_matrices() -> None:
    attention = SelfAttention(d_model=8, heads=2, d_v=3, rate=0.0)
    x = torch.randn(1, 4, 8)
    query, key, value = attention.project(x)
    weight, bias = attention.query_key_value.weight, attention.query_key_value.bias
    assert (query.shape, key.shape, value.shape) == ((1, 2, 4, 4), (1, 2, 4, 4), (1, 2, 4, 3))
    torch.testing.assert_close(key[0, 1], (x[0] @ weight[12:16].T) + bias[12:16])
    cross = CrossAttention(d_model=8, heads=2, d_v=3, rate=0.0)
    assert cross.memory(x)[1].shape == (1, 2, 4, 3)


def test_sinusoids_by_hand() -> None:
    table = sinusoids(torch.arange(3), 4)
    for pos in range(3):
        expected = [math.sin(pos), math.cos(pos), math.sin(pos / 100), math.cos(pos / 100)]
        assert table[pos].tolist() == pytest.approx(expected, abs=1e-6)
    assert sinusoids(torch.arange(3), 5).shape == (3, 5)


def test_positions_beyond_the_table_are_the_same_function() -> None:
    positions = SinusoidalPositions(16)
    first = positions(0, 10).clone()
    torch.testing.assert_close(positions(5000, 3), sinusoids(torch.arange(5000, 5003), 16))
    torch.testing.assert_close(positions(0, 10), first)


def test_learned_positions_share_the_last() -> None:
    positions = LearnedPositions(4, limit=3)
    vectors = positions(1, 4)
    assert torch.equal(vectors[1], vectors[3])
    assert not torch.equal(vectors[0], vectors[1])


def test_feedforward_by_hand() -> None:
    layer = FeedForward(3, 7, "relu", 0.0)
    x = torch.randn(2, 3)
    inner = (x @ layer.inner.weight.T + layer.inner.bias).clamp(min=0)
    torch.testing.assert_close(layer(x), inner @ layer.outer.weight.T + layer.outer.bias)
