"""The training loop: teacher forcing, accumulation divided by tokens, validation, best and last kept."""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tolka.batch import Batch
from tolka.checkpoint import ResumeState, average_weights
from tolka.data.loader import Loader
from tolka.errors import TolkaError
from tolka.losses import Objective
from tolka.nn.lora import has_adapters
from tolka.progress import bar
from tolka.runtime import Precision
from tolka.scoring import Validation
from tolka.training.averaging import Ema, weights_kept
from tolka.training.optim import load_state_tensors, state_tensors
from tolka.training.options import METRICS, TrainerConfig
from tolka.training.run import RunFolder
from tolka.training.schedulers import SchedulerConfig

_SAVE_LAST_MINUTES = 10.0  # between two saves of last/ while no validation falls due


@dataclass
class TrainState:
    """How far training is. epoch and batch: of the next batch to read. stale: validations without a better one."""

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
        self.nll = nll.detach() if self.nll is None else self.nll + nll.detach()
        self.tokens += tokens


class Trainer:
    """Trains one objective; knows neither the architecture nor how validation is done."""

    def __init__(
        self,
        config: TrainerConfig,
        objective: Objective,
        optimizer: torch.optim.Optimizer,
        scheduler: SchedulerConfig,
        peak: float,
        loader: Loader,
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
        self.config, self.objective, self.optimizer, self.loader = config, objective, optimizer, loader
        self.scheduler, self.peak, self.precision, self.run = scheduler, peak, precision, run
        self.validate, self.save = validate, save
        self.state = TrainState(precision=precision.name)
        self.scaler = torch.amp.GradScaler(precision.device.type, enabled=precision.needs_scaler)
        self.ema = Ema(objective.model, config.ema) if config.ema else None
        # A saved model has the moving average's weights, or adapters merged into them: what is trained is kept apart.
        self._saves_other_weights = bool(self.ema) or has_adapters(objective.model)
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
        assert window.nll is not None
        return window.nll.item() / window.tokens

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
        rate = self._rate()
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = rate
        self.objective.agreeing = self.state.update > self.config.agreement_after
        tokens = sum(batch.tokens for batch in group)
        self.optimizer.zero_grad(set_to_none=True)
        for batch in group:
            with self.precision.autocast():
                sums = self.objective(batch.to(self.precision.device))
            if sums.loss.requires_grad:  # not where LayerDrop has skipped all that is trained
                self.scaler.scale(sums.loss / tokens).backward()
            window.add(sums.nll, sums.tokens)
        self.state.tokens += tokens
        if any(weight.grad is not None for weight in self.objective.parameters()):
            self._move_weights()

    def _rate(self) -> float:
        """The learning rate of the update at work."""
        update, minutes = self.state.update, self.config.max_minutes
        share = (time.perf_counter() - self._started_at) / (60 * minutes) if minutes else 0.0
        return self.scheduler.paced(update, share, self.config.updates).rate(update, self.peak)

    def _move_weights(self) -> None:
        """Unscale, clip, step."""
        self.scaler.unscale_(self.optimizer)
        if self.config.clip_value:
            torch.nn.utils.clip_grad_value_(self.objective.parameters(), self.config.clip_value)
        if self.config.clip_norm:
            torch.nn.utils.clip_grad_norm_(self.objective.parameters(), self.config.clip_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if self.ema:
            self.ema.update(self.state.update)

    def _log(self, window: _Window) -> str:
        """Write a training line; returns the same for the progress bar. TolkaError when the loss is no number."""
        assert window.nll is not None
        # .item() waits for the GPU: only when logging.
        loss = window.nll.item() / window.tokens
        self._check(loss, "training")
        self.state.seconds = time.perf_counter() - self._started_at
        line = {
            "update": self.state.update,
            "train_loss": loss,
            "lr": self.optimizer.param_groups[0]["lr"],
            "tokens_per_second": window.tokens / (time.perf_counter() - window.started_at),
            "epoch": self.state.epoch,
            "seconds": self.state.seconds,
        }
        self.run.record(line)
        return f"nll {loss:.3f}, {line['tokens_per_second']:.0f} tok/s, epoch {self.state.epoch + 1}"

    def _check(self, loss: float, which: str) -> None:
        """TolkaError when the loss is no number, before such weights are saved over good ones."""
        if not math.isfinite(loss):
            raise TolkaError(
                f"the {which} loss is {loss} at update {self.state.update}: try a lower optimizer.lr, a longer "
                f"scheduler.warmup or trainer.precision=fp32; {self.run.last} is from before, if it exists"
            )

    def _smoothed(self) -> AbstractContextManager[None]:
        """The model with the weights to translate with: the moving average's, where it is on."""
        return self.ema.in_place() if self.ema else nullcontext()

    def _validate_and_save(self) -> None:
        """Score the model; keep it as the best when it is, as the last always."""
        with self._smoothed():
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
        mean = average_weights([self.run.checkpoint(update) for update in updates])
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
        with self._smoothed():
            self.save(self.run.last, saved, self._scores())
        self._saved_at = time.perf_counter()

    def _scores(self, mean_of: Sequence[int] = ()) -> dict[str, Any]:
        """The last validation, for scores.json. mean_of: the updates whose mean was validated, if it was one."""
        values = {"valid_loss" if name == "nll" else name: value for name, value in self._latest.values.items()}
        scores = {"update": self.state.validated_at, "validation": values, "signatures": self._latest.signatures}
        return {**scores, "mean_of_updates": list(mean_of)} if mean_of else scores

    @property
    def _names(self) -> dict[Tensor, str]:
        return {weight: name for name, weight in self.objective.model.named_parameters()}

    def resume_state(self) -> ResumeState:
        """All that is needed, beside the weights, to go on from here."""
        tensors = {"rng": torch.get_rng_state(), **state_tensors(self.optimizer, self._names)}
        if self.precision.device.type == "cuda":
            tensors["rng_cuda"] = torch.cuda.get_rng_state(self.precision.device)
        if self._saves_other_weights:  # copies: on a CPU the model's own are about to be exchanged for those
            tensors |= {f"raw.{name}": weight.detach().to("cpu", copy=True) for weight, name in self._names.items()}
        if self.ema:
            tensors |= {f"ema.{name}": weight.to("cpu", copy=True) for name, weight in self.ema.average.items()}
        return ResumeState(tensors, {"train": asdict(self.state), "scaler": self.scaler.state_dict()})

    def resume(self, saved: ResumeState, load_weights: Callable[[], None]) -> None:
        """Go on from what `resume_state` gave. load_weights: puts those of `last/` into the model."""
        self.state = TrainState(**saved.facts["train"])
        self.run.drop_checkpoints(self.state.kept)
        self.scaler.load_state_dict(saved.facts["scaler"])
        torch.set_rng_state(saved.tensors["rng"])
        if "rng_cuda" in saved.tensors and self.precision.device.type == "cuda":
            torch.cuda.set_rng_state(saved.tensors["rng_cuda"], self.precision.device)
        if not self._saves_other_weights:
            load_weights()
        for weight, name in self._names.items():
            if self._saves_other_weights:
                weight.data.copy_(saved.tensors[f"raw.{name}"])
            if self.ema:
                self.ema.average[name].copy_(saved.tensors[f"ema.{name}"])
        load_state_tensors(self.optimizer, self._names, saved.tensors)
        self.run.forget_after(self.state.update)
