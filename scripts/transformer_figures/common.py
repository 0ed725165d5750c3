"""The sample corpus, a bare training loop, markdown tables and colours: what the experiments share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tolka.config.command_line import train_config
from tolka.data.buckets import BatchingConfig
from tolka.data.loader import Loader
from tolka.data.store import TokenStore
from tolka.evaluation.perplexity import PerplexityMeter
from tolka.losses.cross_entropy import Objective
from tolka.models.base import Seq2Seq
from tolka.optim.optimizers.of_torch import AdamWConfig
from tolka.optim.schedules.formulas import LinearConfig
from tolka.run.inputs import read_inputs
from tolka.system.device import Precision
from tolka.text.pairs import Pair
from tolka.tokenizer.tokenizer import Tokenizer

Numbers = dict[str, Any]
FP32 = Precision(torch.device("cpu"), "fp32")
SMOOTHING = 0.1
# Okabe and Ito's palette: told apart by readers with any kind of colour vision.
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#777777"


@dataclass(frozen=True)
class Sample:
    """The embedded corpus, tokenised as `mt-train experiment=sample` does it."""

    tokenizer: Tokenizer
    store: TokenStore
    valid: list[Pair]

    @classmethod
    def open(cls, cache: Path) -> "Sample":
        """cache: takes the token store."""
        inputs = read_inputs(train_config(["experiment=sample", f"run.prepared={cache}"]), print)
        return cls(inputs.prepared.tokenizer, inputs.prepared.store, inputs.texts.validation_pairs)

    @property
    def vocabulary(self) -> int:
        """Pieces, for both sides."""
        return self.tokenizer.target_size

    def loader(self, tokens: int, seed: int) -> Loader:
        """Training batches of at most `tokens` padded tokens a side."""
        return Loader(self.store, BatchingConfig(tokens=tokens, max_length=128), seed)

    def meter(self) -> PerplexityMeter:
        """Measures the validation set."""
        return PerplexityMeter(self.valid, self.tokenizer, tokens=2048)


@dataclass(frozen=True)
class Progress:
    """update: how many are done. train_nll: per token in nats since the last one of these, smoothing left out."""

    update: int
    train_nll: float


def train(
    model: Seq2Seq, loader: Loader, schedule: LinearConfig, peak: float, every: int, smoothing: float = SMOOTHING
) -> Iterator[Progress]:
    """Updates as tolka's trainer makes them (AdamW, smoothing, clipping at norm 1), `schedule.horizon` of them.

    Stops every `every` updates, so that the model can be looked at; it goes on in training mode.
    """
    objective = Objective(model, smoothing)
    optimizer = AdamWConfig(lr=peak).build(model)
    batches = (loader.batch(epoch, number) for epoch in range(10**6) for number in range(len(loader.plan(epoch))))
    nll = tokens = 0.0
    for update, batch in zip(range(1, schedule.horizon + 1), batches, strict=False):
        objective.train()
        for group in optimizer.param_groups:
            group["lr"] = schedule.rate(update, peak)
        optimizer.zero_grad()
        sums = objective(batch)
        (sums.loss / sums.tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        nll, tokens = nll + sums.nll.item(), tokens + sums.tokens
        if update % every == 0:
            yield Progress(update, nll / tokens)
            nll = tokens = 0.0


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def mean_and_range(values: Sequence[float], digits: int = 2) -> str:
    """`1.23 (1.20 to 1.27)` of the seeds' values; the value alone if there is one."""
    mean = f"{sum(values) / len(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ({min(values):.{digits}f} to {max(values):.{digits}f})"
