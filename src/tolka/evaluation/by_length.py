"""BLEU by sentence length, which shows the decline of models without attention on long sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tolka.metrics.languages import has_spaces
from tolka.metrics.options import MetricsConfig
from tolka.metrics.scores import Score, score
from tolka.text.pairs import Pair


@dataclass(frozen=True)
class LengthBucket:
    """BLEU of the sentences whose source has `shortest` to `longest` words, or characters if it has no spaces."""

    shortest: int
    longest: int
    sentences: int
    bleu: Score
    unit: str = "words"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for scores.json."""
        return {self.unit: [self.shortest, self.longest], "sentences": self.sentences, **self.bleu.as_dict()}


def bleu_by_length(
    pairs: Sequence[Pair],
    hypotheses: Sequence[str],
    metrics: MetricsConfig,
    language: str,
    source_language: str = "",
    buckets: int = 5,
) -> list[LengthBucket]:
    """Return BLEU in buckets of about equal numbers of sentences, shortest first; fewer if there are fewer lengths.

    metrics: its tokenizer, resamples and seed are used. language: of the target.
    """
    unit = "words" if has_spaces(source_language) else "characters"
    lengths = [len(pair.source.split() if unit == "words" else pair.source) for pair in pairs]
    config = MetricsConfig(names=["bleu"], tokenizer=metrics.tokenizer, bootstrap=metrics.bootstrap)
    # By the source, which all systems share: of outputs, each would have buckets of its own.
    results = []
    for shortest, longest in _spans(lengths, buckets):
        rows = [row for row, length in enumerate(lengths) if shortest <= length <= longest]
        (bleu,) = score([hypotheses[row] for row in rows], [pairs[row].target for row in rows], config, language)
        results.append(LengthBucket(shortest, longest, len(rows), bleu, unit))
    return results


def _spans(lengths: Sequence[int], buckets: int) -> list[tuple[int, int]]:
    """Return (shortest, longest) of each bucket; each takes its share of the sentences left by those before."""
    # Sentences of one length stay together, so that a bucket can be named by its lengths.
    ordered = sorted(lengths)
    spans: list[tuple[int, int]] = []
    first = 0
    for end, length in enumerate(ordered, 1):
        last_of_its_length = end == len(ordered) or ordered[end] > length
        if last_of_its_length and (end - first) * (buckets - len(spans)) >= len(ordered) - first:
            spans.append((ordered[first], length))
            first = end
    return spans
