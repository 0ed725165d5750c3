"""Validation: nll, perplexity, BLEU and chrF of greedy translations."""

import re
from collections.abc import Callable, Sequence

from tolka.evaluation.gradient_flow import GradientFlowMeter
from tolka.evaluation.perplexity import PerplexityMeter
from tolka.metrics.scores import MetricsConfig, Validation, score
from tolka.system.device import Precision
from tolka.system.number_format import shown
from tolka.system.progress import bar
from tolka.text.normalization import normalized_pair
from tolka.text.pairs import Pair
from tolka.translation.translator import Translator

_AGAIN = re.compile(r"(.{1,60}?)\1{2,}")
_LOOP = 10  # characters


def is_repetitive(text: str) -> bool:
    """Return whether words or characters occur three times or more in a row, over ten characters or more."""
    return any(len(found.group()) >= _LOOP for found in _AGAIN.finditer(f"{text} "))


class Validator:
    """Measures nll and perplexity, and scores greedy translations, as plain text, against the references."""

    def __init__(
        self,
        pairs: Sequence[Pair],
        translator: Translator,
        meter: PerplexityMeter,
        precision: Precision,
        metrics: MetricsConfig,
        language: str,
        samples: int,
        flow: GradientFlowMeter | None = None,
    ) -> None:
        """metrics: its tokenizer is used, its list is not. language: of the target. samples: translations shown."""
        self._pairs, self._translator, self._meter, self._precision = pairs, translator, meter, precision
        self._metrics = MetricsConfig(names=["bleu", "chrf"], tokenizer=metrics.tokenizer, bootstrap=0)
        self._language, self._samples, self._flow = language, samples, flow

    def __call__(self, update: int, what: str = "", tick: Callable[[], object] = lambda: None) -> Validation:
        """Measure the model as it is. what: what it is, if not simply the model of that update.

        tick: called after each batch; an exception of its own ends the validation.
        """
        perplexity = self._meter.measure(self._translator.model, self._precision, tick)
        with bar("validating", len(self._pairs), " sentences") as progress:

            def advance(sentences: float) -> None:
                progress.update(sentences)
                tick()

            hypotheses = self._translator([pair.source for pair in self._pairs], advance)
        bleu, chrf = score(hypotheses, [pair.target for pair in self._pairs], self._metrics, self._language)
        values = {
            "nll": perplexity.nll / perplexity.tokens,
            "ppl": perplexity.per_token,
            "bleu": bleu.value,
            "chrf": chrf.value,
        }
        which = f"update {update}, {what}" if what else f"update {update}"
        line = (
            f"{self._shown(hypotheses)}{which}: validation nll {values['nll']:.3f}, PPL {shown(values['ppl'])}, "
            f"BLEU {bleu.value:.2f}, chrF2 {chrf.value:.2f} ({bleu.signature})"
        )
        signatures = {"bleu": bleu.signature, "chrf": chrf.signature}
        read = [normalized_pair(pair, self._translator.unicode) for pair in self._pairs]
        copied = [pair.source == text != pair.target for pair, text in zip(read, hypotheses, strict=True)]
        repeated = [
            is_repetitive(text) and not is_repetitive(pair.target)
            for pair, text in zip(self._pairs, hypotheses, strict=True)
        ]
        return Validation(
            values,
            line,
            signatures,
            sum(copied) / len(copied),
            sum(repeated) / len(repeated),
            hypotheses,
            self._flow(self._translator.model) if self._flow and not what else [],
        )

    def rehearse(self) -> None:
        """Translate what takes the most memory in a validation."""
        self._translator.rehearse([pair.source for pair in self._pairs])

    def _shown(self, hypotheses: Sequence[str]) -> str:
        """Return a few translations between their sources and references, spread over the set."""
        count = min(self._samples, len(self._pairs))
        lines = []
        for n in range(count):
            i = n * len(self._pairs) // count
            pair = self._pairs[i]
            lines += [
                f"  source      {pair.source}",
                f"  translation {hypotheses[i]}",
                f"  reference   {pair.target}",
                "",
            ]
        return "\n".join(lines) + ("\n" if lines else "")
