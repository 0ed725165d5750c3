"""RMSNorm against its formula and torch's own."""

import math

import torch
import torch.nn.functional as F

from tolka.nn.norms import RMSNorm


def made(width: int) -> RMSNorm:
    torch.manual_seed(0)
    norm = RMSNorm(width).double()
    torch.nn.init.normal_(norm.weight)
    return norm


def test_rmsnorm_by_hand() -> None:
    norm = made(4)
    x = [3.0, -1.0, 2.0, 5.0]
    root = math.sqrt((9 + 1 + 4 + 25) / 4 + 1e-6)
    expected = torch.tensor([value / root for value in x]).double() * norm.weight
    torch.testing.assert_close(norm(torch.tensor([x]).double())[0], expected, rtol=1e-7, atol=1e-7)


def test_gradients_are_those_of_torch_and_of_finite_differences() -> None:
    norm = made(6)
    x = torch.randn(3, 2, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(norm, (x,))
    weights = torch.randn(3, 2, 6).double()
    own = torch.autograd.grad((norm(x) * weights).sum(), (x, norm.weight))
    reference = F.rms_norm(x, (6,), norm.weight, eps=1e-6)
    for one, other in zip(own, torch.autograd.grad((reference * weights).sum(), (x, norm.weight)), strict=True):
        torch.testing.assert_close(one, other)


def test_gain_one_at_the_start_no_bias_no_centring() -> None:
    norm, x = RMSNorm(8).double(), torch.randn(5, 8).double()
    assert [name for name, _ in norm.named_parameters()] == ["weight"]
    assert (norm.weight == 1).all()
    torch.testing.assert_close(norm(3 * x), norm(x), rtol=1e-5, atol=1e-5)
    assert not torch.allclose(norm(x + 3), norm(x), atol=0.1)


def test_a_row_of_zeros_stays_zeros_with_a_finite_gradient() -> None:
    x = torch.zeros(1, 4, requires_grad=True)
    result = RMSNorm(4)(x)
    result.sum().backward()
    assert (result == 0).all()
    assert x.grad is not None
    assert x.grad.isfinite().all()
