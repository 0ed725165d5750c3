"""A user's own schedule, reader and two metrics."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sacrebleu.metrics.base import Metric, Score, Signature

from tolka.metrics.scores import register_metric
from tolka.optim.schedules.base import SCHEDULERS, SchedulerConfig
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


@register_reader(".bars")
class BarsFile(BothSides):
    """source ||| target, a pair per line."""

    def read(self) -> Iterator[Pair]:
        """Yield the pairs."""
        for line in self._text_lines():
            source, _, target = line.partition(" ||| ")
            yield Pair(source, target)


class SameSignature(Signature):
    """Nothing beside what all metrics have."""


@register_metric("same", "Same")
class Same(Metric):
    """Percentage of lines that are the reference."""

    _SIGNATURE_TYPE = SameSignature

    def _preprocess_segment(self, sent: str) -> str:
        return sent

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, Any]:
        return {"reference": refs[0]}

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, Any]) -> list[int]:
        return [int(hypothesis == ref_kwargs["reference"]), 1]

    def _compute_score_from_stats(self, stats: list[int]) -> Score:
        return Score("Same", 100.0 * stats[0] / stats[1])

    def _aggregate_and_compute(self, stats: list[list[int]]) -> Score:
        return self._compute_score_from_stats([sum(column) for column in zip(*stats, strict=True)])


@register_metric("close", "Close")
def close() -> Callable[..., list[float]]:
    """Return a function that says for each line how much of its reference a translation has, from 0 to 1."""

    def score_lines(
        texts: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str] | None
    ) -> list[float]:
        assert sources is not None
        return [len({*text} & {*wanted}) / len({*wanted}) for text, wanted in zip(texts, references[0], strict=True)]

    return score_lines
