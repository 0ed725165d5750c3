"""Recurrent cells against their equations in NumPy; the library's kernels against the same, step by step."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from rows import each_row
from torch import Tensor, nn

from tolka.nn.rnn_cells import CELLS, GruLayer, LstmLayer, RecurrentLayer, unrolled_encode

Array = npt.NDArray[np.float64]
X, H, L = 5, 6, 7
LENGTHS = torch.tensor([7, 3, 1, 5])


def sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def by_hand(layer: RecurrentLayer, kind: str, x: Array, backward: bool) -> tuple[Array, list[Array]]:
    """One sentence x (L, X): h (L, H) in the order of the text, and the last state; gates in torch's order."""
    suffix = "_l0_reverse" if backward else "_l0"
    w, u, b, c = (
        getattr(layer, name + suffix).detach().numpy() for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    h, memory, found = np.zeros(H), np.zeros(H), []
    maps = len(w) // H
    ws, us, bs = np.split(w, maps), np.split(u, maps), np.split(b + c, maps)
    for x_t in x[::-1] if backward else x:
        of = [ws[n] @ x_t + bs[n] for n in range(maps)]
        if kind == "rnn":
            h = np.tanh(of[0] + us[0] @ h)
        elif kind == "lstm":
            i, f, o = (sigmoid(of[n] + us[n] @ h) for n in (0, 1, 3))
            memory = f * memory + i * np.tanh(of[2] + us[2] @ h)
            h = o * np.tanh(memory)
        else:
            r, z = (sigmoid(of[n] + us[n] @ h) for n in (0, 1))
            h = (1 - z) * np.tanh(of[2] + us[2] @ (r * h)) + z * h
        found.append(h)
    return np.stack(found[::-1] if backward else found), [h, memory][: layer.tensors]


def zeros(layer: RecurrentLayer, x: Tensor) -> tuple[Tensor, ...]:
    """The state before the first token."""
    return (x.new_zeros(len(x), layer.hidden_size),) * layer.tensors


def make(kind: str, bidirectional: bool) -> tuple[RecurrentLayer, Tensor]:
    torch.manual_seed(1)
    layer = CELLS[kind](X, H, bidirectional).double()
    for bias in layer.biases():  # torch draws all weights from one range: what is told apart must differ
        nn.init.normal_(bias)
    return layer, torch.randn(len(LENGTHS), L, X, dtype=torch.float64)


@each_row("bidirectional", [False, True])
@each_row("kind", CELLS)
def test_the_equations_whatever_the_padding(kind: str, bidirectional: bool) -> None:
    """encode equals the same step by step; padding holds large values that must not affect anything."""
    layer, x = make(kind, bidirectional)
    for row, length in enumerate(LENGTHS.tolist()):
        x[row, length:] = 1e6
    encoded, ends = layer.encode(x, LENGTHS)
    slow, slow_ends = unrolled_encode(layer, x, LENGTHS)
    torch.testing.assert_close(slow, encoded)
    for row, length in enumerate(LENGTHS.tolist()):
        found = [by_hand(layer, kind, x[row, :length].numpy(), backward == 1) for backward in layer.directions]
        expected = np.concatenate([h for h, _ in found], axis=-1)
        np.testing.assert_allclose(encoded[row, :length].detach().numpy(), expected, rtol=1e-10, atol=1e-12)
        assert encoded[row, length:].abs().sum() == 0
        for tensor, slow_tensor, parts in zip(
            ends, slow_ends, zip(*(end for _, end in found), strict=True), strict=True
        ):
            np.testing.assert_allclose(tensor[row].detach().numpy(), np.concatenate(parts), rtol=1e-10, atol=1e-12)
            torch.testing.assert_close(slow_tensor[row], tensor[row])


@pytest.mark.parametrize("kind", CELLS)
def test_decode_goes_on_from_a_state(kind: str) -> None:
    """Decoding a sentence in two halves equals decoding it whole."""
    layer, x = make(kind, bidirectional=False)
    whole = layer.decode(x, zeros(layer, x))
    states = layer.unroll(x, None)
    torch.testing.assert_close(torch.stack([state[0] for state in states], dim=1), whole)
    torch.testing.assert_close(layer.decode(x[:, 3:], states[2]), whole[:, 3:])
    torch.testing.assert_close(layer.cell(layer.project(x[:, 3]), states[2])[0], whole[:, 3])


@each_row("bidirectional", [False, True])
@each_row("kind", CELLS)
def test_gradients_are_the_same_by_either_path(kind: str, bidirectional: bool) -> None:
    layer, x = make(kind, bidirectional)
    gradients = []
    for path in (layer.encode, lambda x, lengths: unrolled_encode(layer, x, lengths)):
        layer.zero_grad()
        given = x.clone().requires_grad_()
        outputs, ends = path(given, LENGTHS)
        (outputs.square().sum() + sum(end.sin().sum() for end in ends)).backward()
        parameters: list[Any] = list(layer.parameters())
        gradients.append([given.grad, *(weight.grad.clone() for weight in parameters)])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


def test_the_library_s_gru_is_another_function() -> None:
    """torch's GRU applies the reset gate after the matrix. Should that change, its kernel could be used."""
    ours, x = make("gru", bidirectional=False)
    theirs = nn.GRU(X, H, batch_first=True).double()
    theirs.load_state_dict(ours.state_dict())
    assert not torch.allclose(theirs(x)[0], ours.decode(x, zeros(ours, x)))


def test_forget_gates_begin_open() -> None:
    layer = LstmLayer(X, H, bidirectional=True)
    for bias in layer.biases():
        nn.init.zeros_(bias)
    layer.open_forget_gates()
    for direction in layer.directions:
        _, _, b = layer._weights(direction)
        assert b.tolist() == [0.0] * H + [1.0] * H + [0.0] * 2 * H


def test_maps_are_counted() -> None:
    assert (LstmLayer(X, H).widths, GruLayer(X, H).widths) == ([H] * 4, [H] * 3)
    assert [part.shape for part in GruLayer(X, H, bidirectional=True).matrices()] == [(H, X)] * 3 + [(H, H)] * 3 + [
        (H, X)
    ] * 3 + [(H, H)] * 3


@pytest.mark.parametrize(("autocast", "tolerance"), [(False, 1e-5), (True, 0.03)])
def test_the_precisions_of_training_are_the_same_by_either_path(autocast: bool, tolerance: float) -> None:
    """In float64 torch has no kernel of oneDNN's."""
    layer, x = make("lstm", bidirectional=True)
    layer, x = layer.float(), x.float()
    slow, slow_ends = unrolled_encode(layer, x, LENGTHS)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        try:
            encoded, ends = layer.encode(x, LENGTHS)
        except RuntimeError as error:
            # oneDNN's LSTM has bf16 only on some processors; on others such a training is refused.
            if "could not create a primitive" in str(error):
                pytest.skip("this processor has no LSTM in bf16")
            raise
    for one, other in zip((slow, *slow_ends), (encoded, *ends), strict=True):
        torch.testing.assert_close(one, other.float(), rtol=tolerance, atol=tolerance)
