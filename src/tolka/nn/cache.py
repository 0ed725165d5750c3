"""What a decoder's self-attention remembers of the tokens so far: a cache that grows, and one that stays where it is.

Shapes: N prefixes, W width of a position's keys and values side by side, those of all heads.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from tolka.nn.positions import RotaryPositions

_ROOM = 8  # positions by which a cache grows
_LITTLE = 0.3  # share of the rows: those that move within the same memory are copied twice


def chosen(tensor: Tensor, rows: Tensor) -> Tensor:
    """tensor (N, ...), which is used up -> its rows numbered `rows` (N',)."""
    stayed = _closed_up(tensor, rows)
    return tensor.index_select(0, rows) if stayed is None else stayed


def _closed_up(tensor: Tensor, rows: Tensor) -> Tensor | None:
    """The same in the same memory, of which only what changes its place is copied; None unless that is little."""
    if tensor.device.type != "cpu" or torch.is_grad_enabled() or len(rows) > len(tensor):
        return None
    moved = (rows != torch.arange(len(rows))).nonzero()[:, 0]
    if len(moved) > _LITTLE * len(rows):
        return None
    tensor.index_copy_(0, moved, tensor.index_select(0, rows[moved]))
    return tensor[: len(rows)]


class StepCache(ABC):
    """Keys and values of N prefixes, at a step: `turned` (rotary positions), `append`, `attended`."""

    @property
    @abstractmethod
    def attended(self) -> Tensor:
        """(N, S, W): the positions that a query is laid against."""

    @property
    @abstractmethod
    def mask(self) -> Tensor | None:
        """(1, 1, 1, S), true at those that have been filled; None where all have."""

    @abstractmethod
    def append(self, key_value: Tensor) -> Self:
        """With the next position, key_value (N, W). May be in the same store: this one is then used up."""

    @abstractmethod
    def turned(self, rotary: RotaryPositions, x: Tensor) -> Tensor:
        """Queries or keys (N, H, 1, K), turned as those of the position that is appended next."""


class Cache(StepCache):
    """And between two steps."""

    @abstractmethod
    def select(self, rows: Tensor) -> Self:
        """Of the prefixes numbered (N',). This one is used up."""


@dataclass(frozen=True)
class KeyValueCache(Cache):
    """Grows: store (N, room, W), of which the first `length` positions are filled.

    Room ahead spares a copy of all there is at every step.
    """

    store: Tensor
    length: int

    @property
    def attended(self) -> Tensor:
        """See StepCache.attended: what is filled, a view."""
        return self.store[:, : self.length]

    @property
    def mask(self) -> None:
        """See StepCache.mask."""
        return

    def append(self, key_value: Tensor) -> Self:
        """See StepCache.append; in the same store while it has room."""
        roomy = self.roomy()
        roomy.store[:, self.length] = key_value
        return roomy.longer()

    def roomy(self) -> Self:
        """With room for the next position."""
        if self.length < self.store.size(1):
            return self
        store = self._roomier(len(self.store))
        store[:, : self.length] = self.attended
        return type(self)(store, self.length)

    def longer(self) -> Self:
        """With the next position, that has been filled."""
        return type(self)(self.store, self.length + 1)

    def select(self, rows: Tensor) -> Self:
        """See Cache.select; with room for the next position: one copy of what is filled at most."""
        stayed = _closed_up(self.store, rows) if self.length < self.store.size(1) else None
        if stayed is not None:
            return type(self)(stayed, self.length)
        store = self._roomier(len(rows))
        if torch.is_grad_enabled():  # an operation that writes into its argument has no gradient
            store[:, : self.length] = self.attended.index_select(0, rows)
        else:
            torch.index_select(self.attended, 0, rows, out=store[:, : self.length])
        return type(self)(store, self.length)

    def turned(self, rotary: RotaryPositions, x: Tensor) -> Tensor:
        """See StepCache.turned."""
        turned: Tensor = rotary(x, self.length)
        return turned

    def _roomier(self, prefixes: int) -> Tensor:
        return self.store.new_empty(prefixes, (self.length // _ROOM + 1) * _ROOM, self.store.size(2))


@dataclass(frozen=True)
class TracedCache(StepCache):
    """A growing one with room, for a step that is traced: positions (t, 0), t that are filled; turns (1, K / 2): what
    turns the next one, where positions are rotary."""

    store: Tensor
    positions: Tensor
    turns: Tensor | None

    @property
    def attended(self) -> Tensor:
        """See StepCache.attended, after `append`: with the next position."""
        return self.store[:, : self.positions.size(0) + 1]

    @property
    def mask(self) -> None:
        """See StepCache.mask."""
        return

    def append(self, key_value: Tensor) -> Self:
        """See StepCache.append."""
        self.store.select(1, self.positions.size(0)).copy_(key_value)
        return self

    def turned(self, rotary: RotaryPositions, x: Tensor) -> Tensor:
        """See StepCache.turned."""
        assert self.turns is not None
        return rotary.by(x, self.turns)


@dataclass(frozen=True)
class Place:
    """The last position, in tensors that a CUDA graph reads and moves on: number (1,), seen (room,), true up to it.

    One for all layers; the model moves it on before the first.
    """

    number: Tensor
    seen: Tensor

    @classmethod
    def after(cls, length: int, room: int, device: torch.device) -> Self:
        """Of `length` positions that are filled, of `room` that there are."""
        numbers = torch.arange(-1, room, device=device)
        return cls(numbers[length : length + 1].clone(), numbers[1:] < length)

    @property
    def room(self) -> int:
        """How many positions there are."""
        return len(self.seen)

    def move_on(self) -> None:
        """To the next position, in place."""
        self.number.add_(1)
        self.seen.index_fill_(0, self.number, True)


@dataclass(frozen=True)
class FixedCache(Cache):
    """Never moves nor grows, as a CUDA graph wants it: store (N, room, W), all of it attended to through a mask."""

    store: Tensor
    place: Place

    @classmethod
    def of(cls, filled: Tensor, place: Place) -> Self:
        """With the positions (N, length, W) that are filled, in a store of its own. The others are zero, as a mask does
        not hide what is no number."""
        store = filled.new_zeros(len(filled), place.room, filled.size(2))
        store[:, : filled.size(1)] = filled
        return cls(store, place)

    @property
    def attended(self) -> Tensor:
        """See StepCache.attended: all."""
        return self.store

    @property
    def mask(self) -> Tensor:
        """See StepCache.mask."""
        return self.place.seen.view(1, 1, 1, -1)

    def append(self, key_value: Tensor) -> Self:
        """See StepCache.append; at the place, in this very store."""
        self.store.index_copy_(1, self.place.number, key_value[:, None])
        return self

    def select(self, rows: Tensor) -> Self:
        """See Cache.select."""
        return type(self)(self.store.index_select(0, rows), self.place)

    def turned(self, rotary: RotaryPositions, x: Tensor) -> Tensor:
        """See StepCache.turned."""
        return rotary.at(x, self.place.number, self.place.room)
