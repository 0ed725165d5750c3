"""The choice of how processes train together, from the settings."""

import torch

from tolka.distributed.ranks import Ranks
from tolka.errors import ConfigError
from tolka.losses.cross_entropy import Objective
from tolka.optim.optimizer_state import MOMENTS
from tolka.system.device import Precision, device_memory
from tolka.training.options import TrainerConfig
from tolka.training.parallel.base import Parallel

_BYTES = 4  # per weight in fp32
_WEIGHTS_SHARE = 0.7  # of a GPU's memory, at most: the rest is for the activations


def parallel_of(config: TrainerConfig, objective: Objective, ranks: Ranks, precision: Precision) -> Parallel:
    """Return how these ranks train the objective together; build the optimizer of its weights after this."""
    kind = config.parallel
    if ranks.size == 1:
        return Parallel(objective, ranks)
    if precision.device.type == "cuda":
        # NCCL would say so in words of its own, after a while.
        cards = ranks.gather(str(torch.cuda.get_device_properties(torch.cuda.current_device()).uuid))
        if len(set(cards)) < ranks.size:
            raise ConfigError("two processes of this training have the same GPU: start one for each GPU")
    # DDP needs the whole model on every GPU, FSDP sends weights at every layer: it is taken only where that is needed,
    # on any rank. Imported here, as torch.distributed's parts take a second to import.
    if kind == "fsdp" or (kind == "auto" and ranks.most(not _fits(objective, precision.device))[0]):
        from tolka.training.parallel.fsdp import Sharded

        if precision.needs_scaler:
            raise ConfigError("trainer.parallel=fsdp is not tried with fp16: set trainer.precision=bf16 or fp32")
        return Sharded(objective, ranks, precision)
    from tolka.training.parallel.ddp import Overlapped

    return Overlapped(objective, ranks)


def _fits(objective: Objective, device: torch.device) -> bool:
    """Return whether weights, gradients and the optimizer's moments leave room for the activations."""
    needed = (2 + MOMENTS) * _BYTES * objective.model.parameter_count()
    return device.type != "cuda" or needed <= _WEIGHTS_SHARE * device_memory(device)
