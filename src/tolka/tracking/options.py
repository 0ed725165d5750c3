"""The settings group `tracking`."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import ClassVar

from tolka.errors import ConfigError
from tolka.options.settings import setting
from tolka.tracking.base import Tracker
from tolka.training.callbacks import CALLBACKS


@dataclass(frozen=True)
class TrackingConfig:
    """Where else, beside its folder, a run's curves go."""

    RESUMABLE: ClassVar[bool] = True

    names: list[str] = setting(default_factory=list)
    """tensorboard, wandb, mlflow, trackio, or a callback of a plugin; 'tracking=[wandb,mlflow]' is short for this"""
    project: str = setting("tolka", literal=True, needs=("tracking.names", "tracking"))
    """the project (W&B, Trackio) or experiment (MLflow) that the run is listed in"""
    model: bool = setting(True, needs=("tracking.names", "tracking"))
    """whether the best model is stored there too, when training has ended (not in TensorBoard)"""

    def __post_init__(self) -> None:
        if len(set(self.names)) < len(self.names):
            raise ConfigError(f"tracking ({','.join(self.names)}) has a tracker twice: name each once")
        if not self.project.strip():
            raise ConfigError("tracking.project must not be empty: leave it out, or name one")

    def check(self) -> None:
        """Raise ConfigError for a tracker that is not registered, or whose package is not installed."""
        for name in self.names:
            cls = CALLBACKS.get(name)
            # Looked for, not imported, which takes a while.
            if issubclass(cls, Tracker) and find_spec(cls.package) is None:
                raise ConfigError(f"tracking={name} needs the package {cls.package}: pip install 'tolka[{name}]'")
