"""The simpler simple recurrent unit, in place of a decoder's self-attention (Kim et al. 2019, section 3.1).

Shapes: N rows, the tokens of several sentences (see `tolka.kernels.packing`), D model width.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from tolka.kernels.packing import Packing
from tolka.nn.linear import Linear


class Ssru(nn.Module):
    """c_t = f_t c_(t-1) + (1 - f_t) W x_t with f_t = sigmoid(W_f x_t + b_f), from c = 0; its output is max(0, c_t).

    A prefix is one state c (D,), where attention has keys and values of every position. As in Marian, only the forget
    gate has a bias, and no projection follows.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.input = Linear(d_model, d_model, bias=False)
        self.forget = Linear(d_model, d_model)

    def forward(self, x: Tensor, rows: Packing) -> Tensor:
        """(N, D) -> (N, D), all positions of all sentences at once."""
        first = (rows.places == 0)[:, None]
        states: Tensor = _Recurrence.apply(*self._inputs(x), first, rows.longest)  # type: ignore[no-untyped-call]
        return torch.relu(states).to(x.dtype)

    def step(self, x: Tensor, state: Tensor) -> Tensor:
        """One new position x (N, D) -> (N, D). state: c before it (N, D), in fp32 at least; it becomes c after it."""
        inputs, forget = self._inputs(x)
        torch.lerp(inputs, state, forget, out=state)
        return torch.relu(state).to(x.dtype)

    def _inputs(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(N, D) -> W x and f, (N, D) each, in fp32 at least: a state is the sum of a sentence's inputs."""
        dtype = torch.promote_types(x.dtype, torch.float32)
        return self.input(x).to(dtype), torch.sigmoid(self.forget(x).to(dtype))


class _Recurrence(torch.autograd.Function):
    """c_t = f_t c_(t-1) + (1 - f_t) x_t with its gradient, from c = 0 at each sentence's first row.

    With G_t the upstream gradient of c_t, g_t = G_t + f_(t+1) g_(t+1) is that of all paths: the same recurrence, from
    a sentence's end. Then dx_t = (1 - f_t) g_t and df_t = (c_(t-1) - x_t) g_t.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, forget: Tensor, first: Tensor, longest: int) -> Tensor:
        states = scan(forget.masked_fill(first, 0.0), torch.addcmul(x, forget, x, value=-1), longest)
        ctx.save_for_backward(x, forget, first, states)
        ctx.longest = longest
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        x, forget, first, states = ctx.saved_tensors
        # The first row's gate is 0, and `roll` makes it the last row's.
        gradient = scan(forget.masked_fill(first, 0.0).roll(-1, 0).flip(0), gradient.flip(0), ctx.longest).flip(0)
        before = states.roll(1, 0).masked_fill_(first, 0.0)
        return torch.addcmul(gradient, forget, gradient, value=-1), before.sub_(x).mul_(gradient), None, None


def scan(gates: Tensor, states: Tensor, longest: int) -> Tensor:
    """Compute s_t <- gates_t s_(t-1) + s_t in place, row by row, and return the states (N, D); overwrites gates (N, D).

    The gate is 0 where a sentence begins: at the first row, and at least once in any `longest` rows.
    """
    # Two steps are one with the gate f f' and the input f' s + s' (Blelloch 1990, section 1.4). Blocks of 2, 4, 8 rows
    # are joined until each contains a beginning, which fixes its last state; then follow the states between.
    # 2 log2(longest) passes over ever fewer rows, where a loop over time has `longest`.
    rows, strides = len(states), [2**level for level in range((longest - 1).bit_length())]
    for stride in strides:
        former, latter = slice(stride - 1, rows - stride, 2 * stride), slice(2 * stride - 1, None, 2 * stride)
        states[latter].addcmul_(gates[latter], states[former])
        gates[latter].mul_(gates[former])
    for stride in reversed(strides):
        former, latter = slice(2 * stride - 1, rows - stride, 2 * stride), slice(3 * stride - 1, None, 2 * stride)
        states[latter].addcmul_(gates[latter], states[former])
    return states
