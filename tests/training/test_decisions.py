"""What ends a training, and what saves it in between."""

from types import SimpleNamespace
from typing import Any

from rows import each_row

from tolka.distributed.ranks import ALONE
from tolka.training.decisions import Decisions
from tolka.training.options import TrainerConfig
from tolka.training.state import TrainState


def decisions(seconds: float = 0.0, **options: Any) -> Decisions:
    clock: Any = SimpleNamespace(seconds=seconds)
    return Decisions(TrainerConfig(**{"updates": 10, **options}), ALONE, clock)


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
    assert decisions(seconds, **options).reason_to_stop(state) == reason


def test_a_request_to_stop_comes_before_all_else() -> None:
    made = decisions()
    made.ask_to_stop("SIGTERM received")
    assert made.reason_to_stop(TrainState(update=10)) == "SIGTERM received"


def test_a_request_to_save_holds_until_it_is_done() -> None:
    made = decisions()
    assert (made.reason_to_stop(TrainState()), made.saves) == (None, False)
    made.ask_to_save()
    made.reason_to_stop(TrainState())
    assert made.saves
    made.saved()
    made.reason_to_stop(TrainState())
    assert not made.saves
