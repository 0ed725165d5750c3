"""The training loop: which batches, at what rate, until when; validation, best and last kept."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tolka.batch import Batch
from tolka.checkpoint import ResumeState, average_weights
from tolka.data.loader import Batches
from tolka.errors import TolkaError
from tolka.losses import Objective
from tolka.progress import bar
from tolka.runtime import Precision
from tolka.scoring import Validation
from tolka.training.averaging import weights_kept
from tolka.training.options import METRICS, TrainerConfig
from tolka.training.run import RunFolder
from tolka.training.schedulers import SchedulerConfig
from tolka.training.step import TrainStep

_SAVE_LAST_MINUTES = 10.0  # between two saves of last/ while no validation falls due


@dataclass
class TrainState:
    """How far training is. epoch (or buffer, of a stream) and batch: of the next batch to read.

    stale: validations without a better one.
    """

    update: int = 0
    epoch: int = 0
    batch: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best: float | None = None
    best_update: int = 0
    best_mean_of: list[int] = field(default_factory=list)  # the updates whose mean the best model is, if it is one
    stale: int = 0
    validated_at: int = 0
    kept: dict[str, float] = field(default_factory=dict)  # update -> trainer.metric of the checkpoints to be averaged
    averaged_at: int = 0
    precision: str = ""


@dataclass
class _Window:
    """Sums since the last line in metrics.jsonl; `nll` stays on its device until it is read."""

    started_at: float = field(default_factory=time.perf_counter)
    nll: Tensor | None = None
    tokens: int = 0

    def add(self, nll: Tensor, tokens: int) -> None:
        self.nll = nll if self.nll is None else self.nll + nll
        self.tokens += tokens

    @property
    def loss(self) -> float:
        """nll per token; waits for the device."""
        assert self.nll is not None
        return self.nll.item() / self.tokens


class Trainer:
    """Trains one objective; knows neither the architecture nor how validation is done."""

    def __init__(
        self,
        config: TrainerConfig,
        objective: Objective,
        optimizer: torch.optim.Optimizer,
        scheduler: SchedulerConfig,
        peak: float,
        loader: Batches,
        precision: Precision,
        run: RunFolder,
        validate: Callable[[int, str], Validation],
        save: Callable[[Path, ResumeState | None, dict[str, Any]], None],
    ) -> None:
        """peak: the schedule's highest rate. validate: scores the model as it is, given the update's number and, if it
        is not simply the model of that update, a word on what it is.

        save: writes the model as it is into a folder, with what to resume from where that is not None; its third
        argument is for scores.json.
        """
        self.config, self.objective, self.loader, self.run = config, objective, loader, run
        self.scheduler, self.peak = scheduler, peak
        self.validate, self.save = validate, save
        self.step = TrainStep(config, objective, optimizer, precision)
        self.state = TrainState(precision=precision.name)
        self._latest = Validation({}, "")
        self._started_at = self._saved_at = time.perf_counter()
        self._stop_asked: str | None = None

    def stop(self, reason: str) -> None:
        """Ask for an end after the update at work, with `last/` saved; safe to call from a signal handler."""
        self._stop_asked = reason

    def fit(self) -> TrainState:
        """Train until the updates, the minutes or the patience are used up; always leaves `best/` and `last/`."""
        self._saved_at = time.perf_counter()
        self._started_at = self._saved_at - self.state.seconds
        self.objective.train()
        window = _Window()
        with bar("training", self.config.updates, " updates", initial=self.state.update) as progress:
            while (reason := self._reason_to_stop()) is None:
                self._train_step(window)
                progress.update()
                if self.state.update % self.config.log_every == 0:
                    progress.set_postfix_str(self._log(window), refresh=False)
                    window = _Window()
                if self.state.update % self.config.validate_every == 0:
                    self._validate_and_save()
                    window = _Window()
                elif time.perf_counter() - self._saved_at > 60 * _SAVE_LAST_MINUTES:
                    self._save_last()
        if self._stop_asked:
            if self.state.update:
                self._save_last()
        else:
            if self.state.validated_at < self.state.update:
                self._validate_and_save()
            self._average()
        self.run.log(f"training ends at update {self.state.update}: {reason}")
        return self.state

    def _reason_to_stop(self) -> str | None:
        config, state = self.config, self.state
        if self._stop_asked:
            return self._stop_asked
        if state.update >= config.updates:
            return f"trainer.updates ({config.updates}) are done; raise it to go on"
        if config.max_minutes and time.perf_counter() - self._started_at >= 60 * config.max_minutes:
            return f"trainer.max_minutes ({config.max_minutes:g}) are over; raise it to go on"
        if config.patience and state.stale >= config.patience:
            return f"{state.stale} validations without a better {config.metric} (trainer.patience)"
        return None

    def probe(self) -> float:
        """One update of the weights; returns its nll per token, for which it waits. Nothing is logged or saved."""
        window = _Window()
        self._train_step(window)
        return window.loss

    def _next_group(self) -> list[Batch]:
        """The batches of one update; moves the state's place in the data."""
        group = []
        for _ in range(self.config.accumulate):
            group.append(self.loader.batch(self.state.epoch, self.state.batch))
            self.state.batch += 1
            if self.state.batch == len(self.loader.plan(self.state.epoch)):
                self.state.epoch, self.state.batch = self.state.epoch + 1, 0
        return group

    def _train_step(self, window: _Window) -> None:
        """One update of the weights."""
        group = self._next_group()
        self.state.update += 1
        nll = self.step(self.state.update, self._rate(), group)
        tokens = sum(batch.tokens for batch in group)
        window.add(nll, tokens)
        self.state.tokens += tokens

    def _rate(self) -> float:
        """The learning rate of the update at work."""
        update, minutes = self.state.update, self.config.max_minutes
        share = (time.perf_counter() - self._started_at) / (60 * minutes) if minutes else 0.0
        return self.scheduler.paced(update, share, self.config.updates).rate(update, self.peak)

    def _log(self, window: _Window) -> str:
        """Write a training line; returns the same for the progress bar. TolkaError when the loss is no number."""
        loss = window.loss
        self._check(loss, "training")
        self.state.seconds = time.perf_counter() - self._started_at
        line = {
            "update": self.state.update,
            "train_loss": loss,
            "lr": self.step.rate,
            "tokens_per_second": window.tokens / (time.perf_counter() - window.started_at),
            "epoch": self.state.epoch,
            "seconds": self.state.seconds,
        }
        self.run.record(line)
        return f"nll {loss:.3f}, {line['tokens_per_second']:.0f} tok/s, {self.loader.round} {self.state.epoch + 1}"

    def _check(self, loss: float, which: str) -> None:
        """TolkaError when the loss is no number, before such weights are saved over good ones."""
        if not math.isfinite(loss):
            raise TolkaError(
                f"the {which} loss is {loss} at update {self.state.update}: try a lower optimizer.lr, a longer "
                f"scheduler.warmup or trainer.precision=fp32; {self.run.last} is from before, if it exists"
            )

    def _validate_and_save(self) -> None:
        """Score the model; keep it as the best when it is, as the last always."""
        with self.step.smoothed():
            if self._score():
                self.save(self.run.best, None, self._scores())
            if self.config.average > 1:
                self._keep()
        self._save_last()
        self.run.drop_checkpoints(self.state.kept)

    def _score(self, mean_of: Sequence[int] = ()) -> bool:
        """Validate the model as it is and write it down; whether it is the best so far."""
        state = self.state
        self.objective.eval()
        self._latest = result = self.validate(state.update, "mean" if mean_of else "")
        self.objective.train()
        self._check(result.values["nll"], "validation")
        value = result.values[self.config.metric]
        better = state.best is None or METRICS[self.config.metric] * (value - state.best) > 0
        state.stale = 0 if better else state.stale + 1
        if better:
            state.best, state.best_update, state.best_mean_of = value, state.update, list(mean_of)
        state.validated_at = state.update
        state.seconds = time.perf_counter() - self._started_at
        scores = self._scores(mean_of)
        self.run.record({**scores.pop("validation"), **scores, "seconds": state.seconds})
        self.run.log(result.text + (" (best so far)" if better else f" (best {state.best:.2f} at {state.best_update})"))
        return better

    def _keep(self) -> None:
        """Keep this checkpoint for the mean at the end, and no more than `trainer.average` of them.

        The folder of one that falls out goes once `last/` no longer counts on it.
        """
        state, sign = self.state, METRICS[self.config.metric]
        self.save(self.run.checkpoint(state.update), None, self._scores())
        kept = {**state.kept, str(state.update): self._latest.values[self.config.metric]}
        ranked = sorted(kept, key=int, reverse=True)
        if self.config.average_of == "best":
            ranked.sort(key=lambda update: -sign * kept[update])
        state.kept = {update: kept[update] for update in ranked[: self.config.average]}

    def _average(self) -> None:
        """Score the mean of the kept checkpoints; it becomes the best model if it is."""
        state = self.state
        updates = sorted(update for update in map(int, state.kept) if self.run.checkpoint(update).is_dir())
        if self.config.average < 2 or state.averaged_at == state.update:
            return
        if len(updates) < 2:
            self.run.log(f"note: no mean of checkpoints (trainer.average): {len(updates)} is there")
            return
        mean = average_weights([self.run.checkpoint(update) for update in updates], self.objective.model)
        self.run.log(f"the mean of {len(updates)} checkpoints, of updates {', '.join(map(str, updates))}:")
        stale, latest = state.stale, self._latest  # of the model that would go on
        with weights_kept(self.objective.model):
            self.objective.model.load_state_dict(mean, strict=False)
            if self._score(updates):
                self.save(self.run.best, None, self._scores(updates))
        state.averaged_at, state.stale, self._latest = state.update, stale, latest
        self._save_last()

    def _save_last(self) -> None:
        self.state.seconds = time.perf_counter() - self._started_at
        saved = self.resume_state()
        with self.step.smoothed():
            self.save(self.run.last, saved, self._scores())
        self._saved_at = time.perf_counter()

    def _scores(self, mean_of: Sequence[int] = ()) -> dict[str, Any]:
        """The last validation, for scores.json. mean_of: the updates whose mean was validated, if it was one."""
        values = {"valid_loss" if name == "nll" else name: value for name, value in self._latest.values.items()}
        scores = {"update": self.state.validated_at, "validation": values, "signatures": self._latest.signatures}
        return {**scores, "mean_of_updates": list(mean_of)} if mean_of else scores

    def resume_state(self) -> ResumeState:
        """All that is needed, beside the weights, to go on from here."""
        tensors, facts = self.step.state()
        return ResumeState(tensors, {"train": asdict(self.state), "loader": self.loader.state(), **facts})

    def resume(self, saved: ResumeState, load_weights: Callable[[], None]) -> None:
        """Go on from what `resume_state` gave. load_weights: puts those of `last/` into the model."""
        self.state = TrainState(**saved.facts["train"])
        self.run.drop_checkpoints(self.state.kept)
        self.step.load_state(saved.tensors, saved.facts, load_weights)
        self.run.forget_after(self.state.update)
