"""How sentences that have ended leave a search, so that a GPU is seldom waited for."""

import torch
from torch import Tensor

_SHARE_REMOVED = 0.1  # of the sentences, that have to end before they are removed on a GPU


def are_worth_removing(ended: int, active: int, device: torch.device) -> bool:
    """Return whether ended sentences leave the batch now: on a GPU several at a time, as it waits and copies others."""
    return ended > 0 and (device.type == "cpu" or ended >= _SHARE_REMOVED * active)


def are_surely_none(mask: Tensor) -> bool:
    """Return whether no value is true; False on a GPU, which would have to be waited for."""
    return mask.device.type == "cpu" and not bool(mask.any())


def by_ending(ended: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the numbers of the sentences that have not ended, and of the `count` that have, each in order."""
    # The count is known already: `nonzero` would wait for the device.
    order = ended.long().argsort(stable=True)
    return order[: len(ended) - count], order[len(ended) - count :]


def on_host(*tensors: Tensor) -> list[Tensor]:
    """Return tensors on the CPU, copied together so that the device is waited for once."""
    if not tensors or tensors[0].device.type == "cpu":
        return list(tensors)
    # float64 has all that ids, counts and values in fp32 can be.
    parts = torch.cat([each.flatten().double() for each in tensors]).cpu().split([each.numel() for each in tensors])
    return [part.to(each.dtype).view(each.shape) for part, each in zip(parts, tensors, strict=True)]
