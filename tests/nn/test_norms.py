"""The normalisation layers against their formulas."""

import math
from typing import Any

import torch

from tolka.models.transformer.layers import NORMALIZATIONS


def test_rmsnorm_by_hand() -> None:
    torch.manual_seed(0)
    norm: Any = NORMALIZATIONS["rmsnorm"](4).double()
    torch.nn.init.normal_(norm.weight)
    x = [3.0, -1.0, 2.0, 5.0]
    root = math.sqrt((9 + 1 + 4 + 25) / 4 + 1e-6)
    expected = torch.tensor([value / root for value in x]).double() * norm.weight
    torch.testing.assert_close(norm(torch.tensor([x]).double())[0], expected, rtol=1e-7, atol=1e-7)


def test_gain_one_at_the_start_no_bias_no_centring() -> None:
    norm: Any = NORMALIZATIONS["rmsnorm"](8).double()
    x = torch.randn(5, 8).double()
    assert [name for name, _ in norm.named_parameters()] == ["weight"]
    assert (norm.weight == 1).all()
    torch.testing.assert_close(norm(3 * x), norm(x), rtol=1e-5, atol=1e-5)
    assert not torch.allclose(norm(x + 3), norm(x), atol=0.1)


def test_layernorm_centres_and_has_a_bias() -> None:
    norm, x = NORMALIZATIONS["layernorm"](8).double(), torch.randn(5, 8).double()
    assert [name for name, _ in norm.named_parameters()] == ["weight", "bias"]
    torch.testing.assert_close(norm(x + 3), norm(x))


def test_a_row_of_zeros_stays_zeros_with_a_finite_gradient() -> None:
    x = torch.zeros(1, 4, requires_grad=True)
    result = NORMALIZATIONS["rmsnorm"](4)(x)
    result.sum().backward()
    assert (result == 0).all()
    assert x.grad is not None
    assert x.grad.isfinite().all()
