"""torch's optimisers without torch's compiler.

Their methods carry decorators that import it, for the sake of programs that compile an optimiser; it takes as long to
import as torch itself (a second of the three before a training's first update), and tolka compiles none.
"""

import inspect
from typing import TypeVar

import torch

Kind = TypeVar("Kind", bound=type[torch.optim.Optimizer])
_DECORATED = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")


def uncompiled(kind: Kind) -> Kind:
    """A class decorator: inherited methods without their decorators, `step` with torch.no_grad in their place."""
    for name in _DECORATED:
        setattr(kind, name, inspect.unwrap(getattr(kind, name)))
    if "step" not in vars(kind):
        kind.step = torch.no_grad()(inspect.unwrap(kind.step))  # type: ignore[method-assign]
    return kind


@uncompiled
class AdamW(torch.optim.AdamW):
    """torch's."""


@uncompiled
class Adam(torch.optim.Adam):
    """torch's."""


@uncompiled
class SGD(torch.optim.SGD):
    """torch's."""
