"""What ends a training, and what saves it in between."""

from types import SimpleNamespace
from typing import Any

from rows import each_row

from tolka.distributed.ranks import ALONE
from tolka.optim.schedules.base import LearningRate, SchedulerConfig
from tolka.optim.schedules.formulas import ConstantConfig
from tolka.optim.schedules.wsd import WarmupStableDecayConfig
from tolka.training.options import TrainerConfig
from tolka.training.state import TrainState
from tolka.training.stopping import Stopping

UNTIL_A_PLATEAU = WarmupStableDecayConfig(warmup=10, horizon=0)


def stopping(
    seconds: float = 0.0, schedule: SchedulerConfig | None = None, logged: list[str] | None = None, **options: Any
) -> Stopping:
    clock: Any = SimpleNamespace(seconds=seconds)
    config = TrainerConfig(**{"updates": 10, **options})
    rate = LearningRate(schedule or ConstantConfig(), 1.0, config.updates)
    return Stopping(config, ALONE, clock, rate, ([] if logged is None else logged).append)


@each_row(
    ("update", "stale", "seconds", "options", "reason"),
    [
        (9, 0, 0.0, {}, None),
        (10, 0, 0.0, {}, "trainer.updates (10) are done; raise it to continue"),
        (11, 0, 0.0, {}, "trainer.updates (10) are fewer than it has; for a new training choose another run.name"),
        (10, 0, 0.0, {"epochs": 2.0}, "trainer.epochs (2) are done; raise it to continue"),
        (1, 0, 60.0, {"max_minutes": 1.0}, "trainer.max_minutes (1) are over; raise it to continue"),
        (0, 0, 60.0, {"max_minutes": 1.0}, None),  # one update at least
        (1, 0, 59.0, {"max_minutes": 1.0}, None),
        (5, 3, 0.0, {"patience": 3}, "3 validations without a better bleu (trainer.patience)"),
        (5, 2, 0.0, {"patience": 3}, None),
    ],
)
def test_why_it_ends(update: int, stale: int, seconds: float, options: dict[str, Any], reason: str | None) -> None:
    state = TrainState(update=update, stale=stale)
    assert stopping(seconds, **options).reason_to_stop(state) == reason


def test_a_request_to_stop_comes_before_all_else() -> None:
    made = stopping()
    made.ask_to_stop("SIGTERM received")
    assert made.reason_to_stop(TrainState(update=10)) == "SIGTERM received"


def test_a_request_to_save_holds_until_it_is_done() -> None:
    made = stopping()
    assert (made.reason_to_stop(TrainState()), made.saves) == (None, False)
    made.ask_to_save()
    made.reason_to_stop(TrainState())
    assert made.saves
    made.mark_saved()
    made.reason_to_stop(TrainState())
    assert not made.saves


def test_a_plateau_begins_a_decay_with_which_training_ends() -> None:
    logged: list[str] = []
    made = stopping(schedule=UNTIL_A_PLATEAU, logged=logged, updates=1000, patience=3)
    state = TrainState(update=64, validated_at=64, stale=2)
    assert (made.reason_to_stop(state), state.plateau) == (None, 0)
    state.stale = 3
    assert (made.reason_to_stop(state), state.plateau) == (None, 64)
    why = "no better bleu in 3 validations: the rate falls from here"
    assert logged == [f"{why}, over 32 updates, with which training ends"]
    # No later validation changes that, nor does the same one again.
    for update, stale in ((65, 3), (72, 4), (79, 0)):
        state.update, state.stale, state.validated_at = update, stale, update // 8 * 8
        assert (made.reason_to_stop(state), state.plateau, len(logged)) == (None, 64, 1)
    state.update = 96
    assert made.reason_to_stop(state) == "the rate has decayed since the plateau at update 64"


def test_the_warm_up_has_no_plateau() -> None:
    made = stopping(schedule=UNTIL_A_PLATEAU, updates=1000, patience=2)
    for at, plateau, ends in ((10, 0, True), (11, 11, False)):
        state = TrainState(update=at, validated_at=at, stale=2)
        assert (bool(made.reason_to_stop(state)), state.plateau) == (ends, plateau)


@each_row(
    ("update", "seconds", "minutes", "paced_from", "warmup", "chosen", "settled"),
    [
        (10, 20.0, 1.0, 10.0, 200, True, 3),  # 2 s an update: 10 + 40 / 2 fit into the minute
        (10, 20.0, 1.0, 10.0, 4, True, 3),
        (10, 20.0, 1.0, 10.0, 3, True, 0),  # no longer than a tenth
        (10, 20.0, 1.0, 10.0, 1, True, 0),
        (10, 20.0, 1.0, 10.0, 0, True, 0),
        (10, 59.0, 1.0, 10.0, 200, True, 1),  # 10 fit
        (10, 20.0, 1.0, 10.0, 200, False, 0),  # typed
        (10, 20.0, 0.0, 10.0, 200, True, 0),  # no limit
        (9, 20.0, 1.0, 10.0, 200, True, 0),  # not known yet
        (11, 20.0, 1.0, 10.0, 200, True, 0),  # was known before
    ],
)
def test_which_warm_up_the_minutes_settle(
    update: int, seconds: float, minutes: float, paced_from: float, warmup: int, chosen: bool, settled: int
) -> None:
    schedule = WarmupStableDecayConfig(warmup=warmup, horizon=0)
    made = stopping(seconds, schedule=schedule, updates=1000, max_minutes=minutes)
    made.chosen = ["scheduler.warmup"] if chosen else []
    state = TrainState(update=update, paced_from=paced_from)
    made.reason_to_stop(state)
    assert state.warmup == settled


def test_the_pace_leaves_the_first_updates_out() -> None:
    made, state = stopping(30.0), TrainState(update=5)
    made.reason_to_stop(state)
    state.seconds, state.update = 34.0, 9
    assert (state.paced_from, state.pace, state.updates_in(60.0)) == (30.0, 1.0, 35)


def test_a_settled_warm_up_has_no_plateau_either() -> None:
    made = stopping(schedule=WarmupStableDecayConfig(warmup=200, horizon=0), updates=1000, patience=2)
    for at, plateau in ((20, 0), (21, 21)):
        state = TrainState(update=at, validated_at=at, stale=2, warmup=20)
        made.reason_to_stop(state)
        assert state.plateau == plateau


def test_without_patience_no_plateau_begins_a_decay() -> None:
    state = TrainState(update=64, validated_at=64, stale=99)
    made = stopping(schedule=UNTIL_A_PLATEAU, updates=1000, patience=0)
    assert (made.reason_to_stop(state), state.plateau) == (None, 0)


@each_row(
    ("schedule", "update", "stale", "plateau", "patience", "least", "most"),
    [
        (ConstantConfig(), 25, 1, 0, 3, 40, 1000),  # validations at 30 and 40 may be the second and third
        (ConstantConfig(), 25, 0, 0, 0, 1000, 1000),
        (ConstantConfig(), 995, 0, 0, 3, 1000, 1000),
        (UNTIL_A_PLATEAU, 25, 1, 0, 3, 60, 1000),  # and a decay of 20 updates
        (UNTIL_A_PLATEAU, 42, 3, 40, 3, 60, 60),
    ],
)
def test_when_it_ends_at_the_earliest_and_latest(
    schedule: SchedulerConfig, update: int, stale: int, plateau: int, patience: int, least: int, most: int
) -> None:
    made = stopping(schedule=schedule, updates=1000, patience=patience, validate_every=10)
    assert made.last_updates(TrainState(update=update, stale=stale, plateau=plateau)) == (least, most)
