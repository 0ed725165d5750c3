"""Validation during training."""

import math
import re
from collections.abc import Callable, Sequence

from tolka.distributed.ranks import ALONE, Ranks
from tolka.engines.torch_engine import TorchEngine
from tolka.evaluation.gradient_flow import GradientFlowMeter
from tolka.evaluation.perplexity import PerplexityMeter
from tolka.metrics.scores import MetricsConfig, score
from tolka.metrics.validation import Sample, Validation
from tolka.system.device import Precision
from tolka.system.number_format import number_text
from tolka.system.progress import bar
from tolka.text.pairs import Pair
from tolka.translation.translator import Translator

_REPEATED = re.compile(r"(.{1,60}?)\1{2,}")
_MIN_CHARACTERS = 10  # shorter ones are ordinary text: "...", "ha ha ha"


def is_repetitive(text: str) -> bool:
    """Return whether words or characters are repeated three times or more, over ten characters or more."""
    # With a blank at the end, "no no no" is three times "no ".
    return any(len(match.group()) >= _MIN_CHARACTERS for match in _REPEATED.finditer(f"{text} "))


class Validator:
    """Measures nll, perplexity, and BLEU and chrF of greedy translations, as plain text, against the references."""

    def __init__(
        self,
        pairs: Sequence[Pair],
        translator: Translator[TorchEngine],
        meter: PerplexityMeter,
        precision: Precision,
        metrics: MetricsConfig,
        language: str,
        samples: int,
        flow: GradientFlowMeter | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        """metrics: its tokenizer is used, its list is not. language: of the target. samples: pairs to show.

        ranks: share the sentences out.
        """
        self._pairs, self._translator, self._meter, self._precision = pairs, translator, meter, precision
        # Without resamples: the points of a curve have no intervals.
        self._metrics = MetricsConfig(names=["bleu", "chrf"], tokenizer=metrics.tokenizer, bootstrap=0)
        self._language, self._samples, self._flow, self._ranks = language, samples, flow, ranks

    def __call__(self, update: int, what: str = "", tick: Callable[[], object] = lambda: None) -> Validation:
        """Measure the current model. what: its name if it is not that of the update itself ("mean").

        tick: is called after each batch; an exception that it raises ends the validation.
        """
        perplexity = self._meter.measure(self._translator.engine.model, self._precision, tick, self._ranks)
        # Such a model cannot translate; the trainer ends or goes back to an earlier checkpoint.
        if not math.isfinite(perplexity.nll):
            return Validation({"nll": perplexity.nll}, "")
        with bar("validating", len(self._pairs), " sentences", time_left=False) as progress:

            def advance(sentences: float) -> None:
                progress.update(sentences)
                tick()

            own = self._ranks.share([pair.source for pair in self._pairs])
            hypotheses = self._ranks.collect(self._translator(own, tick=advance))
        bleu, chrf = score(hypotheses, [pair.target for pair in self._pairs], self._metrics, self._language)
        values = {
            "nll": perplexity.nll / perplexity.tokens,
            "ppl": perplexity.per_token,
            "bleu": bleu.value,
            "chrf": chrf.value,
        }
        title = f"update {update}, {what}" if what else f"update {update}"
        line = (
            f"{title}: validation nll {values['nll']:.3f}, PPL {number_text(values['ppl'])}, "
            f"BLEU {bleu.value:.2f}, chrF2 {chrf.value:.2f} ({bleu.signature})"
        )
        return Validation(
            values,
            line,
            {"bleu": bleu.signature, "chrf": chrf.signature},
            *self._suspect_shares(hypotheses),
            hypotheses,
            self._pick_samples(hypotheses),
            self._flow(self._translator.engine.model) if self._flow and not what else [],
        )

    def _suspect_shares(self, hypotheses: Sequence[str]) -> tuple[float, float]:
        """Return the shares of translations that copy their source, and that repeat themselves; no reference does."""
        # The sources as the model reads them, which a copy equals.
        rewritten = map(self._translator.characters.pair, self._pairs)
        copied = [pair.source == text != pair.target for pair, text in zip(rewritten, hypotheses, strict=True)]
        repeated = [
            is_repetitive(text) and not is_repetitive(pair.target)
            for pair, text in zip(self._pairs, hypotheses, strict=True)
        ]
        return sum(copied) / len(copied), sum(repeated) / len(repeated)

    def rehearse(self) -> None:
        """Translate the longest sentences, to check that validation fits in memory."""
        self._translator.rehearse([pair.source for pair in self._pairs])

    def _pick_samples(self, hypotheses: Sequence[str]) -> list[Sample]:
        """Return some pairs of the set, evenly spaced, with their translations."""
        count = min(self._samples, len(self._pairs))
        chosen = [n * len(self._pairs) // count for n in range(count)]
        return [Sample(self._pairs[i].source, hypotheses[i], self._pairs[i].target) for i in chosen]
