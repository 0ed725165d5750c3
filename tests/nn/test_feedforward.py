"""The feed-forward sub-layer against its formulas, written out."""

import torch

from tolka.nn.feedforward import FeedForward, usual_inner_width


def test_feedforward_by_hand() -> None:
    layer = FeedForward(3, 7, "relu", 0.0)
    x = torch.randn(2, 3)
    inner = (x @ layer.inner.weight.T + layer.inner.bias).clamp(min=0)
    torch.testing.assert_close(layer(x), inner @ layer.outer.weight.T + layer.outer.bias)


def test_swiglu_by_hand() -> None:
    layer = FeedForward(3, 7, "swiglu", 0.0).double()
    x = torch.randn(2, 3).double()
    gate = x @ layer.inner.weight[:7].T + layer.inner.bias[:7]
    value = x @ layer.inner.weight[7:].T + layer.inner.bias[7:]
    inner = gate / (1 + (-gate).exp()) * value
    torch.testing.assert_close(layer(x), inner @ layer.outer.weight.T + layer.outer.bias)


def test_a_gated_activation_has_as_many_weights() -> None:
    """Three matrices of D x 8/3 D weigh what two of D x 4 D do; 3 divides 24."""
    matrices = {}
    for activation in ("relu", "gelu", "swiglu"):
        layer = FeedForward(24, usual_inner_width(24, activation), activation, 0.0)
        matrices[activation] = layer.inner.weight.numel() + layer.outer.weight.numel()
    assert set(matrices.values()) == {8 * 24 * 24}
    assert usual_inner_width(256, "swiglu") == 688  # 8/3 * 256 = 682.67, and 688 = 86 * 8
