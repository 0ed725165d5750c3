"""The training loop: updates, validation, saving and stopping."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace

from tolka.data.loader import Batches
from tolka.errors import LostProcessError, TolkaError
from tolka.model_directory.read import ResumeState
from tolka.optim.schedules.base import LearningRate
from tolka.system.progress import bar
from tolka.training.callbacks import Callback
from tolka.training.data_position import DataPosition
from tolka.training.non_finite import LostError, SkippedUpdates
from tolka.training.options import TrainerConfig
from tolka.training.run_folder import RunFolder
from tolka.training.selection import ModelSelection, Validates
from tolka.training.snapshots import Snapshots
from tolka.training.state import Clock, GivenUpError, TrainState, Window
from tolka.training.step import RAW, TrainStep, UpdateResult
from tolka.training.stopping import Stopping
from tolka.training.training_log import TrainingLog
from tolka.training.warning_signs import Watch

# Updates, where checking for skipped ones waits for the device: it would be idle until the next one is launched.
_CHECK_EVERY = 10
# To last/, each time to half the learning rate, before training gives up.
_RETURNS = 3


class Trainer:
    """Trains one objective; knows neither the architecture nor how validation is done."""

    def __init__(
        self,
        config: TrainerConfig,
        step: TrainStep,
        rate: LearningRate,
        data: DataPosition,
        run: RunFolder,
        validator: Validates,
        snapshots: Snapshots,
        callback: Callback,
    ) -> None:
        """data: gives the batches of each update. validator: scores the model.

        snapshots: copies the model to be saved, and reads `last/`. callback: is called after updates, validations and
        saves.
        """
        self.config, self.step, self.rate, self.data, self.run = config, step, rate, data, run
        self.validator, self._snapshots = validator, snapshots
        self._ranks = step.parallel.ranks
        self.state = TrainState(precision=step.precision.name)
        self._clock = Clock()
        self.stopping = stopping = Stopping(config, self._ranks, self._clock, rate, run.log)
        self._skipped = SkippedUpdates(run, step.scaler)
        watch = Watch(step.objective.model.vocabulary_size, rate.schedule.warmup, run.log)
        name = data.loader.round
        self._log = TrainingLog(config, run, watch, self._clock, name, stopping.last_updates, callback)
        self._selection = ModelSelection(
            config, step.parallel, run, validator, snapshots, watch, self._clock, stopping.check_stop, callback
        )
        self._beginning: ResumeState | None = None  # until `last/` is saved

    @property
    def loader(self) -> Batches:
        """The batches that training reads."""
        return self.data.loader

    @property
    def samples(self) -> str:
        """The sample translations of the last validation, as text; "" if there are none."""
        return self._selection.samples

    def stop(self, reason: str) -> None:
        """Request a stop after the current update, with `last/` saved; safe to call from a signal handler.

        During a row of skipped updates `last/` is not replaced; a resumed run repeats the row. A validation in progress
        is abandoned; a resumed run begins with it.
        """
        self.stopping.ask_to_stop(reason)

    def save_soon(self) -> None:
        """Request that `last/` is saved after the current update; safe to call from a signal handler."""
        self.stopping.ask_to_save()

    def fit(self, validate_start: bool = False) -> TrainState:
        """Train until the updates, the minutes or the patience are used up; leaves `best/` and `last/`.

        validate_start: validate the weights before the first update, too; they are `best/` until others are better.

        TolkaError when training cannot recover from NaN or inf, when the text cannot be read any further, or when these
        folders could not be written.
        """
        self.stopping.begin()
        self._clock.start(self.state.seconds)
        self._log.begin()
        self.step.objective.train()
        self.step.parallel.whole_objective.train()
        if not self.state.update:
            self.run.mark_begin()
            if validate_start and not self.state.validated_start:
                with suppress(GivenUpError), self.step.smoothed():
                    self._selection.select_start(self.state)
            # There is no `last/` yet to return to after NaN or inf: a copy of the beginning serves until then.
            state, named = self.resume_state(), self.step.objective.model.named_parameters()
            weights = {f"{RAW}{name}": each.detach().to("cpu", copy=True) for name, each in named if each.requires_grad}
            others = {name: each.clone() for name, each in state.tensors.items() if name not in weights}
            self._beginning = replace(state, tensors=others | weights)
        with bar("training", self.config.updates, " updates", self.state.update, time_left=False) as progress:
            # Where a signal interrupted the validation before this run resumed.
            with self._rolling_back():
                self._validate_if_due()
            while (reason := self.stopping.reason_to_stop(self.state)) is None:
                self._next_update()
                progress.total = self.stopping.last_updates(self.state)[1]
                progress.set_postfix_str(self._log.on_bar, refresh=False)
                progress.update(self.state.update - progress.n)
        # A stop is to end soon: what is left to do, a resumed run does.
        if not self.stopping.stop_reason:
            self._finish()
        # Asked again: a signal may have come during the last validation.
        if self.stopping.stop_reason:
            self._save_last_if_good()
        self.run.log(f"training ends at update {self.state.update}: {self.stopping.stop_reason or reason}")
        return self.state

    def _next_update(self) -> None:
        """Apply an update; report, validate and save what is due after it."""
        # Only now, when training continues: resuming a run that is finished changes nothing in its folder.
        self.run.save_settings()
        try:
            self._train_step(self._log.window)
        # Saving needs all ranks, of which one is gone.
        except LostProcessError:
            raise
        # The text cannot be read any further: save the model first.
        except TolkaError as error:
            self.run.log(str(error))
            self._save_last_if_good()
            raise
        # Within `_rolling_back`, a check that finds NaN or inf in too many updates returns to the last good state.
        with self._rolling_back():
            if self.step.waits or self.state.update % _CHECK_EVERY == 0:
                self._skipped.check(self.state)
            self._log.report(self.state, self.step.rate)
            if not self._validate_if_due():
                self._keep_and_save()

    def _save_last_if_good(self) -> None:
        """Save `last/`, but not before the first update, nor in a row of skipped ones."""
        with suppress(LostError):
            self._skipped.check(self.state)
        if self.state.update and not self._skipped.spoils(self.state):
            self._save_last()

    def _finish(self) -> None:
        """Validate the last update if that is not done yet, and average checkpoints."""
        try:
            if self.state.validated_at < self.state.update:
                self._validate_and_save()
            if self.config.average and not self.stopping.stop_reason:
                with self.step.smoothed():
                    averaged = self._selection.average(self.state)
                if averaged:
                    self._save_last()
        except LostError as lost:
            raise TolkaError(f"{lost} at update {self.state.update}; {self.run.last} is from before") from None

    def _validate_if_due(self) -> bool:
        """Validate and save, unless that is done or a stop is requested; return whether it was due."""
        update = self.state.update
        if update % self.config.validate_every or self.state.validated_at >= update or self.stopping.stop_reason:
            return False
        if not self.stopping.affords_validation(self.state, self._time_validation):
            return False
        self._validate_and_save()
        return True

    def _time_validation(self) -> float:
        with self.step.smoothed():
            seconds = self.validator.seconds()
        self.step.parallel.whole_objective.train()  # translations are without dropout
        return seconds

    def _keep_and_save(self) -> None:
        """Save what is due between validations."""
        if self._selection.keeps_regularly(self.state):
            with self.step.smoothed():
                self._selection.save_checkpoint(self.state)
        if self.stopping.saves:
            self._skipped.check(self.state)
            # In a row of skipped updates `last/` stays the state before it, to which training may have to return.
            if not self._skipped.spoils(self.state):
                self._save_last()

    def probe(self) -> float:
        """Apply one update and return its nll per token, for which it waits. Nothing is logged or saved."""
        result = self._train_step(Window())
        self._skipped.forget()
        return result.nll.item() / result.tokens

    def _train_step(self, window: Window) -> UpdateResult:
        """Apply one update of the weights."""
        shares = self.data.shares(self.state)
        self.state.update += 1
        # Halved once for each return to `last/`: with the same rate the same updates would fail again.
        rate = self.rate.at(self.state.update, self.stopping.share_of_minutes, self.state.plateau, self.state.warmup)
        rate *= 0.5**self.state.returns
        result = self.step(self.state.update, rate, shares)
        window.add(result)
        self._skipped.add(self.state.update, result.applied)
        self.state.tokens += result.tokens
        if result.splits:
            self.state.splits += result.splits
            self.run.log(
                f"note: out of memory at update {self.state.update}: its batch goes in halves, as do later ones of its "
                "size (batching.tokens would make them smaller)"
            )
            self.run.record({"update": self.state.update, "splits": self.state.splits})
        return result

    @contextmanager
    def _rolling_back(self) -> Iterator[None]:
        """On a LostError return to `last/`, or to the beginning, at half the rate; TolkaError after the third time."""
        try:
            yield
            return
        except LostError as lost:
            why = str(lost)
        failed_at, returns, skipped = self.state.update, self.state.returns + 1, self.state.skipped
        if returns > _RETURNS:
            raise TolkaError(
                f"{why}, up to update {failed_at}, also after {_RETURNS} attempts at lower rates: try a lower "
                f"optimizer.lr, a longer scheduler.warmup or trainer.precision=fp32; "
                f"{self.run.last} is from before, if it exists"
            )
        self._skipped.forget()
        saved = self._snapshots.last_state() if self._beginning is None else self._beginning
        self.loader.load_state(saved.facts.get("loader", {}))
        self.resume(saved)
        self.state.returns, self.state.skipped, self.state.skipped_in_row = returns, skipped, 0
        self.run.log(
            f"{why}: going back from update {failed_at} to {self.state.update}, to 1/{2**returns} of the learning rate"
        )
        self.run.record({"update": self.state.update, "went_back_from": failed_at})

    def _validate_and_save(self) -> None:
        """Validate the model, and save it as `last/`, and as `best/` if it is; ends early if a stop is requested."""
        # A NaN that was not noticed yet must not be validated, nor saved as the last good state.
        self._skipped.check(self.state)
        # Not at the end of a training: a longer run that resumes from here has no validation, nor a new window, there.
        if self.state.update % self.config.validate_every == 0:
            self._log.window = Window()
        with self.step.smoothed(), suppress(GivenUpError):
            self._selection.validate_and_select(self.state)
        # Not so after a stop, which ends a validation early: a resumed run begins with it.
        if self.state.validated_at == self.state.update and not self._skipped.spoils(self.state):
            self._save_last()
            self.run.drop_checkpoints(self.state.kept)

    def _save_last(self) -> None:
        self.state.seconds = self._clock.seconds
        # Before `smoothed`, which puts the moving average in the weights' place.
        saved = self.step.parallel.gathered(self.resume_state())
        with self.step.smoothed():
            self._selection.save_last(self.state, saved)
        self._ranks.wait()  # the first rank alone writes what all of them may return to
        self._beginning = None
        self.stopping.mark_saved()

    def resume_state(self) -> ResumeState:
        """Return all that is needed besides the weights to resume from here."""
        tensors, facts = self.step.state()
        own = {
            "train": asdict(self.state),
            "loader": self.loader.state(),
            "window": self._log.window.sums(),
            "written": self.run.line_count(),
            "store": self._snapshots.store,
            "fit": {"batches": self.config.accumulate, "tokens": self.loader.tokens},
            "round_batches": self.loader.batches_at_hand(self.state.epoch),
        }
        return ResumeState(tensors, own | facts)

    def resume(self, saved: ResumeState) -> None:
        """Resume from what `resume_state` returned, with the weights of `last/` unless it has its own."""
        self.state = TrainState(**saved.facts["train"])
        self.data.rescale(self.state, saved.facts.get("round_batches"))
        self._log.window = Window(saved.facts.get("window"), self.step.precision.device)
        self.run.drop_checkpoints(self.state.kept)
        self.step.load_state(saved, self._snapshots.load_last_weights)
        self.run.forget_after(saved.facts["written"])
