"""What each option costs in speed and memory, beside the small Transformer as it is by default.

    python benchmarks/options.py [--only rotary swiglu]

Trains on made-up ids: a vocabulary of 8000, sentences as long as Multi30k's, about 2000 target tokens a batch. Speed:
every round takes all options in turn, each right behind a turn of the default, so that both find the machine in the
same mood; all in this process, on the same batches, after an update that warms up. Printed is the ratio of the two
medians over the rounds. Memory: the peak of a process of its own, the program itself included.

To measure one more option, add its settings, written as for mt-train, to OPTIONS.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tolka.data.store import TokenStore
from tolka.metrics.validation import Validation
from tolka.model_directory.read import ResumeState
from tolka.training.finetuning import FinetuningConfig

VOCABULARY = 8000
PAIRS = 4000
DEFAULT = "default"
OPTIONS: dict[str, list[str]] = {
    DEFAULT: [],
    "SSRU": ["model.decoder=ssru"],
    "post-norm": ["model.norm=post"],
    "RMSNorm": ["model.normalization=rmsnorm"],
    "learned positions": ["model.positions=learned"],
    "rotary positions": ["model.positions=rotary"],
    "GELU": ["model.activation=gelu"],
    "SwiGLU": ["model.activation=swiglu"],
    "encoder 6, decoder 1": ["model.layers=6", "model.decoder_layers=1"],
    "no dropout": ["model.dropout=0"],
    "attention dropout 0.1": ["model.attention_dropout=0.1"],
    "activation dropout 0.1": ["model.activation_dropout=0.1"],
    "embeddings not shared": ["model.share_embeddings=none"],
    "source and target embeddings shared": ["model.share_embeddings=source_target"],
    "two batches an update": ["trainer.accumulate=2"],
    "moving average": ["trainer.ema=0.999"],
    "no clipping": ["trainer.clip_norm=0"],
    "Adam": ["optimizer=adam"],
    "SGD": ["optimizer=sgd"],
    "Adafactor": ["optimizer=adafactor"],
    "Muon": ["optimizer=muon"],
    "encoder frozen": [],
    "adapters of rank 8": [],
}
# mt-train takes these with a model to go on from only; their cost is that of fresh weights.
FINETUNING = {
    "encoder frozen": FinetuningConfig(freeze=["encoder"]),
    "adapters of rank 8": FinetuningConfig(lora_rank=8),
}


def made_up_text() -> TokenStore:
    """Return random ids with lengths spread like those of Multi30k's captions in subwords."""
    rng = np.random.default_rng(1)
    target_lengths = rng.lognormal(np.log(13.5), 0.35, PAIRS).round().clip(4, 45).astype(np.int32)
    source_lengths = (target_lengths * rng.normal(1.0, 0.12, PAIRS)).round().clip(4, 45).astype(np.int32)
    ids = rng.integers(4, VOCABULARY, (2, PAIRS, 45))
    sides = [
        [row[:length] for row, length in zip(side, lengths, strict=True)]
        for side, lengths in zip(ids, (source_lengths, target_lengths), strict=True)
    ]
    return TokenStore.from_rows(*sides)


class Nothing:
    """Stands for the validator and the snapshots of a trainer that neither validates nor saves."""

    store = "made up"

    def __call__(self, update: int, what: str, tick: Callable[[], object]) -> Validation:
        """Never called."""
        raise NotImplementedError

    def rehearse(self) -> None:
        """Do nothing."""

    def take(self, scores: dict[str, Any]) -> Any:
        """Never called."""
        raise NotImplementedError

    def last_state(self) -> ResumeState:
        """Never called."""
        raise NotImplementedError

    def load_last_weights(self) -> None:
        """Do nothing."""


def training(option: str, tokens: int, folder: Path) -> tuple[Callable[[], int], int]:
    """A fresh training: what makes an update as mt-train would and returns its target tokens; its parameters."""
    from tolka.config.command_line import train_config
    from tolka.data.loader import Loader
    from tolka.optim.schedules.base import LearningRate
    from tolka.system.device import Precision, choose_device
    from tolka.system.memory import keep_freed_memory
    from tolka.system.randomness import seed_everything
    from tolka.training.callbacks import Callback
    from tolka.training.data_position import DataPosition
    from tolka.training.run_folder import RunFolder
    from tolka.training.step import TrainStep
    from tolka.training.trainer import Trainer

    keep_freed_memory()
    size = ["model=transformer_small", f"batching.tokens={tokens}", "batching.max_length=64", "trainer.precision=fp32"]
    config = train_config([*size, *OPTIONS[option]])
    seed_everything(config.run.seed)
    model = config.model.build(VOCABULARY, VOCABULARY, shared=True)
    FINETUNING.get(option, config.finetuning).apply(model)
    loader, run = Loader(made_up_text(), config.batching, config.run.seed), RunFolder(folder)
    precision = Precision(choose_device("cpu"), config.trainer.precision)
    nothing: Any = Nothing()
    trainer = Trainer(
        config.trainer,
        TrainStep(config.trainer, config.trainer.objective(model), config.optimizer.build(model), precision),
        LearningRate(config.scheduler, config.optimizer.lr, config.trainer.updates),
        DataPosition(loader, config.trainer.accumulate, run.log),
        run,
        nothing,
        nothing,
        Callback(),
    )
    trainer.step.objective.train()

    def update() -> int:
        before = trainer.state.tokens
        trainer.probe()
        return trainer.state.tokens - before

    return update, model.parameter_count()


def measure(option: str, tokens: int, updates: int) -> dict[str, float]:
    """One turn: target tokens per second, parameters, and the peak memory of this process so far."""
    from tolka.system.memory import peak_memory_bytes

    with tempfile.TemporaryDirectory() as folder:
        update, parameters = training(option, tokens, Path(folder))
        update()
        started_at = time.perf_counter()
        done = sum(update() for _ in range(updates))
        rate = done / (time.perf_counter() - started_at)
    return {"rate": rate, "parameters": parameters, "memory": peak_memory_bytes()}


def peak_memory(option: str, tokens: int, updates: int) -> float:
    """Bytes, of a process that does nothing else."""
    sizes = ["--tokens", str(tokens), "--updates", str(updates)]
    command = [sys.executable, __file__, "--one", option, *sizes]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return float(json.loads(done.stdout.splitlines()[-1])["memory"])


def main() -> None:
    """Memory of each option, rounds of all options in turn, then the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(OPTIONS), metavar="OPTION", help=f"of: {', '.join(OPTIONS)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=6, help="timed updates a turn")
    parser.add_argument(
        "--tokens", type=int, default=2176, help="batching.tokens: ceiling on a batch, padding included"
    )
    parser.add_argument("--one", choices=list(OPTIONS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    sizes = (arguments.tokens, arguments.updates)
    if arguments.one:
        print(json.dumps(measure(arguments.one, *sizes)))
        return
    options = [name for name in OPTIONS if name == DEFAULT or name in (arguments.only or OPTIONS)]
    # First: Linux counts what a process was before it became another program, and this one is still small.
    memory = {option: peak_memory(option, *sizes) for option in options}
    rates: dict[str, list[float]] = {option: [] for option in options}
    beside: dict[str, list[float]] = {option: [] for option in options}  # the default's, of the turn before
    parameters = {}
    for number in range(arguments.rounds):
        for option in options:
            beside[option].append(measure(DEFAULT, *sizes)["rate"])
            turn = measure(option, *sizes)
            rates[option].append(turn["rate"])
            parameters[option] = int(turn["parameters"])
            print(
                f"round {number + 1}, {option}: {turn['rate']:.0f} target tokens/s, default {beside[option][-1]:.0f}",
                file=sys.stderr,
            )
    print("| option | parameters | target tokens/s, ratio | peak memory, ratio |\n|---|---|---|---|")
    for option in options:
        speed = statistics.median(rates[option]) / statistics.median(beside[option])
        print(f"| {option} | {parameters[option]:,} | {speed:.2f} | {memory[option] / memory[DEFAULT]:.2f} |")
    all_default = [rate for turns in beside.values() for rate in turns]
    print(
        f"\n1.00 is {statistics.median(all_default):.0f} target tokens/s ({min(all_default):.0f} to "
        f"{max(all_default):.0f} over {len(all_default)} turns) and {memory[DEFAULT] / 1e9:.2f} GB. The ratio of the "
        "default to itself shows what is noise."
    )


if __name__ == "__main__":
    main()
