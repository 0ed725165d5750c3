"""A trainer as mt-train would build it, without the rest of a run."""

from tolka.config.schemas import TrainConfig
from tolka.run.inputs import read_inputs
from tolka.run.training_setup import build_trainer, ready_device
from tolka.training.run_folder import RunFolder
from tolka.training.trainer import Trainer


def fresh_trainer(config: TrainConfig) -> Trainer:
    """Build what trains a new model; the run's folder is not claimed."""
    run = RunFolder(config.run.folder)
    return build_trainer(config, read_inputs(config, run.log), run, ready_device(config.trainer))
