"""LSTM layers over padded sentences, for processors whose kernel takes no packed sequences.

Shapes: B sentences, L steps, X input width, H width of one direction's state.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

_OPEN = 1e4  # before the sigmoid, which makes it 1, and its negative 0


def takes_padding(x: Tensor) -> bool:
    """Return whether `padded_lstm` is the faster way on the processor of x: on a CPU, whose kernel is oneDNN's."""
    return x.device.type == "cpu"


def padded_lstm(
    x: Tensor, lengths: Tensor, weights: Sequence[Sequence[Tensor]], training: bool
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """(B, L, X), (B,) -> h at every position (B, L, H times the directions), 0 at padding, and the final h and C.

    weights: of each direction, as torch.nn.LSTM has them: (4 H, X), (4 H, H) and two biases (4 H,). training: as there.
    A sentence's last token ends the forward direction and begins the backward one, as in a packed sequence.
    """
    positions = torch.arange(x.size(1), device=x.device)
    padding = (positions >= lengths[:, None])[..., None]
    backwards = torch.where(padding[..., 0], positions, lengths[:, None] - 1 - positions)[..., None]
    # A last feature, 1 at padding, closes the input gate there and opens the forget gate: C stays what it was at the
    # last token.
    x = torch.cat([x.masked_fill(padding, 0.0), padding.to(x.dtype)], dim=-1)
    outputs, ends = [], []
    for direction, (of_input, of_state, *biases) in enumerate(weights):
        width = of_state.size(1)
        column = of_input.new_tensor([-_OPEN, _OPEN, 0.0, 0.0]).repeat_interleave(width)[:, None]
        tokens = x.gather(1, backwards.expand_as(x)) if direction else x
        zeros = x.new_zeros(1, len(x), width)
        parameters = [torch.cat([of_input, column], dim=1), of_state, *biases]
        h, _, memory = torch.lstm(tokens, (zeros, zeros), parameters, True, 1, 0.0, training, False, True)
        ends.append((h[torch.arange(len(h), device=x.device), lengths - 1], memory[0]))
        outputs.append(h.gather(1, backwards.expand_as(h)) if direction else h)
    state, memory = (torch.cat(directions, dim=-1) for directions in zip(*ends, strict=True))
    return torch.cat(outputs, dim=-1).masked_fill(padding, 0.0), (state, memory)
