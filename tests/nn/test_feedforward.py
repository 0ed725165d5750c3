"""The feed-forward sub-layer against its formulas, written out."""

import torch

from tolka.models.transformer import TransformerConfig
from tolka.nn.feedforward import FeedForward


def test_feedforward_by_hand() -> None:
    layer = FeedForward(3, 7, "relu", 0.0)
    x = torch.randn(2, 3)
    inner = (x @ layer.inner.weight.T + layer.inner.bias).clamp(min=0)
    torch.testing.assert_close(layer(x), inner @ layer.outer.weight.T + layer.outer.bias)


def test_gelu_by_hand() -> None:
    """x * Phi(x) (Hendrycks and Gimpel 2016), Phi by the error function."""
    layer = FeedForward(3, 7, "gelu", 0.0).double()
    x = torch.randn(2, 3).double()
    inner = x @ layer.inner.weight.T + layer.inner.bias
    inner = inner * (1 + torch.erf(inner / 2**0.5)) / 2
    torch.testing.assert_close(layer(x), inner @ layer.outer.weight.T + layer.outer.bias)


def test_dropout_stands_behind_the_activation() -> None:
    """Dropout is after the activation: a kept value is 2 gelu(x), not gelu(2 x)."""
    torch.manual_seed(0)
    layer = FeedForward(3, 4000, "gelu", 0.5)
    x = torch.ones(1, 3)
    inner = torch.nn.functional.gelu(x @ layer.inner.weight.T + layer.inner.bias)
    seen: list[torch.Tensor] = []
    layer.outer.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    layer.train()(x)
    kept = seen[0] != 0
    assert 0.45 < kept.sum().item() / (inner != 0).sum().item() < 0.55
    torch.testing.assert_close(seen[0][kept], 2 * inner[kept])


def test_swiglu_by_hand() -> None:
    layer = FeedForward(3, 7, "swiglu", 0.0).double()
    x = torch.randn(2, 3).double()
    gate = x @ layer.inner.weight[:7].T + layer.inner.bias[:7]
    value = x @ layer.inner.weight[7:].T + layer.inner.bias[7:]
    inner = gate / (1 + (-gate).exp()) * value
    torch.testing.assert_close(layer(x), inner @ layer.outer.weight.T + layer.outer.bias)


def test_a_gated_activation_has_as_many_weights() -> None:
    """Three matrices of D x 8/3 D have as many weights as two of D x 4 D; 3 divides 24."""
    matrices = {}
    for activation in ("relu", "gelu", "swiglu"):
        width = TransformerConfig(d_model=24, activation=activation).inner_width
        layer = FeedForward(24, width, activation, 0.0)
        matrices[activation] = layer.inner.weight.numel() + layer.outer.weight.numel()
    assert set(matrices.values()) == {8 * 24 * 24}
    assert TransformerConfig(activation="swiglu").inner_width == 688  # 8/3 * 256 = 682.67, and 688 = 86 * 8
