"""A user's own schedule, search, reader and metric."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sacrebleu.metrics.base import Metric, Score, Signature
from torch import Tensor

from tolka.metrics.scores import register_metric
from tolka.models.base import Seq2Seq
from tolka.optim.schedules.base import SCHEDULERS, SchedulerConfig
from tolka.search.greedy import GreedyConfig, GreedySearch
from tolka.search.hypothesis import Hypothesis, Wish
from tolka.search.options import SEARCHES
from tolka.text.pairs import Pair
from tolka.text.readers import register_reader
from tolka.text.readers.base import BothSides


@SCHEDULERS.register("halving")
@dataclass(frozen=True)
class HalvingConfig(SchedulerConfig):
    """The rate halves every `every` updates."""

    name: str = "halving"
    """the kind of schedule: halving"""
    every: int = 2
    """updates until the rate is half of what it was"""

    def rate(self, step: int, peak: float) -> float:
        """peak / 2 ** (step / every), whole halvings only."""
        return float(peak / 2 ** (step // self.every))


@SEARCHES.register("first_word")
@dataclass(frozen=True)
class FirstWordConfig(GreedyConfig):
    """Greedy decoding, of which the first token stays."""

    name: str = "first_word"
    """the kind of search: first_word"""

    def build(self) -> "FirstWordSearch":
        """Return the search."""
        return FirstWordSearch(self)


class FirstWordSearch(GreedySearch):
    """Greedy search, cut after the first token."""

    def search(
        self, model: Seq2Seq, source: Tensor, lengths: Tensor, scored: bool = True, wishes: Sequence[Wish] = ()
    ) -> list[list[Hypothesis]]:
        """Return translations of one token."""
        whole = super().search(model, source, lengths, scored, wishes)
        return [
            [Hypothesis(each.tokens[:1], each.log_probability, each.score, each.finished) for each in sentence]
            for sentence in whole
        ]


@register_reader(".bars")
class BarsFile(BothSides):
    """source ||| target, a pair per line."""

    def read(self) -> Iterator[Pair]:
        """Yield the pairs."""
        for line in self._text_lines():
            source, _, target = line.partition(" ||| ")
            yield Pair(source, target)


class ExactSignature(Signature):
    """Nothing beside what all metrics have."""


@register_metric("exact", "Exact")
class Exact(Metric):
    """Percentage of lines that are the reference."""

    _SIGNATURE_TYPE = ExactSignature

    def _preprocess_segment(self, sent: str) -> str:
        return sent

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, Any]:
        return {"reference": refs[0]}

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, Any]) -> list[int]:
        return [int(hypothesis == ref_kwargs["reference"]), 1]

    def _compute_score_from_stats(self, stats: list[int]) -> Score:
        return Score("Exact", 100.0 * stats[0] / stats[1])

    def _aggregate_and_compute(self, stats: list[list[int]]) -> Score:
        return self._compute_score_from_stats([sum(column) for column in zip(*stats, strict=True)])
