"""Attention by batched multiplication against torch's kernel, and its gradient against finite differences."""

import pytest
import torch
import torch.nn.functional as F
from rows import each_row
from torch import Tensor

from tolka.kernels.attention import attend_short, fused_attention, suits_short

WIDENED = 13  # keys that are filled up to what the processor's registers hold


def mask_of(keys: int) -> Tensor:
    """Return a mask (2, 1, 1, S) of two sentences, the second with a single key."""
    return (torch.arange(keys) < torch.tensor([[keys - 1], [1]]))[:, None, None]


MASK = mask_of(4)


def inputs(queries: int, keys: int = 4) -> tuple[Tensor, Tensor, Tensor]:
    """Query (2, 3, T, 5), key (2, 3, S, 5) and value (2, 3, S, 6), as views of linear layers' outputs."""
    torch.manual_seed(0)
    shapes = (queries, 5), (keys, 5), (keys, 6)
    flat = [torch.randn(2, length, 3 * width, dtype=torch.float64) for length, width in shapes]
    query, key, value = (x.view(2, -1, 3, x.size(2) // 3).transpose(1, 2).requires_grad_() for x in flat)
    return query, key, value


@each_row(
    ("queries", "keys", "masked", "causal"),
    [
        (3, 4, False, False),
        (7, 4, True, False),
        (4, 4, False, True),
        (3, WIDENED, False, False),
        (7, WIDENED, True, False),
        (WIDENED, WIDENED, False, True),
        (3, 20, True, False),
    ],
)
def test_results_and_gradients_are_those_of_torchs_kernel(queries: int, keys: int, masked: bool, causal: bool) -> None:
    given, mask = inputs(queries, keys), mask_of(keys) if masked else None
    found = attend_short(*given, mask, causal)
    seen = torch.ones(queries, keys, dtype=torch.bool).tril() if causal else mask
    expected = F.scaled_dot_product_attention(*given, attn_mask=seen)
    torch.testing.assert_close(found, expected)
    upstream = torch.randn_like(expected)
    for ours, theirs in zip(
        torch.autograd.grad(found, given, upstream), torch.autograd.grad(expected, given, upstream), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


def test_the_gradient_is_that_of_small_differences() -> None:
    assert torch.autograd.gradcheck(lambda q, k, v: attend_short(q, k, v, MASK, False), inputs(2))
    assert torch.autograd.gradcheck(lambda q, k, v: attend_short(q, k, v, None, True), inputs(4))
    assert torch.autograd.gradcheck(lambda q, k, v: attend_short(q, k, v, None, False), inputs(2, WIDENED))


def test_a_positions_heads_lie_side_by_side() -> None:
    """So that neither the output layer nor the gradient of the split projection needs a copy."""
    for length in (4, WIDENED):
        given = inputs(length, length)
        found = attend_short(*given, None, True)
        for x in (found, *torch.autograd.grad(found.sum(), given)):
            assert x.transpose(1, 2).is_contiguous()


def test_where_it_is_used() -> None:
    def query(length: int, **options: object) -> Tensor:
        return torch.zeros(1, 1, length, 4, **options)  # type: ignore[call-overload, no-any-return]

    trained = query(100, requires_grad=True)
    assert suits_short(query(8), query(8))
    assert suits_short(trained, query(100))
    assert not suits_short(query(100), query(100)), "forward alone the fused kernel is faster with so many keys"
    assert not suits_short(query(500, requires_grad=True), query(500))
    assert not suits_short(query(1), query(8)), "a step of decoding"
    assert not suits_short(query(8, dtype=torch.float16), query(8, dtype=torch.float16))
    with torch.no_grad():
        assert not suits_short(trained, trained)


@pytest.mark.parametrize("length", [8, 200])
def test_attention_chooses_without_a_difference_in_the_result(length: int) -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 2, length, 4, requires_grad=True) for _ in range(3))
    expected = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    torch.testing.assert_close(fused_attention(query, key, value, None, causal=True), expected)


@pytest.mark.parametrize("length", [8, WIDENED])
def test_in_bf16_nothing_between_the_products_is_rounded(length: int) -> None:
    torch.manual_seed(0)
    given = [torch.randn(2, length, 2, 16).transpose(1, 2) * 4 for _ in range(3)]
    half = [x.bfloat16().requires_grad_() for x in given]
    exact = [x.detach().double().requires_grad_() for x in half]
    found = attend_short(half[0], half[1], half[2], None, True)
    expected = attend_short(exact[0], exact[1], exact[2], None, True)
    assert found.dtype == torch.bfloat16
    upstream = torch.randn(expected.shape).bfloat16()
    gradients = torch.autograd.grad(found, half, upstream)
    for ours, theirs in zip(
        (found, *gradients), (expected, *torch.autograd.grad(expected, exact, upstream.double())), strict=True
    ):
        torch.testing.assert_close(ours, theirs.bfloat16(), rtol=2**-7, atol=1e-4)  # the last of its eight bits
