"""Evaluation at the end of training: every test set, with the search that translation will use.

BLEU by sentence length shows the decline of models without attention on long sentences.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tolka.distributed.ranks import ALONE, Ranks
from tolka.engines.torch_engine import TorchEngine
from tolka.evaluation.perplexity import Perplexity, PerplexityMeter
from tolka.metrics.languages import has_spaces
from tolka.metrics.metric import References
from tolka.metrics.options import MetricsConfig
from tolka.metrics.scores import Score, score
from tolka.metrics.significance import Comparison, compare
from tolka.system.device import Precision
from tolka.system.progress import bar
from tolka.text.direction import Direction
from tolka.text.pairs import Pair
from tolka.translation.request import Request
from tolka.translation.translator import Translator


@dataclass(frozen=True)
class TestResult:
    """Scores of one test set, and the seconds that translating it took.

    zero_shot: whether no training text is in this direction. by_length: of `bleu_by_length`. changes: since the model
    that training started from, if any. translations: of all sentences, in their order.
    """

    __test__ = False  # not a test class, despite its name

    name: str
    direction: Direction
    zero_shot: bool
    scores: list[Score]
    perplexity: Perplexity
    sentences: int
    seconds: float
    by_length: list[dict[str, Any]] = field(default_factory=list)
    changes: list[Comparison] = field(default_factory=list)
    translations: Sequence[str] = field(default=(), repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for scores.json."""
        changes = [
            {"name": c.name, "before": c.a.value, "after": c.b.value, "p_value": c.p_value, "signature": c.signature}
            for c in self.changes
        ]
        return {
            "metrics": [score.as_dict() for score in self.scores],
            "perplexity": self.perplexity.as_dict(),
            "sentences": self.sentences,
            "direction": list(self.direction),
            **({"zero_shot": True} if self.zero_shot else {}),
            "by_length": self.by_length,
            **({"changes": changes} if changes else {}),
        }


class Tester:
    """Translates a test set, scores it, and compares with the model that training started from."""

    def __init__(
        self,
        translator: Translator[TorchEngine],
        before: Translator[TorchEngine] | None,
        metrics: MetricsConfig,
        leave: Callable[[str, str], object],
        ranks: Ranks = ALONE,
    ) -> None:
        """before: the model to compare with. leave: writes a text under a path in the run's folder.

        ranks: share the sentences out.
        """
        self._ranks = ranks
        self._translator, self._before, self._metrics = translator, before, metrics
        self._leave, self._tokens = leave, translator.tokens
        # Whatever training computed in: perplexities of bf16 and fp32 models compare.
        self._precision = Precision(translator.engine.device, "fp32")

    def __call__(self, name: str, pairs: Sequence[Pair], direction: Direction, zero_shot: bool = False) -> TestResult:
        """Measure one test set; compare models only with resamples (metrics.bootstrap > 0).

        zero_shot: whether no training text is in this direction.
        """
        language = direction.target
        references = References([[pair.target for pair in pairs]], [pair.source for pair in pairs])
        started_at = time.perf_counter()
        hypotheses = self._translate(f"testing on {name}", pairs, self._translator, direction)
        seconds = time.perf_counter() - started_at
        self._leave(f"samples/{name}.{language}.txt", "".join(f"{line}\n" for line in hypotheses))
        before, changes = self._before, list[Comparison]()
        # A change without a test of its significance says little; and it takes a second translation. The model before
        # may lack a language that training has added.
        if before and self._metrics.bootstrap and {*direction} <= {*(before.tokenizer.languages or direction)}:
            # A model of one direction translates in that one, whatever its languages are called here.
            named = direction if any(before.tokenizer.tags(direction)) else before.direction
            previous = self._translate(f"the model before, on {name}", pairs, before, named)
            changes = compare([previous, hypotheses], references, self._metrics, language)
        tokenizer, characters = self._translator.tokenizer, self._translator.for_direction(direction).characters
        tags = tokenizer.tags(direction)
        meter = PerplexityMeter(pairs, tokenizer, self._tokens, name, characters, language, tags=tags)
        perplexity = meter.measure(self._translator.engine.model, self._precision, ranks=self._ranks)
        # A metric may be a command that takes minutes: what was scored for a change is not scored again.
        scores = [change.b for change in changes] or score(hypotheses, references, self._metrics, language)
        buckets = bleu_by_length(pairs, hypotheses, self._metrics, language, direction.source)
        return TestResult(
            name, direction, zero_shot, scores, perplexity, len(pairs), seconds, buckets, changes, hypotheses
        )

    def _translate(
        self, title: str, pairs: Sequence[Pair], translator: Translator[TorchEngine], direction: Direction
    ) -> list[str]:
        # All ranks get all translations back, in the order of the pairs.
        own = self._ranks.share([pair.source for pair in pairs])
        with bar(title, len(own), " sentences") as progress:
            return self._ranks.collect(translator(own, Request(direction=direction), progress.update))


def bleu_by_length(
    pairs: Sequence[Pair],
    hypotheses: Sequence[str],
    metrics: MetricsConfig,
    language: str,
    source_language: str = "",
    buckets: int = 5,
) -> list[dict[str, Any]]:
    """Return BLEU in buckets of about equal numbers of sentences, shortest first; fewer if there are fewer lengths.

    Each is an entry of scores.json, with the shortest and the longest source in words, or in characters if it has no
    spaces. metrics: its tokenizer, resamples and seed are used. language: of the target.
    """
    unit = "words" if has_spaces(source_language) else "characters"
    lengths = [len(pair.source.split() if unit == "words" else pair.source) for pair in pairs]
    config = MetricsConfig(names=["bleu"], tokenizer=metrics.tokenizer, bootstrap=metrics.bootstrap)
    # By the source, which all systems share: of outputs, each would have buckets of its own.
    results = []
    for shortest, longest in _spans(lengths, buckets):
        rows = [row for row, length in enumerate(lengths) if shortest <= length <= longest]
        (bleu,) = score([hypotheses[row] for row in rows], [pairs[row].target for row in rows], config, language)
        results.append({unit: [shortest, longest], "sentences": len(rows), **bleu.as_dict()})
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
