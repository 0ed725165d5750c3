"""Recurrent layers: their equations step by step, and torch's kernels where they compute the same.

Shapes: B sentences, L steps, X input width, H width of one direction's state, D = H times the directions.
"""

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tolka.kernels.matmul import matmul
from tolka.kernels.recurrence import padded_recurrence, takes_padding

State = tuple[Tensor, ...]
"""(h,), or (h, C) of an LSTM; each (B, H)."""


class RecurrentLayer(nn.RNNBase):
    """One layer, forward or bidirectional, batch first; its parameters are named as in torch.nn's recurrent modules.

    Padding never enters a state: a sentence's last token ends the forward direction and begins the backward one.

    A new cell inherits from this class and from the one of nn.RNN, nn.LSTM and nn.GRU whose parameters it has (1, 4 or
    3 gates), defines `gates`, `tensors` and `cell`, and gets a line in CELLS. Where its equations are not torch's, it
    also defines `encode` and `decode`, as GruLayer does.
    """

    gates: ClassVar[int]
    """Number of gates, each with a matrix for the input and one for the previous state."""
    tensors: ClassVar[int] = 1
    """Number of tensors in a state."""

    def __init__(self, width: int, hidden: int, bidirectional: bool = False) -> None:
        """width: X. hidden: H."""
        super().__init__(width, hidden, batch_first=True, bidirectional=bidirectional)  # type: ignore[call-arg,arg-type]

    @abstractmethod
    def cell(self, inputs: Tensor, state: State, direction: int = 0) -> State:
        """Return the state after one step. inputs (B, gates * H): `project(x_t)`; state: the previous one."""

    @property
    def widths(self) -> list[int]:
        """Rows of each gate in the matrices that `stacked` returns."""
        return [self.hidden_size] * self.gates

    def stacked(self) -> list[Tensor]:
        """Return the parameters that stack the gates' matrices, `widths` rows each."""
        return [weight for direction in self.directions for weight in self._weights(direction)[:2]]

    def matrices(self) -> list[Tensor]:
        """Return the matrices of each gate, (H, X) or (H, H), as views."""
        return [part for matrix in self.stacked() for part in torch.split(matrix, self.widths)]

    def biases(self) -> list[Tensor]:
        """Return the biases, (gates * H,) each; a step adds the two of its direction."""
        return [bias for name, bias in self.named_parameters() if name.startswith("bias")]

    @property
    def directions(self) -> range:
        """0 for forward, 1 for backward."""
        return range(2 if self.bidirectional else 1)

    def _weights(self, direction: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return W (gates * H, X), U (gates * H, H), b (gates * H)."""
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        w, u, b, c = (getattr(self, name + ("_reverse" if direction else "")) for name in names)
        # torch.nn has two biases, as cuDNN does, and adds them.
        return w, u, b + c

    def project(self, x: Tensor, direction: int = 0) -> Tensor:
        """(..., X) -> (..., gates * H): x W + b."""
        # Independent of the state, so that all steps are one multiplication; only h U has to wait for the step before.
        w, _, b = self._weights(direction)
        return matmul(x, w, b)

    def unroll(self, x: Tensor, lengths: Tensor | None, state: State | None = None, direction: int = 0) -> list[State]:
        """Return the state at every position, computed step by step from the equations.

        x (B, L, X); lengths (B,), or None without padding; state: before the first step, zeros if None.
        """
        inputs = self.project(x, direction).unbind(1)
        state = (x.new_zeros(len(x), self.hidden_size),) * self.tensors if state is None else state
        states: list[State] = []
        positions = range(x.size(1))
        for t in reversed(positions) if direction else positions:
            after = self.cell(inputs[t], state, direction)
            if lengths is not None:
                # Padding leaves the state as it is: forward, the last state is that of a sentence's last token;
                # backward, zeros arrive there.
                inside = (lengths > t)[:, None]
                after = tuple(torch.where(inside, new, old) for new, old in zip(after, state, strict=True))
            state = after
            states.append(state)
        return states[::-1] if direction else states

    def encode(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, State]:
        """(B, L, X), (B,) -> h at every position (B, L, D), zero at padding, and the final state, (B, D) each."""
        is_lstm = self.tensors > 1
        if takes_padding(x, is_lstm):
            return padded_recurrence(x, lengths, self.all_weights, self.training, is_lstm)
        # Packed, the backward direction begins at each sentence's own last token, not at the padding behind it.
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        outputs, last = super().forward(packed)
        padded, _ = pad_packed_sequence(outputs, batch_first=True, total_length=x.size(1))
        # (directions, B, H) -> (B, D): both directions side by side, as in the outputs.
        return padded, (torch.cat(tuple(last), dim=-1),)

    def decode(self, x: Tensor, state: State) -> Tensor:
        """(B, L, X), state (B, H) -> h at every position (B, L, H). Forward only."""
        # Padding is computed too: it follows the tokens, whose states it cannot change.
        before = tuple(tensor[None].contiguous() for tensor in state)
        return super().forward(x, before if self.tensors > 1 else before[0])[0]


def unrolled_encode(layer: RecurrentLayer, x: Tensor, lengths: Tensor) -> tuple[Tensor, State]:
    """Compute `RecurrentLayer.encode` by `unroll`, step by step."""
    states = [layer.unroll(x, lengths, direction=direction) for direction in layer.directions]
    inside = torch.arange(x.size(1), device=x.device) < lengths[:, None]
    h = torch.cat([torch.stack([state[0] for state in one], dim=1) for one in states], dim=-1)
    # The backward direction ends at the first token.
    ends = [one[0] if direction else one[-1] for direction, one in enumerate(states)]
    last = tuple(torch.cat(directions, dim=-1) for directions in zip(*ends, strict=True))
    return h * inside[..., None], last


class ElmanLayer(RecurrentLayer, nn.RNN):
    """h_t = tanh(x_t W + h_{t-1} U + b) (Elman 1990)."""

    gates = 1

    def cell(self, inputs: Tensor, state: State, direction: int = 0) -> State:
        _, u, _ = self._weights(direction)
        return (torch.tanh(inputs + matmul(state[0], u)),)


class LstmLayer(RecurrentLayer, nn.LSTM):
    """Hochreiter and Schmidhuber (1997) with the forget gate of Gers et al. (2000).

    i, f, o = sigmoid(.), C~ = tanh(.), each of x_t W + h_{t-1} U + b; C_t = f C_{t-1} + i C~; h_t = o tanh(C_t).
    """

    gates, tensors = 4, 2

    def open_forget_gates(self) -> None:
        """Set the bias of every forget gate to 1 (Gers et al. 2000; Jozefowicz et al. 2015)."""
        # sigmoid(1) = 0.73: at the start a cell keeps most of C_{t-1}, so that the gradient reaches far back.
        with torch.no_grad():
            # A step adds two biases, of which every second one stays 0.
            for bias in self.biases()[::2]:
                bias[self.hidden_size : 2 * self.hidden_size] = 1.0

    def cell(self, inputs: Tensor, state: State, direction: int = 0) -> State:
        _, u, _ = self._weights(direction)
        before, memory = state
        # The order in which torch.nn stacks the gates.
        i, f, candidate, o = (inputs + matmul(before, u)).chunk(4, dim=-1)
        # A sum: along C_t the gradient is multiplied by f alone, in Elman's layer by U and tanh' at every step.
        memory = torch.sigmoid(f) * memory + torch.sigmoid(i) * torch.tanh(candidate)
        return torch.sigmoid(o) * torch.tanh(memory), memory


class GruLayer(RecurrentLayer, nn.GRU):
    """Cho et al. (2014): r, z = sigmoid(.); h~ = tanh(x_t W + (r h_{t-1}) U + b); h_t = (1 - z) h~ + z h_{t-1}."""

    gates = 3

    def cell(self, inputs: Tensor, state: State, direction: int = 0) -> State:
        _, u, _ = self._weights(direction)
        (before,) = state
        widths = [2 * self.hidden_size, self.hidden_size]
        both, candidate = torch.split(inputs, widths, dim=-1)
        of_gates, of_candidate = torch.split(u, widths)
        r, z = torch.sigmoid(both + matmul(before, of_gates)).chunk(2, dim=-1)
        # The reset gate before U, as in the paper.
        new = torch.tanh(candidate + matmul(r * before, of_candidate))
        # z near 1 keeps the state (equation 7); other texts exchange z and 1 - z.
        return ((1.0 - z) * new + z * before,)

    # torch's GRU, and cuDNN's, apply the reset gate after U, which is another function: so every step is computed here.
    def encode(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, State]:
        return unrolled_encode(self, x, lengths)

    def decode(self, x: Tensor, state: State) -> Tensor:
        return torch.stack([after[0] for after in self.unroll(x, None, state)], dim=1)


CELLS: dict[str, type[RecurrentLayer]] = {"rnn": ElmanLayer, "lstm": LstmLayer, "gru": GruLayer}
