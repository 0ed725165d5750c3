"""Trains a small model in this process, or as one rank of several, and writes down the losses; see test_ranks.py."""

import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from tolka.data.buckets import BatchingConfig
from tolka.data.loader import Loader
from tolka.data.store import TokenStore
from tolka.models.base import ModelConfig
from tolka.models.rnn.config import RnnConfig
from tolka.models.transformer.config import TransformerConfig
from tolka.system.device import Precision
from tolka.system.ranks import Ranks, joined
from tolka.training.data_position import DataPosition
from tolka.training.optimizers.adam import AdamWConfig
from tolka.training.options import TrainerConfig
from tolka.training.parallel.choice import parallel_of
from tolka.training.state import TrainState
from tolka.training.step import TrainStep

MODELS: dict[str, ModelConfig] = {
    "transformer": TransformerConfig(d_model=16, heads=2, layers=1, dropout=0.0),
    "lstm": RnnConfig(d_model=16, layers=1, dropout=0.0, cell="lstm", attention="dot"),
}
UPDATES = 40


def store() -> TokenStore:
    """60 pairs of made-up ids, of 1 to 12 tokens."""
    draw = np.random.default_rng(1)
    rows = [[draw.integers(4, 30, draw.integers(1, 13)).tolist() for _ in range(2)] for _ in range(60)]
    return TokenStore.from_rows([source for source, _ in rows], [target for _, target in rows])


def losses(model: str, dtype: torch.dtype, ranks: Ranks, **options: Any) -> dict[str, Any]:
    """The loss of each update, the sum of all weights at the end, and the positions that this rank computed."""
    torch.manual_seed(1)
    built = MODELS[model].build(30, 30, True).to(dtype)
    config = TrainerConfig(**{"label_smoothing": 0.1, "accumulate": 2, **options})
    objective = config.objective(built)
    precision = Precision(torch.device("cpu"), "fp32")
    parallel = parallel_of(config, objective, ranks, precision)
    step = TrainStep(config, objective, AdamWConfig().build(built), precision, parallel)
    step.objective.train()
    loader = Loader(store(), BatchingConfig(tokens=128, max_length=16), seed=3)
    position, state = DataPosition(loader, config.accumulate, lambda message: None, ranks), TrainState()
    found, positions = [], 0
    for number in range(1, UPDATES + 1):
        group = position.group(state)
        positions += sum(share.batch.positions for share in group.shares)
        result = step(number, 0.01, group)
        found.append(result.nll.item() / result.tokens)
    with parallel.whole(None):
        weights = [weight.detach().double().sum().item() for weight in parallel.whole_objective.model.parameters()]
    return {"losses": found, "weights": weights, "positions": positions}


def main() -> None:
    """One rank: its number, how many there are, a file to meet at, and a file for the results of all."""
    rank, size, meeting, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=size, timeout=timedelta(seconds=60)
    )
    ranks = joined()
    results = {
        f"{model} {name}": ranks.gather(losses(model, dtype, ranks))
        for model in MODELS
        for name, dtype in (("float64", torch.float64), ("fp32", torch.float32))
    }
    if ranks.is_first:
        out.write_text(json.dumps(results))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
