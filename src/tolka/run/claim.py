"""Claiming a run's folder: to begin a run in it, or to continue the one that is there."""

from typing import Any

import torch

from tolka.config.schemas import TrainConfig, rebuild
from tolka.distributed.ranks import Ranks
from tolka.errors import ConfigError, TolkaError
from tolka.training.run_folder import RunFolder
from tolka.training.saved_settings import differences
from tolka.version import __version__


def claim(run: RunFolder, config: TrainConfig, ranks: Ranks) -> bool:
    """Claim the folder for all ranks; return whether there is a run to resume. ConfigError as `RunFolder.claim`."""
    # Ranks with other settings or versions would wait for each other's sums for ever, or train different models.
    versions = {"tolka": __version__, "torch": str(torch.__version__)}
    first, *others = ranks.gather({**config.as_dict(), **versions})
    for rank, each in enumerate(others, 1):
        # Who set an equal value makes no difference.
        if differing := differences(first, each, lambda key: key.startswith("run.origins"), f"in process {rank}:"):
            raise ConfigError(
                f"the processes of this training have different settings: {'; '.join(differing)}; start all with "
                "the same command, on machines with the same versions"
            )
    # The first rank claims for all, and its error is raised on all: none waits for one that has ended.
    resuming, error = False, None
    if ranks.is_first:
        try:
            resuming = run.claim(config.as_dict(), _completed, config.run.override, config.may_change_on_resume)
        except TolkaError as found:
            error = found
    resuming, run.overridden, error = ranks.of_first((resuming, run.overridden, error))
    if error:
        raise error
    if run.overridden:
        run.log(f"run.override: from here on other settings hold: {'; '.join(run.overridden)}")
    return bool(resuming)


def _completed(saved: Any) -> Any:
    """Return a run's saved configuration with the defaults of newer settings; unchanged if it cannot be read."""
    try:
        return rebuild(saved).as_dict()
    except (TolkaError, TypeError, AttributeError):
        return saved
