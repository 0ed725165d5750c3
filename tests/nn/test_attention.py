"""Attention against its formula, written out with loops in float64."""

import math

import pytest
import torch

from tolka.kernels.attention import fused_attention
from tolka.kernels.packing import Packing
from tolka.models.transformer.decoding import empty_cache, project_memory, self_attention_step
from tolka.nn.attention import CrossAttention, SelfAttention, attention_weights


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
    fused = fused_attention(query, key, value, mask, causal)
    for b in range(2):
        for h in range(3):
            for t in range(4):
                attended = [s for s in range(4) if (not looks_back or s <= t) and (not masked or visible[b, s])]
                scores = [float(query[b, h, t] @ key[b, h, s]) / math.sqrt(5) for s in attended]
                total = sum(math.exp(score) for score in scores)
                expected = sum(math.exp(e) / total * value[b, h, s] for e, s in zip(scores, attended, strict=True))
                torch.testing.assert_close(fused[b, h, t], expected)


def test_weights_times_values_is_the_fused_result() -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 2, 5, 4).double() for _ in range(3))
    torch.testing.assert_close(
        attention_weights(query, key, None, causal=True) @ value, fused_attention(query, key, value, None, causal=True)
    )


def test_attention_dropout_drops_weights_and_keeps_their_mean() -> None:
    torch.manual_seed(0)
    query, key, value = torch.zeros(1, 1, 2000, 4), torch.zeros(1, 1, 50, 4), torch.ones(1, 1, 50, 4)
    result = fused_attention(query, key, value, None, causal=False, dropout_rate=0.5)
    assert result.std() > 0.05
    assert result.mean().item() == pytest.approx(1.0, abs=0.02)


def test_fused_projections_are_three_and_two_matrices() -> None:
    attention = SelfAttention(d_model=8, heads=2, d_v=3, dropout_rate=0.0)
    x = torch.randn(1, 4, 8)
    rows = Packing(torch.tensor([4]), 4)
    query, key, value = attention.project(x[0], rows)
    weight, bias = attention.query_key_value.weight, attention.query_key_value.bias
    assert (query.shape, key.shape, value.shape) == ((4, 2, 4), (4, 2, 4), (4, 2, 3))
    torch.testing.assert_close(key[:, 1], (x[0] @ weight[12:16].T) + bias[12:16])
    cross = CrossAttention(d_model=8, heads=2, d_v=3, dropout_rate=0.0)
    assert project_memory(cross, x[0], rows)[1].shape == (1, 2, 4, 3)


def test_step_turns_by_position_and_caches_turned_keys() -> None:
    """With one head and an odd d_v, rows of the fused projection start at odd places in memory."""
    torch.manual_seed(0)
    for heads, d_v in ((2, 4), (1, 5)):
        attention = SelfAttention(d_model=8, heads=heads, d_v=d_v, dropout_rate=0.0, rotary=True).double()
        x = torch.randn(3, 6, 8).double()
        rows = Packing(torch.full((3,), 6), 6)
        _, keys, values = attention.project(x.flatten(0, 1), rows)
        cache = empty_cache(attention, x, 3)
        steps = [self_attention_step(attention, x[:, t : t + 1], cache, t) for t in range(6)]
        at_once = attention(x.flatten(0, 1), rows, causal=True)
        torch.testing.assert_close(torch.cat(steps, dim=1), at_once.view(3, 6, 8))
        both = [part.reshape(3, 6, -1) for part in (keys, values)]
        torch.testing.assert_close(cache[:, :6], torch.cat(both, dim=-1))


def test_values_are_not_turned() -> None:
    plain, rotary = (
        SelfAttention(d_model=8, heads=2, d_v=4, dropout_rate=0.0, rotary=rotary) for rotary in (False, True)
    )
    rotary.load_state_dict(plain.state_dict())
    x, rows = torch.randn(5, 8), Packing(torch.tensor([5]), 5)
    (query, key, value), (turned_query, turned_key, same) = plain.project(x, rows), rotary.project(x, rows)
    assert torch.equal(value, same)
    assert not torch.allclose(query[1:], turned_query[1:])
    assert not torch.allclose(key[1:], turned_key[1:])
