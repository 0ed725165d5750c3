"""An optimizer's state as named tensors, for exact resume."""

from collections.abc import Mapping

import torch
from torch import Tensor

MOMENTS = 2  # tensors of a weight's size that an optimizer keeps, at most


def state_tensors(optimizer: torch.optim.Optimizer, names: Mapping[Tensor, str]) -> dict[str, Tensor]:
    """Return the optimizer's state on the CPU: "optimizer.<parameter>.<key>" -> tensor. names: of the parameters."""
    return {
        f"optimizer.{names[parameter]}.{key}": torch.as_tensor(value).detach().cpu()
        for parameter, moments in optimizer.state.items()
        for key, value in moments.items()
    }


def load_state_tensors(
    optimizer: torch.optim.Optimizer, names: Mapping[Tensor, str], tensors: Mapping[str, Tensor]
) -> None:
    """Restore what `state_tensors` returned, by torch's own load_state_dict."""
    state_dict = optimizer.state_dict()
    parameters = (parameter for group in optimizer.param_groups for parameter in group["params"])
    for number, parameter in enumerate(parameters):
        # torch numbers parameters by their order in the groups; a name says which one is meant.
        prefix = f"optimizer.{names[parameter]}."
        moments = {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
        state_dict["state"].pop(number, None)
        if moments:
            state_dict["state"][number] = moments
    optimizer.load_state_dict(state_dict)
