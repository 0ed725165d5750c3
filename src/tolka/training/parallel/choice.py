"""The choice of how processes train together, from the settings."""

from tolka.losses.objective import Objective
from tolka.system.ranks import Ranks
from tolka.training.options import TrainerConfig
from tolka.training.parallel.base import Parallel
from tolka.training.parallel.local_updates import LocalUpdates


def parallel_of(config: TrainerConfig, objective: Objective, ranks: Ranks) -> Parallel:
    """Return how these ranks train the objective together."""
    if config.is_diloco:
        return LocalUpdates(
            objective, ranks, config.sync_every, config.outer_lr, config.outer_momentum, config.communication
        )
    if ranks.size == 1:
        return Parallel(objective, ranks)
    from tolka.training.parallel.overlapped import Overlapped  # torch.distributed's modules take a second to import

    return Overlapped(objective, ranks, config.communication)
