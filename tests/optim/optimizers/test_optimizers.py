"""Optimisers: first updates against the formulas, memory, and which parameters decay."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from rows import each_row
from torch import nn

from tolka.errors import ConfigError
from tolka.models.transformer import TransformerConfig
from tolka.optim.optimizers.adafactor import AdafactorConfig
from tolka.optim.optimizers.base import OPTIMIZERS, OptimizerConfig
from tolka.optim.optimizers.of_torch import AdamConfig, AdamWConfig, SGDConfig

Array = npt.NDArray[np.float64]
WEIGHT = [[0.5, -1.0, 2.0], [0.25, 3.0, -0.75]]
GRADIENTS = [
    [[0.1, -0.2, 0.3], [1.0, 0.05, -0.4]],
    [[-0.3, 0.2, 0.1], [2.0, 0.0, 0.7]],
    [[0.6, 0.6, -0.5], [-1.0, 0.15, 0.02]],
]


class Parameter(nn.Module):
    """A model of one parameter."""

    def __init__(self, values: Any) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(values, dtype=torch.float64))


def after_updates(config: OptimizerConfig, values: Any, gradients: list[Any], lr: float | None = None) -> Array:
    """The parameter, in float64, after one update with each gradient."""
    model = Parameter(values)
    optimizer = config.build(model)
    for group in optimizer.param_groups:
        group["lr"] = lr or group["lr"]
    for gradient in gradients:
        model.weight.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()
    result: Array = model.weight.detach().numpy()
    return result


@pytest.mark.parametrize("decay", [None, 0.1])
def test_adam_and_adamw_by_the_formula(decay: float | None) -> None:
    """Kingma and Ba 2015, algorithm 1; Loshchilov and Hutter 2019, algorithm 2: the decay leaves the moments alone."""
    options: dict[str, Any] = {"lr": 0.01, "beta1": 0.8, "beta2": 0.9, "eps": 1e-3}
    config = AdamConfig(**options) if decay is None else AdamWConfig(**options, weight_decay=decay)
    w, m, v = np.array(WEIGHT), np.zeros((2, 3)), np.zeros((2, 3))
    for t, gradient in enumerate(np.array(GRADIENTS), start=1):
        m, v = 0.8 * m + 0.2 * gradient, 0.9 * v + 0.1 * gradient**2
        step = (m / (1 - 0.8**t)) / (np.sqrt(v / (1 - 0.9**t)) + 1e-3)
        w = w - 0.01 * step - 0.01 * (decay or 0.0) * w
    np.testing.assert_allclose(after_updates(config, WEIGHT, GRADIENTS), w, rtol=1e-9)


def test_adam_s_first_update_is_the_rate() -> None:
    """Both corrected moments are the gradient's own, so every entry moves by lr, whatever its gradient."""
    moved = np.array(WEIGHT) - after_updates(AdamConfig(lr=0.01), WEIGHT, GRADIENTS[:1])
    np.testing.assert_allclose(moved, 0.01 * np.sign(GRADIENTS[0]), rtol=1e-6)


def test_sgd_by_hand() -> None:
    """Weight 10, gradients 1, 1, 1: the velocity is 1, 1.5, 1.75."""
    ones = [[[1.0]]] * 3
    assert after_updates(SGDConfig(lr=0.1, momentum=0.5), [[10.0]], ones).item() == pytest.approx(10 - 0.425)
    assert after_updates(SGDConfig(lr=0.1, momentum=0.0), [[10.0]], ones).item() == pytest.approx(10 - 0.3)
    # The decay joins the gradient: 1 + 0.2 * 10 = 3.
    assert after_updates(SGDConfig(lr=0.1, momentum=0.5, weight_decay=0.2), [[10.0]], ones[:1]).item() == pytest.approx(
        9.7
    )


def adafactor(w: Array, gradients: list[Any], lr: float) -> Array:
    """Shazeer and Stern 2018, algorithms 4 and 5, with sums as the paper has them; the rate takes rho's place."""
    row, column, square = np.zeros(w.shape[:1]), np.zeros(w.shape[-1:]), np.zeros(w.shape)
    for t, gradient in enumerate(np.array(gradients), start=1):
        beta = 1 - t**-0.8
        squares = gradient**2 + 1e-30
        if w.ndim == 2:
            row = beta * row + (1 - beta) * squares.sum(axis=1)
            column = beta * column + (1 - beta) * squares.sum(axis=0)
            estimate = np.outer(row, column) / row.sum()
        else:
            square = estimate = beta * square + (1 - beta) * squares
        update = gradient / np.sqrt(estimate)
        update = update / max(1.0, np.sqrt((update**2).mean()))
        w = w - max(0.001, np.sqrt((w**2).mean())) * lr * update
    return w


def test_adafactor_by_the_formula() -> None:
    config = AdafactorConfig(lr=0.02)
    expected = adafactor(np.array(WEIGHT), GRADIENTS, 0.02)
    np.testing.assert_allclose(after_updates(config, WEIGHT, GRADIENTS), expected, rtol=1e-9)
    vector, gradients = WEIGHT[0], [rows[1] for rows in GRADIENTS]
    expected = adafactor(np.array(vector), gradients, 0.02)
    np.testing.assert_allclose(after_updates(config, vector, gradients), expected, rtol=1e-9)


def test_adafactor_lets_zeros_move_and_leaves_what_has_no_gradient() -> None:
    """One entry of four has a gradient: its update is 1, the mean square 1/4 is not clipped; a size 0 counts 0.001."""
    moved = after_updates(AdafactorConfig(lr=0.1), [0.0] * 4, [[0.0, 0.0, 0.0, 7.0]])
    np.testing.assert_allclose(moved, [0.0, 0.0, 0.0, -0.1 * 0.001], rtol=1e-9)


def test_adafactor_holds_the_rate_below_the_inverse_root_of_the_update() -> None:
    """At update 3 that is 0.58: a higher rate moves as much."""
    third = [after_updates(AdafactorConfig(lr=lr), WEIGHT, [[[0.0] * 3] * 2] * 2 + GRADIENTS[:1]) for lr in (0.6, 0.9)]
    np.testing.assert_allclose(third[0], third[1], rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "numbers"), [("adamw", 2 * 6 * 5), ("adam", 2 * 6 * 5), ("sgd", 30), ("adafactor", 11), ("muon", 30)]
)
def test_memory(name: str, numbers: int) -> None:
    """What is kept for a matrix of 6 by 5, the step's counter apart: 2mn, mn, or m + n."""
    model = nn.Linear(5, 6, bias=False)
    optimizer = OPTIMIZERS.get(name)().build(model)
    model.weight.grad = torch.ones(6, 5)
    optimizer.step()
    (state,) = optimizer.state.values()
    assert sum(value.numel() for key, value in state.items() if key != "step") == numbers


@pytest.mark.parametrize("name", OPTIMIZERS.names())
def test_the_rate_set_from_outside_scales_the_update(name: str) -> None:
    """What a schedule does: twice the rate, twice the first update; the default is not looked at again."""
    config = OPTIMIZERS.get(name)(**({"weight_decay": 0.0} if name in ("adamw", "muon") else {}))
    one, two = (np.array(WEIGHT) - after_updates(config, WEIGHT, GRADIENTS[:1], lr) for lr in (0.3, 0.6))
    np.testing.assert_allclose(two, 2 * one, rtol=1e-9)


@pytest.mark.parametrize("config", [AdamWConfig(weight_decay=0.1), SGDConfig(weight_decay=0.1)])
def test_weight_decay_spares_norms_and_biases(config: OptimizerConfig) -> None:
    model = TransformerConfig(d_model=16, heads=2, layers=1).build(11, 11, True)
    decayed, spared = config.build(model).param_groups
    assert (decayed["weight_decay"], spared["weight_decay"]) == (0.1, 0.0)
    assert all(p.dim() == 2 for p in decayed["params"])
    assert all(p.dim() == 1 for p in spared["params"])
    assert len(decayed["params"]) + len(spared["params"]) == len(list(model.parameters()))


@pytest.mark.parametrize("name", OPTIMIZERS.names())
def test_a_parameter_without_a_gradient_stays(name: str) -> None:
    model = nn.Linear(3, 2)
    before = [p.detach().clone() for p in model.parameters()]
    optimizer = OPTIMIZERS.get(name)().build(model)
    model.weight.grad = torch.ones(2, 3)
    optimizer.step()
    assert not torch.equal(model.weight, before[0])
    assert torch.equal(model.bias, before[1])


def test_sgd_keeps_no_momentum_from_an_update_that_overflowed() -> None:
    """As fp16's scaler does it; torch's fused kernel leaves a momentum there that nobody has written."""
    model = nn.Linear(3, 2, bias=False)
    optimizer = SGDConfig().build(model)
    scaler = torch.amp.GradScaler("cpu", enabled=True)
    scaler.scale(model(torch.full((1, 3), float("inf"))).sum()).backward()
    scaler.step(optimizer)
    assert not optimizer.state


def test_adam_s_options_arrive() -> None:
    model = TransformerConfig(d_model=16, heads=2, layers=1).build(11, 11, True)
    optimizer = AdamWConfig(lr=0.5, beta1=0.8, beta2=0.7, eps=0.25).build(model)
    for group in optimizer.param_groups:
        assert (group["lr"], group["betas"], group["eps"]) == (0.5, (0.8, 0.7), 0.25)


@each_row(
    ("name", "options", "complaint"),
    [
        ("adam", {"lr": 0.0}, r"optimizer.lr \(0.0\) must be above 0; the default is 0.001"),
        ("sgd", {"lr": -1.0}, r"optimizer.lr \(-1.0\) must be above 0; the default is 0.1"),
        ("adam", {"beta2": 1.0}, r"optimizer.beta2 \(1.0\) must be at least 0 and below 1"),
        ("adamw", {"weight_decay": -0.1}, r"optimizer.weight_decay \(-0.1\)"),
        ("sgd", {"weight_decay": -0.1}, r"optimizer.weight_decay \(-0.1\)"),
        ("sgd", {"momentum": 1.0}, r"optimizer.momentum \(1.0\) must be at least 0 and below 1"),
    ],
)
def test_complaints(name: str, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        OPTIMIZERS.get(name)(**options)
