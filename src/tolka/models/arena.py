"""The tensors of decoder states, whatever these are made of, and memory that states of many shapes share."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from tolka.models.base import DecoderState

_ALIGNED = 256  # bytes: where a tensor of the arena may begin
Part = TypeVar("Part")


def changed(part: Part, change: Callable[[Tensor], Tensor]) -> Part:
    """The same, a state or what it is made of, with other tensors; one that is in several places is changed once."""
    known: dict[int, Tensor] = {}

    def walk(part: Any) -> Any:
        if isinstance(part, Tensor):
            if id(part) not in known:
                known[id(part)] = change(part)
            return known[id(part)]
        if isinstance(part, list | tuple):
            return type(part)(walk(one) for one in part)
        if is_dataclass(part) and not isinstance(part, type):
            return replace(part, **{field.name: walk(getattr(part, field.name)) for field in fields(part)})
        return part

    walked: Part = walk(part)
    return walked


def tensors(part: object) -> list[Tensor]:
    """Of a state, each once."""
    found: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    changed(part, keep)
    return found


def copy_state(state: DecoderState, into: DecoderState) -> None:
    """All tensors that are not the same ones."""
    for place, tensor in zip(tensors(into), tensors(state), strict=True):
        if tensor is not place:
            place.copy_(tensor)


class Arena:
    """Memory for the states of all shapes, which are never at work at the same time."""

    def __init__(self, size: int, device: torch.device) -> None:
        """size: in bytes."""
        self._bytes = torch.empty(size, dtype=torch.uint8, device=device)

    def has_room(self, state: DecoderState) -> bool:
        """For `place`."""
        return size_of(state) <= len(self._bytes)

    def place(self, state: DecoderState) -> DecoderState:
        """A copy in this memory, of a state that is elsewhere."""
        end = 0

        def put(tensor: Tensor) -> Tensor:
            nonlocal end
            start, end = end, end + _blocks(tensor)
            here = self._bytes[start : start + tensor.nbytes].view(tensor.dtype).view(tensor.shape)
            return here.copy_(tensor)

        return changed(state, put)

    def elsewhere(self, state: DecoderState) -> DecoderState:
        """With copies of those tensors that are here."""
        here = self._bytes.untyped_storage().data_ptr()
        return changed(state, lambda tensor: tensor.clone() if tensor.untyped_storage().data_ptr() == here else tensor)


def size_of(state: DecoderState) -> int:
    """Bytes that it takes in an arena."""
    return sum(_blocks(tensor) for tensor in tensors(state))


def _blocks(tensor: Tensor) -> int:
    """Bytes that it takes there."""
    return -(-tensor.nbytes // _ALIGNED) * _ALIGNED
