"""Recurrent layers over padded sentences: packed sequences make a GPU wait, and a CPU's kernel takes none.

Shapes: B sentences, L steps, X input width, H width of one direction's state.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

_OPEN = 1e4  # before the sigmoid, which makes it 1, and its negative 0


def takes_padding(x: Tensor, is_lstm: bool) -> bool:
    """Return whether `padded_recurrence` is the faster way on the processor of x."""
    return is_lstm or x.device.type != "cpu"


def padded_recurrence(
    x: Tensor, lengths: Tensor, weights: Sequence[Sequence[Tensor]], training: bool, is_lstm: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """(B, L, X), (B,) -> h at every position (B, L, H times the directions), 0 at padding, and the final h (and C).

    weights: of each direction, as torch.nn has them: (gates * H, X), (gates * H, H) and two biases (gates * H,).
    training: as there. is_lstm: else Elman's layer. A sentence's last token ends the forward direction and begins the
    backward one, as in a packed sequence.
    """
    positions = torch.arange(x.size(1), device=x.device)
    padding = (positions >= lengths[:, None])[..., None]
    backwards = torch.where(padding[..., 0], positions, lengths[:, None] - 1 - positions)[..., None]
    if is_lstm:
        # A last feature, 1 at padding, closes the input gate there and opens the forget gate: C stays what it was at
        # the last token.
        x = torch.cat([x.masked_fill(padding, 0.0), padding.to(x.dtype)], dim=-1)
    outputs, ends = [], []
    for direction, (of_input, of_state, *biases) in enumerate(weights):
        width = of_state.size(1)
        tokens = x.gather(1, backwards.expand_as(x)) if direction else x
        zeros = x.new_zeros(1, len(x), width)
        if is_lstm:
            column = of_input.new_zeros(4, width)
            column[0], column[1] = -_OPEN, _OPEN
            parameters = [torch.cat([of_input, column.view(-1, 1)], dim=1), of_state, *biases]
            h, _, memory = torch.lstm(tokens, (zeros, zeros), parameters, True, 1, 0.0, training, False, True)
        else:
            parameters = [of_input, of_state, *biases]
            h, memory = torch.rnn_tanh(tokens, zeros, parameters, True, 1, 0.0, training, False, True)
        last = h[torch.arange(len(h), device=x.device), lengths - 1]
        ends.append((last, memory[0]) if is_lstm else (last,))
        outputs.append(h.gather(1, backwards.expand_as(h)) if direction else h)
    state = tuple(torch.cat(directions, dim=-1) for directions in zip(*ends, strict=True))
    return torch.cat(outputs, dim=-1).masked_fill(padding, 0.0), state
