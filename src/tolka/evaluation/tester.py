"""Evaluation at the end of training: every test set, with the search that translation will use."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tolka.distributed.ranks import ALONE, Ranks
from tolka.engines.torch_engine import TorchEngine
from tolka.evaluation.by_length import LengthBucket, bleu_by_length
from tolka.evaluation.perplexity import Perplexity, PerplexityMeter
from tolka.metrics.scores import MetricsConfig, Score, score
from tolka.metrics.significance import Comparison, compare
from tolka.system.device import Precision
from tolka.system.progress import bar
from tolka.text.pairs import Pair
from tolka.translation.translator import Translator


@dataclass(frozen=True)
class TestResult:
    """Scores of one test set, and the seconds that translating it took.

    by_length: BLEU by sentence length. changes: since the model that training started from, if any. translations: of
    all sentences, in their order.
    """

    __test__ = False  # not a test class, despite its name

    name: str
    scores: list[Score]
    perplexity: Perplexity
    sentences: int
    seconds: float
    by_length: list[LengthBucket] = field(default_factory=list)
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
            "by_length": [bucket.as_dict() for bucket in self.by_length],
            **({"changes": changes} if changes else {}),
        }


class Tester:
    """Translates a test set, scores it, and compares with the model that training started from."""

    def __init__(
        self,
        translator: Translator[TorchEngine],
        before: Translator[TorchEngine] | None,
        metrics: MetricsConfig,
        language: str,
        leave: Callable[[str, str], object],
        ranks: Ranks = ALONE,
    ) -> None:
        """before: the model to compare with. language: of the target. ranks: share the sentences out.

        leave: writes a text under a path in the run's folder.
        """
        self._ranks = ranks
        self._translator, self._before, self._metrics, self._language = translator, before, metrics, language
        self._leave, self._tokens = leave, translator.tokens
        # Whatever training computed in: perplexities of bf16 and fp32 models compare.
        self._precision = Precision(translator.engine.device, "fp32")

    def __call__(self, name: str, pairs: Sequence[Pair]) -> TestResult:
        """Measure one test set; compare models only with resamples (metrics.bootstrap > 0)."""
        references = [pair.target for pair in pairs]
        started_at = time.perf_counter()
        hypotheses = self._translate(f"testing on {name}", pairs, self._translator)
        seconds = time.perf_counter() - started_at
        self._leave(f"samples/{name}.{self._language}.txt", "".join(f"{line}\n" for line in hypotheses))
        changes: list[Comparison] = []
        # A change without a test of its significance says little; and it takes a second translation.
        if self._before is not None and self._metrics.bootstrap:
            previous = self._translate(f"the model before, on {name}", pairs, self._before)
            changes = compare(previous, hypotheses, references, self._metrics, self._language)
        tokenizer, characters = self._translator.tokenizer, self._translator.characters
        tags = tokenizer.tags(self._translator.direction)
        meter = PerplexityMeter(pairs, tokenizer, self._tokens, name, characters, self._language, tags=tags)
        perplexity = meter.measure(self._translator.engine.model, self._precision, ranks=self._ranks)
        scores = score(hypotheses, references, self._metrics, self._language)
        sources = [pair.source for pair in pairs]
        languages = self._language, self._translator.direction.source
        buckets = bleu_by_length(sources, hypotheses, references, self._metrics, *languages)
        return TestResult(name, scores, perplexity, len(pairs), seconds, buckets, changes, hypotheses)

    def _translate(self, title: str, pairs: Sequence[Pair], translator: Translator[TorchEngine]) -> list[str]:
        # All ranks get all translations back, in the order of the pairs.
        own = self._ranks.share([pair.source for pair in pairs])
        with bar(title, len(own), " sentences") as progress:
            return self._ranks.collect(translator(own, tick=progress.update))
