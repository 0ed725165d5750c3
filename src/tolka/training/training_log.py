"""What a training reports between its validations: lines for metrics.jsonl and the log, and the time that is left."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from tolka.training.callbacks import Callback
from tolka.training.options import TrainerConfig
from tolka.training.run_folder import RunFolder
from tolka.training.state import Clock, TrainState, Window
from tolka.training.warning_signs import Watch

_FIRST_LINE_SECONDS = 10.0


class TrainingLog:
    """Reports the updates since the last line every `trainer.log_every` updates.

    window: the sums over them. on_bar: what a progress bar shows of the last line.
    """

    def __init__(
        self,
        config: TrainerConfig,
        run: RunFolder,
        watch: Watch,
        clock: Clock,
        round_name: str,
        last_updates: Callable[[TrainState], tuple[int, int]],
        callback: Callback,
    ) -> None:
        """round_name: what a pass over the text is called, as in `Batches`. last_updates: as in `Stopping`."""
        self._config, self._run, self._watch, self._clock = config, run, watch, clock
        self._round, self._last_updates, self._callback = round_name, last_updates, callback
        self.window, self.on_bar = Window(), ""
        self.begin()

    def begin(self) -> None:
        """Note that training begins now, and has no line yet."""
        self._has_line, self._began_at = False, time.perf_counter()

    def report(self, state: TrainState, rate: float) -> None:
        """Report the latest updates if that is due; nothing if all of them were skipped. rate: of the last one."""
        is_due = state.update % self._config.log_every == 0
        # Somebody may wonder whether training works, before `log_every` updates are done. Only the log has that line:
        # metrics.jsonl does not depend on the time.
        is_awaited = not self._has_line and time.perf_counter() - self._began_at > _FIRST_LINE_SECONDS
        line = self._line(state, rate) if is_due or is_awaited else None
        if line is not None:
            ends = self._last_updates(state)
            least, most = self._minutes_left(state, ends)
            if is_due:
                self._run.record(line)
                self._watch.loss(state.update, line["train_loss"])
            left = f"{most:.1f}" if f"{least:.1f}" == f"{most:.1f}" else f"{least:.1f} to {most:.1f}"
            self._run.log(self._in_words(line, ends[1], left), on_bar=is_due)
            self.on_bar = f"nll {line['train_loss']:.3f}, {left} min left"
            if is_due:
                self._callback.on_update(line, most)
        if is_due:
            self.window = Window()

    def _line(self, state: TrainState, rate: float) -> dict[str, Any] | None:
        """Return a line for metrics.jsonl; None if all updates were skipped."""
        loss = self.window.loss
        if loss is None:
            return None
        state.seconds = self._clock.seconds
        self._has_line = True
        return {
            "update": state.update,
            "train_loss": loss,
            "lr": rate,
            "tokens_per_second": self.window.tokens / (time.perf_counter() - self.window.started_at),
            "epoch": state.epoch,
            "seconds": state.seconds,
        }

    def _in_words(self, line: Mapping[str, Any], last: int, left: str) -> str:
        speed, epoch = f"{line['tokens_per_second']:.0f} tok/s", f"{self._round} {line['epoch'] + 1}"
        figures = f"nll {line['train_loss']:.3f}, {speed}, {epoch}, rate {line['lr']:.2g}"
        if self.window.starved:
            figures += f", GPU idle before {self.window.starved / self.window.updates:.0%}"
        times = f"{line['seconds'] / 60:.1f} min, {left} left"
        return f"update {line['update']} of {last}: {figures}, {times}"

    def _minutes_left(self, state: TrainState, ends: tuple[int, int]) -> tuple[float, float]:
        """Return the minutes that training takes at least and at most from here, at the pace so far."""
        minutes, limit = state.seconds / 60, self._config.max_minutes
        least, most = (state.pace / 60 * (last - state.update) for last in ends)
        left = max(0.0, limit - minutes) if limit else most
        return min(least, left), min(most, left)
