"""Several processes on this machine that run one function together, under torchrun's agent."""

import logging
import os
from collections.abc import Callable, Mapping
from typing import Any

import torch

from tolka.errors import ConfigError, StoppedError, TolkaError
from tolka.system.progress import loggers_at

RESTARTS = 3
"""How often processes that `run_together` has started begin again after one was killed."""


def process_count(wanted: int, device: torch.device) -> int:
    """Return how many processes to start. wanted: 0 for one on each GPU. ConfigError when the machine has too few."""
    if device.index is not None and wanted != 1:
        raise ConfigError(
            f"trainer.device={device} is one GPU, and trainer.devices asks for {wanted or 'all'}: leave trainer.device "
            "out, and let CUDA_VISIBLE_DEVICES name the GPUs to use"
        )
    if device.type == "cuda":
        have, what = torch.cuda.device_count(), "GPUs"
    else:
        have, what = os.cpu_count() or 1, "cores"
    if wanted > have:
        raise ConfigError(f"trainer.devices ({wanted}) is more than the {have} {what} of this machine; try auto")
    return wanted or (have if device.type == "cuda" else 1)


def run_together(count: int, next_time: Callable[[], str], function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function of a module in `count` processes of this machine; return what the first one returns.

    After one was killed, all of them begin again, RESTARTS times at most. The function returns an error instead of
    raising it; one of them is raised here. next_time: returns what the same command would do then. TolkaError when a
    process was killed once more, StoppedError when a signal came.
    """
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    # torchrun's own agent: it starts the ranks, watches them, and begins all of them again when one was killed.
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=count,
        run_id=f"mt-train {os.getpid()}",
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=RESTARTS,
        monitor_interval=0.5,
        start_method="spawn",
    )
    try:
        # What went wrong is said below, in one line.
        with loggers_at(logging.CRITICAL, "torch.distributed", "torch.multiprocessing"):
            results: Mapping[int, Any] = elastic_launch(config, function)(*arguments)
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        ended = f"was ended by {failure.signal_name()}" if failure.exitcode < 0 else f"ended with {failure.exitcode}"
        raise TolkaError(f"process {rank} of {count} {ended}, also after {RESTARTS} restarts; {next_time()}") from None
    except SignalException as error:
        number = int(error.sigval)
        raise StoppedError(f"stopped by {error.sigval.name}; {next_time()}", 128 + number) from None
    # Errors are returned, as torchrun would restart the processes after one that is raised. One that another process
    # has reported already is raised only if there is no other.
    errors = [result for _, result in sorted(results.items()) if isinstance(result, Exception)]
    if errors:
        raise min(errors, key=lambda error: isinstance(error, TolkaError) and error.reported)
    return results[0]
