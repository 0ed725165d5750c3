"""What ends a training, and what saves it in between: requests, the time, and the agreement of all ranks on them."""

import time

from tolka.distributed.ranks import Ranks
from tolka.system.number_format import count_text
from tolka.training.options import TrainerConfig
from tolka.training.state import Clock, GivenUpError, TrainState

_SAVE_LAST_MINUTES = 10.0  # between two saves of last/ while no validation falls due


class Decisions:
    """Decides before each update whether training continues; ranks decide together.

    stop_reason: why training ends, once that is decided. saves: whether to save `last/` after the next update.
    """

    def __init__(self, config: TrainerConfig, ranks: Ranks, clock: Clock) -> None:
        self._config, self._clock, self._ranks = config, clock, ranks
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

    def saved(self) -> None:
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
        """Return why training ends before the next update, or None."""
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
        if config.patience and state.stale >= config.patience:
            return f"{count_text(state.stale, 'validation')} without a better {config.metric} (trainer.patience)"
        return None

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
