"""An estimate of a training's time and memory, from some updates that are then discarded."""

import time
from dataclasses import dataclass

from tolka.system.memory import peak_memory_bytes
from tolka.training.trainer import Trainer

_MIN_UPDATES, _MAX_UPDATES, _SECONDS = 3, 50, 10.0  # limits on the updates that are timed


@dataclass(frozen=True)
class TrainingEstimate:
    """Speed, memory and length of a training, without its validations.

    memory_bytes: the peak of this process so far. epochs: None for a stream, whose length is unknown. at_plateau:
    whether training ends earlier where validations bring nothing better. unlimited_minutes: without
    trainer.max_minutes.
    """

    tokens_per_second: float
    memory_bytes: int
    updates: int
    epochs: float | None
    minutes: float
    parameters: int
    at_plateau: bool
    unlimited_minutes: float


def estimate_training(trainer: Trainer) -> TrainingEstimate:
    """Time some updates of a trainer that has trained nothing yet; its weights, optimizer and position change."""
    trainer.step.objective.train()
    # Asked first: a stream has no plan for its first buffer later.
    updates_per_epoch = len(trainer.loader.plan(0)) / trainer.config.accumulate
    # The first update is slower: it allocates memory and chooses kernels.
    trainer.probe()
    tokens_before, started_at, timed = trainer.state.tokens, time.perf_counter(), 0
    while timed < _MIN_UPDATES or (timed < _MAX_UPDATES and time.perf_counter() - started_at < _SECONDS):
        trainer.probe()
        timed += 1
    seconds, tokens = time.perf_counter() - started_at, trainer.state.tokens - tokens_before
    updates, most_minutes = trainer.config.updates, trainer.config.max_minutes
    unlimited = minutes = updates * seconds / timed / 60
    if most_minutes and minutes > most_minutes:
        updates, minutes = int(updates * most_minutes / minutes), most_minutes
    return TrainingEstimate(
        tokens / seconds,
        peak_memory_bytes(),
        updates,
        updates / updates_per_epoch if trainer.loader.round == "epoch" else None,
        minutes,
        trainer.step.objective.model.parameter_count(),
        trainer.rate.schedule.decays_at_plateau and trainer.config.patience > 0,
        unlimited,
    )
