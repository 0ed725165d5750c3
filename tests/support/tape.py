"""A CUDA graph's part, played on a CPU: every operation on tensors is written down, and done again on the same memory.

As with a graph, whatever Python decided or counted while it was written stays as it was then.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tolka.cuda_graph import WARM_UP, GraphPool, Recording

_WAIT = [  # for the device: numbers are looked at, or how many there are
    *("_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim", "is_nonzero", "repeat_interleave"),
    "lift_fresh",  # numbers of Python's
]
_BY_MASK = ("index", "index_put_", "index_put", "_index_put_impl_")


def _tensors(tree: object) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


class _Tape(TorchDispatchMode):
    def __init__(self, may_read: bool) -> None:
        super().__init__()
        self.may_read = may_read
        self.operations: list[tuple[Any, Any, Any, list[Tensor]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        masks = [part for part in _tensors(args) if part.dtype == torch.bool] if name in _BY_MASK else []
        if (name in _WAIT or masks) and not self.may_read:
            raise RuntimeError(f"operation not permitted when stream is capturing: {name}")
        result = func(*args, **(kwargs or {}))
        given = {_memory(tensor) for tensor in _tensors((args, kwargs))}
        made = [tensor if _memory(tensor) not in given else None for tensor in _tensors(result)]
        self.operations.append((func, args, kwargs or {}, made))
        return result

    def play(self) -> None:
        """All operations once more; what one makes goes where it went."""
        for func, args, kwargs, made in self.operations:
            for place, tensor in zip(made, _tensors(func(*args, **kwargs)), strict=True):
                if place is not None:
                    place.copy_(tensor)


@dataclass
class Recorder:
    """Stands for `cuda_graph.record`. may_read: whether numbers may be looked at meanwhile, which a GPU forbids."""

    may_read: bool = False
    made: int = 0
    played: int = 0
    errors: list[BaseException] = field(default_factory=list)

    def __call__(self, run: Callable[[], Tensor], _pool: GraphPool) -> Recording:
        if self.errors:
            raise self.errors.pop()
        for _ in range(WARM_UP):
            run()
        with _Tape(self.may_read) as tape:
            result = run()
        self.made += 1

        def play() -> None:
            self.played += 1
            with torch.no_grad():
                tape.play()

        return Recording(play, result)
