"""Trains a small model in this process, or as one rank of several, and writes down the losses; see test_ranks.py."""

import hashlib
import json
import math
import sys
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from tolka.data.batch import Batch
from tolka.data.buckets import BatchingConfig
from tolka.data.loader import Loader
from tolka.data.store import TokenStore
from tolka.distributed.ranks import Ranks
from tolka.losses.cross_entropy import LossSum
from tolka.model_directory.read import ResumeState
from tolka.models.base import ModelConfig
from tolka.models.rnn.config import RnnConfig
from tolka.models.transformer.config import TransformerConfig
from tolka.optim.optimizers.of_torch import AdamWConfig
from tolka.system.device import Precision
from tolka.training.data_position import DataPosition
from tolka.training.options import TrainerConfig
from tolka.training.parallel.base import Parallel
from tolka.training.parallel.choice import parallel_of
from tolka.training.state import TrainState
from tolka.training.step import TrainStep

MODELS: dict[str, ModelConfig] = {
    "transformer": TransformerConfig(d_model=16, heads=2, layers=1, dropout=0.0),
    "lstm": RnnConfig(d_model=16, layers=1, dropout=0.0, cell="lstm", attention="dot"),
}
UPDATES = 24


def store() -> TokenStore:
    """60 pairs of made-up ids, of 1 to 12 tokens."""
    draw = np.random.default_rng(1)
    rows = [[draw.integers(4, 30, draw.integers(1, 13)).tolist() for _ in range(2)] for _ in range(60)]
    return TokenStore.from_rows([source for source, _ in rows], [target for _, target in rows])


def prepared(model: str, dtype: torch.dtype, ranks: Ranks, **options: Any) -> tuple[TrainStep, Parallel]:
    """A step that trains a fresh model."""
    torch.manual_seed(1)
    built = MODELS[model].build(30, 30, True).to(dtype)
    config = TrainerConfig(**{"label_smoothing": 0.1, "accumulate": 2, **options})
    objective, precision = config.objective(built), Precision(torch.device("cpu"), "fp32")
    parallel = parallel_of(config, objective, ranks, precision)
    step = TrainStep(config, objective, AdamWConfig().build(built), precision, parallel)
    objective.train()
    return step, parallel


def losses(model: str, dtype: torch.dtype, ranks: Ranks, **options: Any) -> dict[str, Any]:
    """The loss of each update, the sum of all weights at the end, and the positions that this rank computed."""
    step, parallel = prepared(model, dtype, ranks, **options)
    loader = Loader(store(), BatchingConfig(tokens=128, max_length=16), seed=3)
    position, state = DataPosition(loader, step.config.accumulate, lambda message: None, ranks), TrainState()
    found, positions = [], 0
    for number in range(1, UPDATES + 1):
        shares = position.shares(state)
        positions += sum(share.batch.positions for share in shares)
        result = step(number, 0.01, shares)
        found.append(result.nll.item() / result.tokens)
    return {"losses": found, "weights": sums(parallel), "positions": positions, "way": type(parallel).__name__}


def sums(parallel: Parallel) -> list[float]:
    """The sum of each weight."""
    with parallel.whole(None):
        return [weight.detach().double().sum().item() for weight in parallel.whole_objective.model.parameters()]


def resaved(ranks: Ranks) -> list[str]:
    """Save a trained state, read it into a sharded training, and save that twice; its digest each time."""
    step, _ = prepared("transformer", torch.float32, ranks, parallel="ddp", ema=0.9)
    loader = Loader(store(), BatchingConfig(tokens=128, max_length=16), seed=3)
    position, state = DataPosition(loader, 2, lambda message: None, ranks), TrainState()
    for number in range(1, 6):
        step(number, 0.01, position.shares(state))
    whole = ResumeState(*step.state())
    sharded, parallel = prepared("transformer", torch.float32, ranks, parallel="fsdp", ema=0.9)
    sharded.load_state(whole, lambda: None)
    gathered = ranks.of_first(parallel.gathered(ResumeState(*sharded.state())))
    again, parallel = prepared("transformer", torch.float32, ranks, parallel="fsdp", ema=0.9)
    again.load_state(gathered, lambda: None)
    third = ranks.of_first(parallel.gathered(ResumeState(*again.state())))
    return [digest(whole), digest(gathered), digest(third)]


def resumed(ranks: Ranks, stop: int) -> list[float]:
    """The sum of each weight after 6 updates, in between which, at `stop`, the state is read into a fresh step."""
    step, parallel = prepared("lstm", torch.float64, ranks)
    loader = Loader(store(), BatchingConfig(tokens=128, max_length=16), seed=3)
    position, state = DataPosition(loader, 2, lambda message: None, ranks), TrainState()
    for number in range(1, 7):
        step(number, 0.01, position.shares(state))
        if number == stop:
            weights = {name: weight.clone() for name, weight in step.objective.model.state_dict().items()}
            saved = ranks.of_first(ResumeState(*step.state()))  # as it is in last/
            step, parallel = prepared("lstm", torch.float64, ranks)
            step.load_state(saved, partial(step.objective.model.load_state_dict, weights))
    return sums(parallel)


def after_nan(ranks: Ranks) -> list[bool]:
    """Which of eight updates were applied, the gradient of one rank being NaN in the fourth."""
    step, parallel = prepared("lstm", torch.float64, ranks)
    loader = Loader(store(), BatchingConfig(tokens=128, max_length=16), seed=3)
    position, state = DataPosition(loader, 2, lambda message: None, ranks), TrainState()
    compute, applied = parallel.loss, []

    def spoilt(batch: Batch, is_last: bool) -> LossSum:
        sums = compute(batch, is_last)
        return replace(sums, loss=sums.loss * (math.nan if number == 4 and ranks.rank == 1 else 1.0))

    parallel.loss = spoilt  # type: ignore[method-assign]
    for number in range(1, 9):
        applied.append(bool(step(number, 0.01, position.shares(state)).applied))
    return applied


def digest(state: ResumeState) -> str:
    """The digest of all tensors of a state but the generators'."""
    names = sorted(name for name in state.tensors if not name.startswith("rng"))
    content = b"".join(name.encode() + state.tensors[name].numpy().tobytes() for name in names)
    return f"{len(names)} {hashlib.sha256(content).hexdigest()}"


def main() -> None:
    """One rank: its number, how many there are, a file to meet at, a file for the results of all, number formats."""
    rank, size, meeting, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
    formats = sys.argv[5:]
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=size, timeout=timedelta(seconds=60)
    )
    ranks = Ranks(rank, size)
    results: dict[str, Any] = {
        f"{model} {name} {parallel}": ranks.gather(losses(model, getattr(torch, name), ranks, parallel=parallel))
        for model in MODELS
        for name in formats
        for parallel in ("ddp", "fsdp")
    }
    results["after_nan"] = ranks.gather(after_nan(ranks))
    results["resaved"] = resaved(ranks)
    results["resumed"] = [ranks.gather(resumed(ranks, stop)) for stop in (0, 3)]
    if ranks.is_first:
        out.write_text(json.dumps(results))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
