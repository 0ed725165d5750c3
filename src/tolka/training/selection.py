"""Model selection: the best model on the validation set, checkpoints, and their mean."""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tolka.metrics.validation import Validation
from tolka.model_directory.read import ResumeState
from tolka.model_directory.weights import average_weights
from tolka.model_directory.write import Snapshot
from tolka.system.number_format import number_text
from tolka.training.averaging import preserved_weights
from tolka.training.callbacks import Callback
from tolka.training.checkpoint_writer import CheckpointWriter, to_average, to_keep
from tolka.training.non_finite import LostError
from tolka.training.options import TrainerConfig, model_rank
from tolka.training.parallel.base import Parallel
from tolka.training.run_folder import RunFolder
from tolka.training.snapshots import Snapshots
from tolka.training.state import Clock, GivenUpError, TrainState
from tolka.training.warning_signs import Watch


class Validates(Protocol):
    """The part of a validator that a trainer uses."""

    def __call__(self, update: int, what: str, tick: Callable[[], object]) -> Validation:
        """Score the current model. what: its name if it is not that of the update itself ("mean").

        tick: called after each batch; an exception that it raises ends the validation.
        """

    def rehearse(self) -> None:
        """Translate the batches that take the most memory in a validation."""

    def seconds(self) -> float:
        """Estimate the seconds of a validation by translating a part of its sentences."""


@dataclass
class ModelSelection:
    """Validates models, and decides which checkpoints are kept and which model is the best.

    parallel: the processes that train this model together, which decide the same. check_stop: raises GivenUpError when
    a validation is to end. callback: is called after each validation.
    """

    config: TrainerConfig
    parallel: Parallel
    run: RunFolder
    keeper: CheckpointWriter
    validate: Validates
    snapshots: Snapshots
    watch: Watch
    clock: Clock
    check_stop: Callable[[], None]
    callback: Callback

    def __post_init__(self) -> None:
        self.objective, self.ranks = self.parallel.whole_objective, self.parallel.ranks
        self._latest = Validation({}, "")
        self._snapshot: tuple[tuple[int, int], Snapshot] | None = None

    def validate_and_select(self, state: TrainState) -> None:
        """Validate the current model, and save it if it is selected. LostError when its loss is NaN or inf."""
        self._snapshot = None
        if self._score(state):
            self._save(self.run.best, state)
        if self.config.average or self.config.keep_best:
            state.kept_nll[str(state.update)] = self._latest.values["nll"]
            self.save_checkpoint(state, self._latest.values[self.config.metric])
        elif self.keeps_regularly(state):
            self.save_checkpoint(state)

    def select_start(self, state: TrainState) -> None:
        """Validate the model that training starts from, and save it as the best so far; it is not averaged."""
        if self._score(state):
            state.validated_start = True
            self._save(self.run.best, state)
            self._snapshot = None  # written, it leaves the memory: nothing else saves the start

    def _save(self, folder: Path, state: TrainState) -> None:
        """Save the current model, if this process is the one that writes."""
        if self.ranks.is_first:
            self.keeper.save(folder, self._current_snapshot(state))

    def _current_snapshot(self, state: TrainState) -> Snapshot:
        """Return a copy of the current model, taken once for all the folders in which it is saved."""
        # After a return to `last/`, an update has the number of an earlier one, and other weights.
        version = state.update, state.returns
        if self._snapshot is None or self._snapshot[0] != version:
            self._snapshot = version, self.snapshots.take(self._scores(state))
        return self._snapshot[1]

    def save_last(self, state: TrainState, resume_state: ResumeState) -> None:
        """Save the model as `last/`, to resume from."""
        if self.ranks.is_first:
            self.keeper.save(self.run.last, self._current_snapshot(state).with_state(resume_state))
        self._snapshot = None

    def keeps_regularly(self, state: TrainState) -> bool:
        """Return whether trainer.keep_every asks for this update's checkpoint."""
        return bool(self.config.keep_every) and state.update % self.config.keep_every == 0

    def drop_superseded(self, state: TrainState) -> None:
        """Delete superseded checkpoints, once everything queued is written."""
        # A copy: the job runs later, when `kept` may have changed.
        kept = tuple(state.kept)
        self.keeper.queue(lambda: self.run.drop_checkpoints(kept))

    def _score(self, state: TrainState, mean_of: Sequence[int] = ()) -> bool:
        """Validate the current model and record the result; return whether it is the best so far."""
        name = "mean" if mean_of else ""
        # Without dropout, also where a stop ends the validation by an exception.
        self.objective.eval()
        began_at = self.clock.seconds
        try:
            result = self.validate(state.update, name, self.check_stop)
        finally:
            self.objective.train()
        # Weights may be NaN although no loss of training was: the last update may have made them so.
        if not math.isfinite(result.values["nll"]):
            raise LostError(f"the validation loss is {result.values['nll']}")
        self._latest = result
        metric = self.config.metric
        value, nll = result.values[metric], result.values["nll"]
        better = state.best is None or model_rank(metric, value, nll) > model_rank(metric, state.best, state.best_nll)
        state.stale = 0 if better else state.stale + 1
        if better:
            state.best, state.best_nll = value, nll
            state.best_update, state.best_mean_of = state.update, list(mean_of)
        state.validated_at = state.update
        state.seconds = self.clock.seconds
        state.validation_seconds = state.seconds - began_at
        state.validations_seconds += state.validation_seconds
        scores = self._scores(state, mean_of)
        line = {**scores.pop("validation"), **scores, "seconds": state.seconds}
        self.run.record(line)
        best = "best so far" if better else f"best {number_text(state.best)} at {state.best_update}"
        self.run.log(f"{result.text} ({best})")
        for detail in result.details:
            self.run.log(detail)
        self.watch.validation(state.update, result)
        self.callback.on_validation(line, result)
        return better

    def save_checkpoint(self, state: TrainState, value: float | None = None) -> None:
        """Save a checkpoint, and select those to keep. value: of trainer.metric, if the model was validated.

        Folders of dropped checkpoints are deleted by `drop_superseded`, once `last/` no longer refers to them.
        """
        self._save(self.run.checkpoint(state.update), state)
        checkpoints = {**state.kept, str(state.update): value}
        state.kept = to_keep(checkpoints, state.kept_nll, self.config)
        state.kept_nll = {update: nll for update, nll in state.kept_nll.items() if update in state.kept}

    def average(self, state: TrainState) -> bool:
        """Validate the mean of the checkpoints, which may become the best model; return whether there was a mean."""
        if self.config.average < 2 or state.averaged_at == state.update:
            return False
        # The first rank's files have to be whole before any rank reads them.
        self.keeper.wait()
        self.ranks.wait()
        wanted = map(int, to_average(state.kept, self.config))
        updates = self.ranks.of_first(sorted(update for update in wanted if self.run.checkpoint(update).is_dir()))
        if len(updates) < 2:
            self.run.log(f"note: no mean of checkpoints (trainer.average): {len(updates)} is there")
            return False
        mean = average_weights([self.run.checkpoint(update) for update in updates])
        self.run.log(f"the mean of {len(updates)} checkpoints, of updates {', '.join(map(str, updates))}:")
        # Restored afterwards: a resumed run continues with the last update's weights, not with the mean.
        stale, latest = state.stale, self._latest
        with preserved_weights(self.objective.model), suppress(GivenUpError):
            self.objective.model.load_state_dict(mean, strict=False)
            if self._score(state, updates) and self.ranks.is_first:
                self.keeper.save(self.run.best, self.snapshots.take(self._scores(state, updates)))
            state.averaged_at = state.update
        state.stale, self._latest = stale, latest
        return state.averaged_at == state.update

    def _scores(self, state: TrainState, mean_of: Sequence[int] = ()) -> dict[str, Any]:
        """Return the latest validation for scores.json. mean_of: the updates whose mean was validated, if any."""
        values = {"valid_loss" if name == "nll" else name: value for name, value in self._latest.values.items()}
        scores = {"update": state.validated_at, "validation": values, "signatures": self._latest.signatures}
        if self._latest.directions:
            scores["directions"] = {code: dict(each) for code, each in self._latest.directions.items()}
        return {**scores, "mean_of_updates": list(mean_of)} if mean_of else scores
