"""Statistics and seeding of the cheap dropout masks."""

import pytest
import torch

from tolka.kernels.dropout import dropout, keep_mask
from tolka.nn.dropout import Dropout


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.5, 0.9])
def test_the_rate_is_kept(rate: float) -> None:
    torch.manual_seed(1)
    n = 1_000_000
    dropped = 1.0 - keep_mask(torch.Size([n]), rate).double().mean().item()
    assert abs(dropped - rate) < 5 * (rate * (1 - rate) / n) ** 0.5 + 1 / 65536


def test_values_are_zero_or_scaled_and_gradients_follow_the_mask() -> None:
    torch.manual_seed(1)
    x = torch.randn(100, 33, requires_grad=True)
    y = dropout(x, 0.2, training=True)
    y.sum().backward()
    assert x.grad is not None
    kept = x.grad != 0
    torch.testing.assert_close(y, torch.where(kept, x / 0.8, 0.0))
    torch.testing.assert_close(x.grad, kept / 0.8)


def test_torch_seed_decides_the_mask() -> None:
    torch.manual_seed(7)
    first, second = (keep_mask(torch.Size([64, 64]), 0.5) for _ in range(2))
    torch.manual_seed(7)
    assert torch.equal(keep_mask(torch.Size([64, 64]), 0.5), first)
    assert not torch.equal(first, second)


def test_neighbouring_values_are_independent() -> None:
    torch.manual_seed(2)
    mask = keep_mask(torch.Size([400_000]), 0.5).double() * 2 - 1
    for lag in (1, 2, 4, 8, 64, 256):
        assert abs((mask[:-lag] * mask[lag:]).mean().item()) < 0.01


def test_off_in_evaluation_and_at_rate_zero() -> None:
    x = torch.randn(3, 3)
    assert Dropout(0.5).eval()(x) is x
    assert dropout(x, 0.0, training=True) is x


def test_dtype_is_kept() -> None:
    assert dropout(torch.ones(8, dtype=torch.bfloat16), 0.5, training=True).dtype == torch.bfloat16
