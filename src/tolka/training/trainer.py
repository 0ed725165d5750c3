"""The training loop: teacher forcing, accumulation divided by tokens, validation, best and last kept."""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from tolka.batch import Batch
from tolka.checkpoint import ResumeState
from tolka.checks import at_least, one_of, share_below_one, zero_or_more
from tolka.data.loader import Loader
from tolka.errors import TolkaError
from tolka.losses import Objective
from tolka.progress import bar
from tolka.runtime import PRECISIONS, Precision
from tolka.scoring import Validation
from tolka.training.run import RunFolder
from tolka.training.schedulers import SchedulerConfig

METRICS = {"bleu": 1, "chrf": 1, "nll": -1, "ppl": -1}  # 1: more is better
_SAVE_LAST_MINUTES = 10.0  # between two saves of last/ while no validation falls due


@dataclass(frozen=True)
class TrainerConfig:
    """The loop's options."""

    updates: int = 20000
    """updates of the weights at most"""
    max_minutes: float = 0.0
    """minutes of training at most, validations included; 0 = no limit"""
    validate_every: int = 500
    """updates between two validations"""
    patience: int = 10
    """stop after this many validations without a better trainer.metric; 0 = never"""
    metric: str = "bleu"
    """which model is best, on the validation set: bleu, chrf, nll or ppl"""
    log_every: int = 50
    """updates between two lines in metrics.jsonl"""
    samples: int = 3
    """sample translations shown at each validation"""
    label_smoothing: float = 0.1
    """probability spread evenly over the vocabulary (Szegedy et al. 2016)"""
    accumulate: int = 1
    """batches whose gradients make one update, divided once by all their target tokens"""
    clip_value: float = 0.0
    """ceiling on each entry of the gradient, before clip_norm: one wild entry does not shrink the rest; 0 = off"""
    clip_norm: float = 1.0
    """ceiling on the norm of the gradient; 0 = off"""
    find_lr: bool = False
    """instead of training, try ever larger learning rates for at most 176 updates, and recommend a peak rate"""
    device: str = "auto"
    """auto (the first GPU, else the CPU), cpu, cuda, cuda:N"""
    precision: str = "auto"
    """auto, fp32, bf16 or fp16; auto asks the machine, and on a CPU measures"""

    def __post_init__(self) -> None:
        at_least(self, "trainer", 1, "updates", "validate_every", "log_every", "accumulate")
        zero_or_more(self, "trainer", "off", "max_minutes", "patience", "clip_value", "clip_norm", "samples")
        share_below_one(self, "trainer", "label_smoothing")
        one_of(self, "trainer", "metric", METRICS)
        one_of(self, "trainer", "precision", PRECISIONS)


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
    stale: int = 0
    validated_at: int = 0
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
        validate: Callable[[int], Validation],
        save: Callable[[ResumeState | None, dict[str, Any]], None],
    ) -> None:
        """peak: the schedule's highest rate. validate: scores the model as it is, given the update's number.

        save: writes `last/` with the resume state that it is given, or `best/` when that is None; its second argument
        is for scores.json.
        """
        self.config, self.objective, self.optimizer, self.loader = config, objective, optimizer, loader
        self.scheduler, self.peak, self.precision, self.run = scheduler, peak, precision, run
        self.validate, self.save = validate, save
        self.state = TrainState(precision=precision.name)
        self.scaler = torch.amp.GradScaler(precision.device.type, enabled=precision.needs_scaler)
        self._values: dict[str, float] = {}
        self._signatures: dict[str, str] = {}
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
        elif self.state.validated_at < self.state.update:
            self._validate_and_save()
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
        rate = self.scheduler.rate(self.state.update, self.peak)
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = rate
        tokens = sum(batch.tokens for batch in group)
        self.optimizer.zero_grad(set_to_none=True)
        for batch in group:
            with self.precision.autocast():
                sums = self.objective(batch.to(self.precision.device))
            self.scaler.scale(sums.loss / tokens).backward()
            window.add(sums.nll, sums.tokens)
        self.scaler.unscale_(self.optimizer)
        if self.config.clip_value:
            torch.nn.utils.clip_grad_value_(self.objective.parameters(), self.config.clip_value)
        if self.config.clip_norm:
            torch.nn.utils.clip_grad_norm_(self.objective.parameters(), self.config.clip_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.state.tokens += tokens

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

    def _validate_and_save(self) -> None:
        """Score the model; keep it as the best when it is, as the last always."""
        state = self.state
        self.objective.eval()
        result = self.validate(state.update)
        self.objective.train()
        self._check(result.values["nll"], "validation")
        value = result.values[self.config.metric]
        better = state.best is None or METRICS[self.config.metric] * (value - state.best) > 0
        state.stale = 0 if better else state.stale + 1
        if better:
            state.best, state.best_update = value, state.update
        state.validated_at = state.update
        state.seconds = time.perf_counter() - self._started_at
        self._values = {"valid_loss": result.values["nll"], **result.values}
        del self._values["nll"]
        self._signatures = result.signatures
        line = {"update": state.update, **self._values, "signatures": self._signatures, "seconds": state.seconds}
        self.run.record(line)
        self.run.log(result.text + (" (best so far)" if better else f" (best {state.best:.2f} at {state.best_update})"))
        if better:
            self.save(None, self._scores())
        self._save_last()

    def _save_last(self) -> None:
        self.state.seconds = time.perf_counter() - self._started_at
        self.save(self.resume_state(), self._scores())
        self._saved_at = time.perf_counter()

    def _scores(self) -> dict[str, Any]:
        return {"update": self.state.validated_at, "validation": self._values, "signatures": self._signatures}

    def resume_state(self) -> ResumeState:
        """All that is needed, beside the weights, to go on from here."""
        tensors = {"rng": torch.get_rng_state()}
        if self.precision.device.type == "cuda":
            tensors["rng_cuda"] = torch.cuda.get_rng_state(self.precision.device)
        names: dict[Any, str] = {parameter: name for name, parameter in self.objective.model.named_parameters()}
        for parameter, moments in self.optimizer.state.items():
            for key, value in moments.items():
                tensors[f"optimizer.{names[parameter]}.{key}"] = torch.as_tensor(value).detach().cpu()
        return ResumeState(tensors, {"train": asdict(self.state), "scaler": self.scaler.state_dict()})

    def resume(self, saved: ResumeState) -> None:
        """Go on from what `resume_state` gave; the weights are the caller's business."""
        self.state = TrainState(**saved.facts["train"])
        self.scaler.load_state_dict(saved.facts["scaler"])
        torch.set_rng_state(saved.tensors["rng"])
        if "rng_cuda" in saved.tensors and self.precision.device.type == "cuda":
            torch.cuda.set_rng_state(saved.tensors["rng_cuda"], self.precision.device)
        # By torch's own way, which knows what of a state lives beside the parameter and what on the CPU.
        own = self.optimizer.state_dict()
        names: dict[Any, str] = {parameter: name for name, parameter in self.objective.model.named_parameters()}
        parameters = (parameter for group in self.optimizer.param_groups for parameter in group["params"])
        for number, parameter in enumerate(parameters):
            prefix = f"optimizer.{names[parameter]}."
            moments = {key.removeprefix(prefix): v for key, v in saved.tensors.items() if key.startswith(prefix)}
            if moments:
                own["state"][number] = moments
        self.optimizer.load_state_dict(own)
        self.run.forget_after(self.state.update)
