"""What ends a training, and what saves it in between: requests, the time, and the agreement of all ranks on them."""

import time
from collections.abc import Callable, Collection

from tolka.distributed.ranks import Ranks
from tolka.optim.schedules.base import LearningRate
from tolka.system.number_format import count_text
from tolka.training.options import TrainerConfig
from tolka.training.state import FIRST_UPDATES, Clock, GivenUpError, TrainState

_SAVE_LAST_MINUTES = 10.0  # between two saves of last/ while no validation falls due
_TENTH = 10  # of the minutes is for the warm-up, and for validations, at most


class Stopping:
    """Decides before each update whether training continues; ranks decide together.

    stop_reason: why training ends, once that is decided. saves: whether to save `last/` after the next update. chosen:
    settings that nobody typed, which give way to trainer.max_minutes.
    """

    def __init__(
        self, config: TrainerConfig, ranks: Ranks, clock: Clock, rate: LearningRate, log: Callable[[str], None]
    ) -> None:
        self._config, self._clock, self._ranks, self._rate, self._log = config, clock, ranks, rate, log
        self.chosen: Collection[str] = ()
        self.stop_reason, self.saves = "", False
        self._stop_asked, self._save_asked = "", False
        self._agreed_seconds = 0.0
        self.begin()

    def ask_to_stop(self, reason: str) -> None:
        """Request a stop; safe to call from a signal handler."""
        # With other ranks, the next `_agree` decides: a signal reaches them at different updates, or not at all.
        if self._decides_alone:
            self.stop_reason = reason
        self._stop_asked = reason

    def check_stop(self) -> None:
        """Raise GivenUpError if a validation in progress is to end now, for which no other rank has to be asked."""
        if self._decides_alone and self.stop_reason:
            raise GivenUpError

    def ask_to_save(self) -> None:
        """Request that `last/` is saved; safe to call from a signal handler."""
        self._save_asked = True

    def begin(self) -> None:
        """Count the minutes to the next save of `last/` from now."""
        self._saved_at = time.perf_counter()

    def mark_saved(self) -> None:
        """Note that `last/` is saved now, as a request may have asked."""
        self.begin()
        self._save_asked = False

    @property
    def _decides_alone(self) -> bool:
        """Whether a stop need not wait for other ranks."""
        return self._ranks.size == 1

    @property
    def seconds(self) -> float:
        """Seconds of training so far, the same on all ranks."""
        return self._clock.seconds if self._decides_alone else self._agreed_seconds

    @property
    def share_of_minutes(self) -> float:
        """Share of trainer.max_minutes that is over; 0 without such a limit."""
        minutes = self._config.max_minutes
        return self.seconds / (60 * minutes) if minutes else 0.0

    def reason_to_stop(self, state: TrainState) -> str | None:
        """Return why training ends before the next update, or None; note a plateau in the state if there is one now."""
        self._agree()
        config = self._config
        if self.stop_reason:
            return self.stop_reason
        if state.update >= config.updates:
            done = f"trainer.epochs ({config.epochs:g})" if config.epochs else f"trainer.updates ({config.updates})"
            # Of a run that was longer.
            if state.update > config.updates:
                return f"{done} are fewer than it has; for a new training choose another run.name"
            return f"{done} are done; raise it to continue"
        # After one update at least, so that there is a model at the end.
        if config.max_minutes and state.update and self.seconds >= 60 * config.max_minutes:
            return f"trainer.max_minutes ({config.max_minutes:g}) are over; raise it to continue"
        self._settle_warmup(state)
        self._note_plateau(state)
        last = self._rate.schedule.last_update(state.plateau)
        if last is not None and state.update >= last:
            return f"the rate has decayed since the plateau at update {state.plateau}"
        if last is None and config.patience and state.stale >= config.patience:
            return f"{count_text(state.stale, 'validation')} without a better {config.metric} (trainer.patience)"
        return None

    def affords_validation(self, state: TrainState, estimate: Callable[[], float]) -> bool:
        """Return whether a validation that is due, and the last one, take a tenth of the time so far at most.

        estimate: returns the seconds of a validation; called if there was none yet.
        """
        if not self._config.max_minutes or "trainer.validate_every" not in self.chosen:
            return True
        if not state.validation_seconds:
            state.validation_seconds = estimate()
            self._log(
                f"a validation takes about {state.validation_seconds:.0f} s; all of them get a tenth of the minutes"
            )
        seconds = state.validations_seconds + 2 * state.validation_seconds
        return bool(self._ranks.of_first(_TENTH * seconds <= self.seconds))

    def _settle_warmup(self, state: TrainState) -> None:
        """Note in the state a warm-up of a tenth of the updates that fit into the minutes, if that is shorter."""
        before, minutes, state.seconds = self._rate.schedule.warmup, self._config.max_minutes, self.seconds
        if state.update == FIRST_UPDATES:
            state.paced_from = self.seconds
        if not (state.update == 2 * FIRST_UPDATES and minutes and "scheduler.warmup" in self.chosen):
            return
        fitting = state.updates_in(60 * minutes)
        if (tenth := max(1, fitting // _TENTH)) < before:
            state.warmup = tenth
            self._log(f"scheduler.warmup={tenth}, not {before}: about {fitting} updates fit into {minutes:g} minutes")

    def _note_plateau(self, state: TrainState) -> None:
        """Note in the state that the rate falls from here, if the latest validation shows a plateau.

        What it follows from is saved in `last/`: a resumed run decides the same, and all ranks do.
        """
        schedule, at = self._rate.schedule, state.validated_at
        # During the warm-up a model learns little yet.
        if state.plateau or at <= (state.warmup or schedule.warmup) or not 0 < self._config.patience <= state.stale:
            return
        if (last := schedule.last_update(at)) is not None:
            state.plateau = at
            updates = count_text(min(last, self._config.updates) - at, "update")
            stale = count_text(state.stale, "validation")
            self._log(
                f"no better {self._config.metric} in {stale}: the rate falls from here, over {updates}, with which "
                "training ends"
            )

    def last_updates(self, state: TrainState) -> tuple[int, int]:
        """Return the update with which training ends at the earliest, if no score gets better from now on, and latest.

        trainer.max_minutes may end it before.
        """
        config, schedule = self._config, self._rate.schedule
        if (last := schedule.last_update(state.plateau)) is not None:
            return (last := min(last, config.updates)), last
        if not config.patience:
            return config.updates, config.updates
        validation = state.update // config.validate_every + max(0, config.patience - state.stale)
        last = validation * config.validate_every
        last = schedule.last_update(last) or last
        return min(last, config.updates), config.updates

    def _agree(self) -> None:
        """Let the ranks decide together what each of them would decide otherwise: a stop, a save, and the time."""
        save = self._save_asked or time.perf_counter() - self._saved_at > 60 * _SAVE_LAST_MINUTES
        # Clocks differ between machines: the first rank's time is the largest where the others have 0.
        seconds = self._clock.seconds if self._ranks.is_first else 0.0
        stops, saves, self._agreed_seconds = self._ranks.most(bool(self._stop_asked), save, seconds)
        self.saves = bool(saves)
        # The reasons are text, which is slower to gather: only once one of them has been given.
        if stops:
            self.stop_reason = next(filter(None, self._ranks.gather(self._stop_asked)))
