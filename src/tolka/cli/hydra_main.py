"""A call of Hydra's main function: one training, a sweep over several, --cfg, --info and --shell-completion."""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tolka.config.compose import ConfigSource, version_base
from tolka.config.typed import quote_setting
from tolka.system.package_data import config_dir
from tolka.system.progress import Say, say

if TYPE_CHECKING:
    from omegaconf import DictConfig

# Hydra makes no folder, writes no log and keeps no copy of the settings: a run's folder has all of these.
_NOTHING_OF_ITS_OWN = (
    *("hydra.run.dir=.", "hydra.sweep.subdir=.", "hydra.output_subdir=null"),
    *("hydra/job_logging=none", "hydra/hydra_logging=none"),
)


def hydra_main(
    task: "Callable[[DictConfig], Any]", settings: Sequence[str], source: ConfigSource, options: Sequence[str] = ()
) -> None:
    """Call hydra.main with settings that are known to compose.

    task: is called with each job's configuration; its errors are raised unchanged. options: Hydra's own, as in
    ["--multirun"].
    """
    import hydra

    folder = ["--config-dir", str(source.folder.absolute())] if source.folder else []
    arguments = [*options, *folder, "--config-name", source.primary or "train", *map(quote_setting, settings)]
    main = hydra.main(config_path=str(config_dir()), **version_base())(_Task(task))
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises errors instead of printing them with an epilogue
    # hydra.main reads its arguments from here alone.
    before = sys.argv
    sys.argv = [before[0], *arguments, *_NOTHING_OF_ITS_OWN]
    try:
        main()
    except _Raised as raised:
        raise raised.error from None
    finally:
        sys.argv = before


class _Raised(BaseException):
    """An error of the task, on its way through Hydra."""

    # Not an Exception: after one of these Hydra prints an epilogue of its own, and starts the next job.
    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


@dataclass(frozen=True)
class _Task:
    """Calls the task, and lets its errors through."""

    # A class at the module's level, since joblib's launcher pickles it for other processes.
    function: "Callable[[DictConfig], Any]"
    say: Say = say  # for a sweeper of ours

    def __call__(self, config: "DictConfig") -> Any:
        try:
            return self.function(config)
        except Exception as error:
            raise _Raised(error) from error
