"""An estimate of a training's time and memory, from some updates that are made and discarded."""

import time
from dataclasses import dataclass

from tolka.system.memory import peak_memory_bytes
from tolka.training.trainer import Trainer

_FEWEST, _MOST, _SECONDS = 3, 50, 10.0  # updates that are timed, and when there are enough of them


@dataclass(frozen=True)
class TrainingEstimate:
    """updates, epochs and minutes until the end, without validations. memory_bytes: the peak of this process so far.

    epochs: of a stream None, as nobody knows how long it is.
    """

    tokens_per_second: float
    memory_bytes: int
    updates: int
    epochs: float | None
    minutes: float
    parameters: int


def estimate_training(trainer: Trainer) -> TrainingEstimate:
    """Time some updates of a trainer that has trained nothing yet; its weights, optimizer and position change."""
    trainer.objective.train()
    an_epoch = len(trainer.loader.plan(0)) / trainer.config.accumulate  # of a stream it is gone afterwards
    trainer.probe()  # memory is touched for the first time, and kernels are chosen
    before, started_at, made = trainer.state.tokens, time.perf_counter(), 0
    while made < _FEWEST or (made < _MOST and time.perf_counter() - started_at < _SECONDS):
        trainer.probe()
        made += 1
    seconds, tokens = time.perf_counter() - started_at, trainer.state.tokens - before
    updates, most_minutes = trainer.config.updates, trainer.config.max_minutes
    minutes = updates * seconds / made / 60
    if most_minutes and minutes > most_minutes:
        updates, minutes = int(updates * most_minutes / minutes), most_minutes
    parameters = trainer.objective.model.parameter_count()
    return TrainingEstimate(
        tokens / seconds,
        peak_memory_bytes(),
        updates,
        updates / an_epoch if trainer.loader.round == "epoch" else None,
        minutes,
        parameters,
    )
