"""A trainer on a tiny model, for the tests of training."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from tolka.data.buckets import BatchingConfig
from tolka.data.loader import Loader
from tolka.data.store import TokenStore
from tolka.distributed.ranks import ALONE
from tolka.metrics.validation import Validation
from tolka.model_directory.read import ResumeState
from tolka.models.transformer import TransformerConfig
from tolka.nn.lora import add_adapters
from tolka.optim.optimizers.base import OptimizerConfig
from tolka.optim.optimizers.of_torch import AdamWConfig
from tolka.optim.schedules.base import LearningRate, SchedulerConfig
from tolka.optim.schedules.formulas import InverseSqrtConfig
from tolka.system.device import Precision
from tolka.training.callbacks import Callback
from tolka.training.data_position import DataPosition
from tolka.training.options import TrainerConfig
from tolka.training.parallel.choice import parallel_of
from tolka.training.run_folder import RunFolder
from tolka.training.step import RAW, TrainStep
from tolka.training.trainer import Trainer

CPU = torch.device("cpu")
ROWS = [[4 + (i * j) % 7 for j in range(1, 2 + i % 6)] for i in range(40)]
STORE = TokenStore.from_rows(ROWS, ROWS[::-1])


class Bench:
    """A trainer on a tiny model, with everything it is handed recorded."""

    store = "store"

    def __init__(
        self,
        folder: Path,
        scores: list[float] | None = None,
        seed: int = 1,
        optimizer: OptimizerConfig | None = None,
        dropout: float = 0.1,
        schedule: SchedulerConfig | None = None,
        lora_rank: int = 0,
        precision: str = "fp32",
        **options: Any,
    ) -> None:
        folder.mkdir(exist_ok=True)
        torch.manual_seed(seed)
        model = TransformerConfig(d_model=16, heads=2, layers=1, dropout=dropout).build(11, 11, True)
        if lora_rank:
            add_adapters(model, lora_rank, 16.0)
        config = TrainerConfig(**{"label_smoothing": 0.1, "log_every": 5, "validate_every": 10, **options})
        self.saved: list[tuple[str, int]] = []
        self.last: ResumeState | None = None
        self.weights: dict[str, torch.Tensor] = {}
        self.full = False  # the disk, for all that is taken from now on
        self.scores = iter(scores or [])
        self.validate = FakeValidator(self)
        self.model = model
        objective, run, numbers = config.objective(model), RunFolder(folder), Precision(CPU, precision)
        parallel = parallel_of(config, objective, ALONE, numbers)
        loader = Loader(STORE, BatchingConfig(tokens=32, max_length=16), seed=3)
        snapshots: Any = self
        self.trainer = Trainer(
            config,
            TrainStep(config, objective, (optimizer or AdamWConfig()).build(model), numbers, parallel),
            LearningRate(schedule or InverseSqrtConfig(warmup=5), 0.01, config.updates),
            DataPosition(loader, config.accumulate, run.log),
            run,
            self.validate,
            snapshots,
            Callback(),
        )

    def stop_after(self, update: int) -> None:
        """As a signal in that update would."""
        real = self.trainer._train_step

        def stopping(window: Any) -> Any:
            made = real(window)
            if self.trainer.state.update == update:
                self.trainer.stop("asked")
            return made

        self.trainer._train_step = stopping  # type: ignore[method-assign]

    def validate_with(self, validate: Any) -> None:
        """Instead of with `validate`."""
        self.trainer._selection.validate = validate

    def take(self, scores: dict[str, Any], state: ResumeState | None = None) -> "Shot":
        weights = {name: value.clone() for name, value in self.model.state_dict().items()}
        return Shot(self, state and copied(state), scores, weights, self.full)

    def last_state(self) -> ResumeState:
        assert self.last is not None
        return copied(self.last)

    def load_last_weights(self) -> None:
        self.model.load_state_dict(self.weights)


@dataclasses.dataclass
class FakeValidator:
    """Gives the scores that its bench says."""

    bench: Bench

    def __call__(self, update: int, what: str, tick: Callable[[], object]) -> Validation:
        tick()
        bleu = next(self.bench.scores, float(update))
        return Validation({"nll": 1.0, "ppl": 2.7, "bleu": bleu, "chrf": 1.0}, "scored")

    def rehearse(self) -> None:
        pass

    def seconds(self) -> float:
        return 1.0


@dataclasses.dataclass
class Shot:
    """A model at one moment; writing it is remembered by its bench, and refused if the bench says so."""

    bench: Bench
    state: ResumeState | None
    scores: dict[str, Any]
    weights: dict[str, torch.Tensor]
    refused: bool

    def write(self, folder: Path) -> None:
        if self.refused:
            raise OSError(28, "No space left on device", str(folder / "model.safetensors"))
        self.bench.saved.append((folder.name, self.scores["update"]))
        if self.state is not None:
            self.bench.last, self.bench.weights = self.state, self.weights


def copied(state: ResumeState) -> ResumeState:
    """Tensors that nobody else changes, as a file would give."""
    return ResumeState({name: value.clone() for name, value in state.tensors.items()}, state.facts)


def through_a_file(state: ResumeState, path: Path) -> ResumeState:
    """What another process reads: the tensors share no memory with the run that saved them."""
    save_file(state.tensors, path)
    return ResumeState(load_file(path), json.loads(json.dumps(state.facts)))


def with_weights(state: ResumeState, weights: Mapping[str, torch.Tensor]) -> ResumeState:
    """The state with the weights of the model that was saved with it, unless it has its own."""
    return dataclasses.replace(
        state, tensors={**{f"{RAW}{name}": each for name, each in weights.items()}, **state.tensors}
    )


def goes_on_to_the_same_weights(
    first: Bench,
    straight: Bench,
    folder: Path,
    updates: int,
    optimizer: OptimizerConfig | None = None,
    **options: Any,
) -> None:
    """A new process takes up what `first` saved, and ends where `straight` did, bit for bit."""
    assert first.last is not None
    second = Bench(folder, seed=99, optimizer=optimizer, updates=updates, **options)
    second.trainer.resume(with_weights(through_a_file(first.last, folder / "state.safetensors"), first.weights))
    second.trainer.fit()
    for name, value in straight.model.state_dict().items():
        assert torch.equal(value, second.model.state_dict()[name]), name


def assert_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() <= other.keys()
    for name, value in one.items():
        torch.testing.assert_close(value, other[name])
