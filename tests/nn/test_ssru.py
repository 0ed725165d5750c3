"""The SSRU against its equations in NumPy, and the scan over packed rows against a loop over time."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from rows import each_row
from torch import Tensor

from tolka.kernels.packing import Packing, token_positions
from tolka.nn.ssru import Ssru, _Recurrence, scan

D = 3
LENGTHS = {"one token": [1, 1], "of all lengths": [5, 1, 8, 2, 7, 1], "one sentence": [13], "powers of two": [4, 8, 2]}


def packings(lengths: list[int], wider: int = 0) -> dict[str, Packing]:
    """Every layout of sentences of these lengths: packed, with rows that nobody reads, and padded."""
    counts, longest = torch.tensor(lengths), max(lengths) + wider
    tokens = token_positions(counts, longest)
    return {
        "packed": Packing(counts, longest, tokens),
        "packed, padding rows": Packing(counts, longest, tokens, padding_rows=3),
        "padded": Packing(counts, longest),
    }


def by_hand(layer: Ssru, x: Tensor, places: list[int]) -> list[list[float]]:
    """relu(c_t) of every row, one value after the other."""
    w, of_gate, b = (
        parameter.detach().numpy() for parameter in (layer.input.weight, layer.forget.weight, layer.forget.bias)
    )
    c, found = np.zeros(D), []
    for row, place in zip(x.detach().numpy(), places, strict=True):
        before = np.zeros(D) if place == 0 else c
        f = 1.0 / (1.0 + np.exp(-(of_gate @ row + b)))
        c = f * before + (1.0 - f) * (w @ row)
        found.append([max(value, 0.0) for value in c])
    return found


@each_row("wider", [0, 4])
@each_row("lengths", LENGTHS)
def test_the_equations_in_every_layout(lengths: str, wider: int) -> None:
    torch.manual_seed(0)
    layer = Ssru(D).double()
    for layout, rows in packings(LENGTHS[lengths], wider).items():
        x = torch.randn(len(rows.places), D).double()
        assert layer(x, rows).tolist() == [pytest.approx(row) for row in by_hand(layer, x, rows.places.tolist())], (
            layout
        )


def test_gradients_are_finite_differences() -> None:
    """None crosses from a sentence into another one."""
    torch.manual_seed(0)
    for layout, rows in packings([4, 1, 3]).items():
        first = (rows.places == 0)[:, None]
        x = torch.randn(len(first), D).double().requires_grad_()
        gates = torch.rand(len(first), D).double().requires_grad_()
        recurrence = partial(_recurrence, first=first, longest=rows.longest)
        assert torch.autograd.gradcheck(recurrence, (x, gates)), layout


def _recurrence(x: Tensor, gates: Tensor, first: Tensor, longest: int) -> Any:
    return _Recurrence.apply(x, gates, first, longest)  # type: ignore[no-untyped-call]


def test_a_scan_by_hand() -> None:
    """s_t <- g_t s_(t-1) + s_t, with sentences of three and two rows."""
    gates = torch.tensor([[0.0], [0.5], [2.0], [0.0], [3.0]])
    states = torch.tensor([[4.0], [1.0], [1.0], [5.0], [1.0]])
    assert scan(gates, states, 3).flatten().tolist() == [4.0, 3.0, 7.0, 5.0, 16.0]


@each_row("bias", [-200.0, -3.0, 3.0, 200.0])
def test_long_sentences_stay_exact_whatever_the_gates(bias: float) -> None:
    """The product of 800 gates is far below the smallest number: no quotient of such products is taken."""
    torch.manual_seed(0)
    layer = Ssru(D)
    torch.nn.init.constant_(layer.forget.bias, bias)
    rows = packings([800, 1, 200])["packed"]
    x = torch.randn(len(rows.places), D, requires_grad=True)
    out = layer(x, rows)
    out.sum().backward()
    expected = torch.tensor(by_hand(layer.double(), x.double(), rows.places.tolist()))
    torch.testing.assert_close(out.double(), expected, rtol=1e-4, atol=1e-5)
    assert x.grad is not None
    assert math.isfinite(float(x.grad.abs().sum()))


def test_bf16_sums_in_fp32() -> None:
    """500 equal inputs through a gate of 1 - 2^-9: bf16, in which that is 1, would never forget."""
    layer = Ssru(1).bfloat16()
    with torch.no_grad():
        layer.input.weight.fill_(1.0)
        layer.forget.weight.fill_(0.0)
        layer.forget.bias.fill_(math.log(511.0))
    gate = torch.sigmoid(layer.forget.bias.float()).item()
    rows = packings([500])["packed"]
    out = layer(torch.ones(500, 1).bfloat16(), rows)
    assert out.dtype == torch.bfloat16
    assert out[-1].item() == pytest.approx(1.0 - gate**500, rel=2**-8)
    state, x = torch.zeros(1, 1), torch.ones(1, 1).bfloat16()
    with torch.no_grad():
        steps = [layer.step(x, state).item() for _ in range(500)]
    assert steps == pytest.approx(out.flatten().tolist(), rel=2**-7)
