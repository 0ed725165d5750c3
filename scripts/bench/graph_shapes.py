"""How many CUDA graphs a text takes; needs no GPU.

    python scripts/bench/graph_shapes.py decoding MODEL SOURCE [search=greedy] [key=value ...]
    python scripts/bench/graph_shapes.py training STORE TOKENS [BATCHES]

Decoding: translates SOURCE with decoding.cuda_graphs=true, each step computed where a GPU would replay it, and counts
them. Training: an epoch's batches of TOKENS from a prepared token store (of run.prepared), the shapes that they are
filled up to, and by how much.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from tolka import cuda_graph
from tolka.checkpoint import load_ensemble
from tolka.cuda_graph import GraphPool, Recording
from tolka.data.buckets import BatchingConfig
from tolka.data.loader import Loader
from tolka.data.store import TokenStore
from tolka.models.captured import CapturedModel
from tolka.overrides import translate_config
from tolka.training.graphs import shape_for
from tolka.translator import Translator


@dataclass
class Counting:
    """In the place of `cuda_graph.record`."""

    graphs: int = 0
    replays: int = 0

    def __call__(self, run: Callable[[], Tensor], _pool: GraphPool) -> Recording:
        result = run()
        self.graphs += 1

        def again() -> None:
            self.replays += 1
            result.copy_(run())

        return Recording(again, result)


class Steps(CapturedModel):
    """Counts all steps."""

    steps = 0

    def step(self, *given: Any) -> Any:
        """See Seq2Seq.step."""
        self.steps += 1
        return super().step(*given)


def decoding(model: str, source: str, *settings: str) -> None:
    """Of one text."""
    counting = Counting()
    cuda_graph.record = counting
    config = translate_config(list(settings))
    translator = Translator.of(load_ensemble([model]), config.search, config.decoding)
    translator.model = steps = Steps(translator.model, translator.device)
    lines = Path(source).read_text(encoding="utf-8").split("\n")[:-1]
    translator(lines)
    print(f"{len(lines)} lines: {steps.steps} steps, {counting.replays} of them replayed, {counting.graphs} graphs")


def training(store: str, tokens: str, most: str = "100000") -> None:
    """Of one epoch."""
    loader = Loader(TokenStore.open(Path(store)), BatchingConfig(tokens=int(tokens)), seed=1)
    batches = [loader.batch(0, number) for number in range(min(int(most), len(loader.plan(0))))]
    shapes = [shape_for(batch) for batch in batches]
    rows = sum(int(batch.source_lengths.sum()) + batch.tokens for batch in batches)
    added = sum(shape[1] + shape[2] for shape in shapes) / rows - 1
    print(f"{len(batches)} batches: {len(set(shapes))} shapes, {added:.1%} of rows added")


if __name__ == "__main__":
    {"decoding": decoding, "training": training}[sys.argv[1]](*sys.argv[2:])
