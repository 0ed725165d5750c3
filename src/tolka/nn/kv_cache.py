"""The key-value cache: the keys and values of the prefix, to which a decoder's self-attention attends at each step.

Shapes: N prefixes, W width of a position's keys and values side by side, those of all heads.
"""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

_ROOM = 8  # positions by which a cache grows
_LITTLE = 0.3  # share of the rows: those that move within the same memory are copied twice


def select_rows(tensor: Tensor, rows: Tensor) -> Tensor:
    """tensor (N, ...) -> its rows numbered `rows` (N',). The tensor given must not be used again."""
    stayed = _compacted(tensor, rows)
    return tensor.index_select(0, rows) if stayed is None else stayed


def _compacted(tensor: Tensor, rows: Tensor) -> Tensor | None:
    """Move the rows within the same memory, copying only what changes its place; None if that is much."""
    if tensor.device.type != "cpu" or torch.is_grad_enabled() or len(rows) > len(tensor):
        return None
    moved = (rows != torch.arange(len(rows))).nonzero()[:, 0]
    if len(moved) > _LITTLE * len(rows):
        return None
    tensor.index_copy_(0, moved, tensor.index_select(0, rows[moved]))
    return tensor[: len(rows)]


@dataclass(frozen=True)
class KeyValueCache:
    """Keys and values of N prefixes: store (N, capacity, W), of which the first `length` positions are filled.

    Capacity ahead of need spares a copy of the whole cache at every step.
    """

    store: Tensor
    length: int

    @property
    def attended(self) -> Tensor:
        """The filled positions (N, length, W), a view."""
        return self.store[:, : self.length]

    def append(self, key_value: Tensor) -> Self:
        """Return the cache with the next position, key_value (N, W), in the same store while it has capacity.

        The cache it is called on must not be used again.
        """
        store = self.store
        if self.length == store.size(1):
            store = self._larger(len(store))
            store[:, : self.length] = self.attended
        store[:, self.length] = key_value
        return type(self)(store, self.length + 1)

    def select(self, rows: Tensor) -> Self:
        """Return the cache of the prefixes numbered `rows` (N',), copying at most what is filled, once.

        The cache it is called on must not be used again.
        """
        stayed = _compacted(self.store, rows) if self.length < self.store.size(1) else None
        if stayed is not None:
            return type(self)(stayed, self.length)
        store = self._larger(len(rows))
        if torch.is_grad_enabled():  # an operation that writes into its argument has no gradient
            store[:, : self.length] = self.attended.index_select(0, rows)
        else:
            torch.index_select(self.attended, 0, rows, out=store[:, : self.length])
        return type(self)(store, self.length)

    def _larger(self, prefixes: int) -> Tensor:
        return self.store.new_empty(prefixes, (self.length // _ROOM + 1) * _ROOM, self.store.size(2))
