"""The lines that announce a run: batches, learning rate, model, precision."""

from collections.abc import Iterator
from dataclasses import asdict

from tolka.data.loader import Batches
from tolka.models.base import Seq2Seq
from tolka.optim.schedules.base import EndingConfig, LearningRate
from tolka.system.device import Precision, describe
from tolka.training.options import TrainerConfig


def announcement(
    options: TrainerConfig,
    rate: LearningRate,
    loader: Batches,
    epoch: int,
    model: Seq2Seq,
    precision: Precision,
    reason: str,
) -> Iterator[str]:
    """Return the lines. epoch: the one that training begins in. reason: why the precision was chosen."""
    which = "an epoch" if loader.round == "epoch" else f"in {loader.round} {epoch + 1}"
    tokens = loader.tokens_per_batch(epoch)
    yield f"batches: {len(loader.plan(epoch))} {which}, {tokens:.0f} target tokens on average"
    yield from _rate(rate, options.max_minutes)
    parameters, learning = model.parameter_count(), sum(p.numel() for p in model.parameters() if p.requires_grad)
    size = f"{parameters:,} parameters" + (f", {learning:,} of them trained" if learning < parameters else "")
    yield f"model: {size} on {describe(precision.device)}, {precision.name} ({reason})"


def _rate(rate: LearningRate, minutes: float) -> Iterator[str]:
    schedule, updates = rate.schedule, rate.updates
    # A schedule by wall time has its floor when the minutes are over, or at the last update if that comes first.
    end = f"after {minutes:g} minutes, or " if schedule.by_wall_time and minutes else ""
    plateau = ", or earlier at a plateau" if schedule.decays_at_plateau else ""
    yield f"learning rate: {asdict(schedule)['name']}, {rate.at(updates, 1.0):.2g} {end}at update {updates}{plateau}"
    if isinstance(schedule, EndingConfig) and schedule.horizon not in (0, updates):
        end = f"its floor at update {schedule.horizon} (scheduler.horizon)"
        yield (
            f"note: it is at {end} and stays there until update {updates}"
            if schedule.horizon < updates
            else f"note: training ends before it reaches {end}"
        )
