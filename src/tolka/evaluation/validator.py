"""Validation during training."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from tolka.distributed.ranks import ALONE, Ranks
from tolka.engines.torch_engine import TorchEngine
from tolka.evaluation.perplexity import Perplexity, PerplexityMeter, exp_nats
from tolka.metrics.metric import References
from tolka.metrics.options import COMMAND, PRINTED_NAMES, MetricsConfig
from tolka.metrics.scores import Score, score
from tolka.metrics.validation import ALWAYS_MEASURED, Sample, Validation
from tolka.system.device import Precision
from tolka.system.number_format import number_text
from tolka.system.progress import bar
from tolka.text.direction import Direction
from tolka.text.pairs import Pair
from tolka.translation.flags import repeats
from tolka.translation.request import Request
from tolka.translation.translator import Translator

_TIMED_EVERY = 10  # sentences, of which one is translated to time a validation


class Validator:
    """Measures nll, perplexity, and BLEU and chrF of greedy translations, as plain text, against the references."""

    def __init__(
        self,
        sets: Mapping[Direction, Sequence[Pair]],
        translator: Translator[TorchEngine],
        meters: Mapping[Direction, PerplexityMeter],
        precision: Precision,
        metrics: MetricsConfig,
        metric: str,
        samples: int,
        ranks: Ranks = ALONE,
    ) -> None:
        """metrics: its tokenizer and its command are used, its list is not. metric: measured beside BLEU and chrF.

        samples: pairs to show. ranks: share the sentences out.
        """
        self._sets, self._translator, self._meters, self._precision = sets, translator, meters, precision
        self._pairs = [pair for pairs in sets.values() for pair in pairs]
        # Without resamples: the points of a curve have no intervals.
        self._names = ["bleu", "chrf", *([] if metric in ALWAYS_MEASURED else [metric])]
        named = [name for name in self._names if name != COMMAND]
        command = metrics.command if metric == COMMAND else ""
        self._metrics = MetricsConfig(named, command, metrics.tokenizer, bootstrap=0)
        self._samples, self._ranks = samples, ranks

    def __call__(self, update: int, what: str = "", tick: Callable[[], object] = lambda: None) -> Validation:
        """Measure the current model. what: its name if it is not that of the update itself ("mean").

        tick: is called after each batch; an exception that it raises ends the validation.
        """
        losses = {
            direction: meter.measure(self._translator.engine.model, self._precision, tick, self._ranks)
            for direction, meter in self._meters.items()
        }
        # Such a model cannot translate; the trainer ends or goes back to an earlier checkpoint.
        if not math.isfinite(nll := sum(loss.nll for loss in losses.values())):
            return Validation({"nll": nll}, "")
        hypotheses = self._translate(tick)
        # By the first rank alone: a command may take minutes, and need not print the same again.
        scores = self._ranks.outcomes(lambda: self._scores(hypotheses) if self._ranks.is_first else None)[0]
        values = self._mean(losses, scores, [*self._sets])
        of_metrics = zip(*scores.values(), strict=True)
        signatures = [dict.fromkeys(each.signature for each in of_metric) for of_metric in of_metrics]
        title = f"update {update}, {what}" if what else f"update {update}"
        texts = list(chain.from_iterable(hypotheses.values()))
        is_single = len(self._sets) == 1
        apart = {} if is_single else {each: self._mean(losses, scores, [each]) for each in self._sets}
        details = [f"  {each.code}: {_in_words(own)} ({scores[each][0].signature})" for each, own in apart.items()]
        codes = [each.code for each in self._sets]
        how = f"mean of {' and '.join(codes) if len(codes) == 2 else 'all directions'}"
        return Validation(
            values,
            f"{title}: validation {_in_words(values)} ({next(iter(signatures[0])) if is_single else how})",
            {name: " and ".join(each) for name, each in zip(self._names, signatures, strict=True)},
            *self._suspect_shares(texts),
            texts,
            self._pick_samples(texts),
            details,
            {each.code: own for each, own in apart.items()},
        )

    def _scores(self, hypotheses: Mapping[Direction, Sequence[str]]) -> dict[Direction, list[Score]]:
        """Score the translations of each direction."""
        return {
            direction: score(
                hypotheses[direction],
                References([[pair.target for pair in pairs]], [pair.source for pair in pairs]),
                self._metrics,
                direction.target,
            )
            for direction, pairs in self._sets.items()
        }

    def _mean(
        self,
        losses: Mapping[Direction, Perplexity],
        scores: Mapping[Direction, Sequence[Score]],
        directions: Sequence[Direction],
    ) -> dict[str, float]:
        """Return the nll per token of several directions together, and the means of their scores."""
        found = [losses[each] for each in directions]
        nll = sum(loss.nll for loss in found) / sum(loss.tokens for loss in found)
        of_metrics = zip(*(scores[each] for each in directions), strict=True)
        means = [math.fsum(each.value for each in of_metric) / len(of_metric) for of_metric in of_metrics]
        return {"nll": nll, "ppl": exp_nats(nll), **dict(zip(self._names, means, strict=True))}

    def seconds(self) -> float:
        """Estimate the seconds of a validation by translating a part of its sentences."""
        started_at = time.perf_counter()
        self._translate(lambda: None, _TIMED_EVERY)
        return _TIMED_EVERY * (time.perf_counter() - started_at)

    def _translate(self, tick: Callable[[], object], every: int = 1) -> dict[Direction, list[str]]:
        """Translate the set of each direction, or one sentence of `every` so many."""
        hypotheses = {}
        with bar("validating", len(self._pairs) // every, " sentences", time_left=False) as progress:

            def advance(sentences: float) -> None:
                progress.update(sentences)
                tick()

            for direction, pairs in self._sets.items():
                own = self._ranks.share([pair.source for pair in pairs[::every]])
                translated = self._translator(own, Request(direction=direction), advance)
                hypotheses[direction] = self._ranks.collect(translated)
        return hypotheses

    def _suspect_shares(self, hypotheses: Sequence[str]) -> tuple[float, float]:
        """Return the shares of translations that copy their source, and that repeat themselves; no reference does."""
        # The sources as the model reads them, which a copy equals.
        form = self._translator.characters
        rewritten = (form.of(direction).pair(pair) for direction, pairs in self._sets.items() for pair in pairs)
        copied = [pair.source == text != pair.target for pair, text in zip(rewritten, hypotheses, strict=True)]
        repeated = [repeats(pair.target, text) for pair, text in zip(self._pairs, hypotheses, strict=True)]
        return sum(copied) / len(copied), sum(repeated) / len(repeated)

    def rehearse(self) -> None:
        """Translate the longest sentences, to check that validation fits in memory."""
        for direction, pairs in self._sets.items():
            self._translator.rehearse([pair.source for pair in pairs], Request(direction=direction))

    def _pick_samples(self, hypotheses: Sequence[str]) -> list[Sample]:
        """Return some pairs of the set, evenly spaced, with their translations."""
        count = min(self._samples, len(self._pairs))
        chosen = [n * len(self._pairs) // count for n in range(count)]
        of_pairs = [each.code if len(self._sets) > 1 else "" for each, pairs in self._sets.items() for _ in pairs]
        return [Sample(self._pairs[i].source, hypotheses[i], self._pairs[i].target, of_pairs[i]) for i in chosen]


def _in_words(values: Mapping[str, float]) -> str:
    others = "".join(
        f", {name if name == COMMAND else PRINTED_NAMES[name]} {number_text(value)}"
        for name, value in values.items()
        if name not in ALWAYS_MEASURED
    )
    return (
        f"nll {values['nll']:.3f}, PPL {number_text(values['ppl'])}, BLEU {values['bleu']:.2f}, "
        f"chrF2 {values['chrf']:.2f}{others}"
    )
