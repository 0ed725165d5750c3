"""Model selection: the best model on the validation set, checkpoints, and their mean."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tolka.metrics.validation import Validation
from tolka.model_directory.read import ResumeState
from tolka.model_directory.weights import average_weights
from tolka.system.memory import return_freed_memory
from tolka.system.number_format import number_text
from tolka.training.averaging import preserved_weights
from tolka.training.callbacks import Callback
from tolka.training.non_finite import LostError
from tolka.training.options import TrainerConfig, model_rank
from tolka.training.parallel.base import Parallel
from tolka.training.run_folder import RunFolder, must_be_written
from tolka.training.snapshots import Snapshots
from tolka.training.state import Clock, GivenUpError, TrainState
from tolka.training.warning_signs import Watch

Checkpoints = Mapping[str, float | None]
"""Update -> trainer.metric of its checkpoint, None where it was not validated."""


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
    """Validates models, decides which checkpoints are kept and which model is the best, and saves them.

    parallel: the processes that train this model together, which decide the same. check_stop: raises GivenUpError when
    a validation is to end. callback: is called after each validation, and after each save.
    """

    config: TrainerConfig
    parallel: Parallel
    run: RunFolder
    validate: Validates
    snapshots: Snapshots
    watch: Watch
    clock: Clock
    check_stop: Callable[[], None]
    callback: Callback

    def __post_init__(self) -> None:
        self.objective, self.ranks = self.parallel.whole_objective, self.parallel.ranks
        self._latest = Validation({}, "")
        self.samples = ""  # of the latest validation, as text

    def validate_and_select(self, state: TrainState) -> None:
        """Validate the current model, and save it if it is selected. LostError when its loss is NaN or inf."""
        if self._score(state):
            self._save(self.run.best, self._scores(state))
        if self.config.average or self.config.keep_best:
            state.kept_nll[str(state.update)] = self._latest.values["nll"]
            self.save_checkpoint(state, self._latest.values[self.config.metric])
        elif self.keeps_regularly(state):
            self.save_checkpoint(state)

    def select_start(self, state: TrainState) -> None:
        """Validate the model that training starts from, and save it as the best so far; it is not averaged."""
        if self._score(state):
            state.validated_start = True
            self._save(self.run.best, self._scores(state))

    def save_last(self, state: TrainState, resume_state: ResumeState) -> None:
        """Save the model as `last/`, to resume from."""
        self._save(self.run.last, self._scores(state), resume_state)

    def _save(self, folder: Path, scores: dict[str, Any], resume_state: ResumeState | None = None) -> None:
        """Write the current model, if this process is the one that writes; TolkaError where it cannot be written."""
        # Training waits. To write `last/` in a thread took a copy of all weights, and saved 0.4 % of the time.
        if not self.ranks.is_first:
            return
        # A run's folder that the user has deleted must not come back with a single model in it.
        self.run.check_there()
        with must_be_written(folder):
            self.snapshots.take(scores, resume_state).write(folder)
        if folder == self.run.last:
            self.run.mark_saved()
        return_freed_memory()  # of what was copied from a GPU, or merged
        self.callback.on_save(folder)

    def keeps_regularly(self, state: TrainState) -> bool:
        """Return whether trainer.keep_every asks for this update's checkpoint."""
        return bool(self.config.keep_every) and state.update % self.config.keep_every == 0

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
        name = f"samples/{state.update:07d}{'-mean' if mean_of else ''}.txt"
        path = self.run.leave(name, "".join(f"{translation}\n" for translation in result.translations))
        samples = [f"samples of the last validation ({path}):", *map(str, result.samples)]
        self.samples = "\n".join(samples) if result.samples else ""
        self.callback.on_validation(line, result)
        return better

    def save_checkpoint(self, state: TrainState, value: float | None = None) -> None:
        """Save a checkpoint, and select those to keep. value: of trainer.metric, if the model was validated.

        Folders of dropped checkpoints are deleted later, once `last/` no longer refers to them.
        """
        self._save(self.run.checkpoint(state.update), self._scores(state))
        checkpoints = {**state.kept, str(state.update): value}
        state.kept = to_keep(checkpoints, state.kept_nll, self.config)
        state.kept_nll = {update: nll for update, nll in state.kept_nll.items() if update in state.kept}

    def average(self, state: TrainState) -> bool:
        """Validate the mean of the checkpoints, which may become the best model; return whether there was a mean."""
        if self.config.average < 2 or state.averaged_at == state.update:
            return False
        # The first rank's files have to be whole before any rank reads them.
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
            if self._score(state, updates):
                self._save(self.run.best, self._scores(state, updates))
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


def to_keep(checkpoints: Checkpoints, nll: Mapping[str, float], config: TrainerConfig) -> dict[str, float | None]:
    """Select the checkpoints to keep: those to be averaged, the best ones, and one every trainer.keep_every updates.

    nll: update -> validation loss, as far as known; it breaks ties, and then the newer one is better.
    """
    values = {update: value for update, value in checkpoints.items() if value is not None}
    ranks = {update: (model_rank(config.metric, values[update], nll.get(update)), int(update)) for update in values}
    best = sorted(ranks, key=lambda update: ranks[update], reverse=True)[: config.keep_best]
    regular = [update for update in checkpoints if config.keep_every and int(update) % config.keep_every == 0]
    wanted = {*to_average(checkpoints, config), *best, *regular}
    return {update: value for update, value in checkpoints.items() if update in wanted}


def to_average(checkpoints: Checkpoints, config: TrainerConfig) -> list[str]:
    """Return the updates of the last validated checkpoints, as many as trainer.average says, the newest first."""
    validated = (update for update, value in checkpoints.items() if value is not None)
    return sorted(validated, key=int, reverse=True)[: config.average]
