"""Corpus scores as the `sacrebleu` command prints them, each with its confidence interval and signature."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import mean
from typing import Any

import numpy as np

from tolka.errors import DataError
from tolka.metrics.command import command_metric
from tolka.metrics.languages import bleu_tokenizer, ter_splits_characters
from tolka.metrics.line_statistics import Statistics, resampled_sums, totals
from tolka.metrics.metric import (
    REGISTERED,
    SEED,
    Metric,
    Ratio,
    References,
    SacrebleuMetric,
    Values,
    exact_matches,
)
from tolka.metrics.options import COMMAND, PRINTED_NAMES, MetricsConfig
from tolka.options.registry import refuse_abstract


def register_metric(name: str, printed_name: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Decorate a metric of one's own: `metrics.names` may then have `name`, and reports print `printed_name`.

    It is called without arguments, and returns a metric of sacrebleu's kind (a subclass of its `Metric`), or a function
    of translations, lists of references and sources (None where they are not known) that returns a number for each
    line: the score is their mean.
    """

    def add(make: Callable[[], Any]) -> Callable[[], Any]:
        refuse_abstract(make, f"the metric '{name}'")
        PRINTED_NAMES[name], REGISTERED[name] = printed_name, make
        return make

    return add


@dataclass(frozen=True)
class Score:
    """A score of a corpus under one metric, unrounded.

    interval: 95% of the resamples, as sacrebleu's mean - ci and mean + ci, cut off at the ends of the scale (TER's has
    no upper end). digits: decimals that tables show.
    """

    name: str
    value: float
    interval: tuple[float, float] | None
    signature: str
    digits: int = 2

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON; the value is called "score", as in sacrebleu."""
        return {"name": self.name, "score": self.value, "signature": self.signature, "interval": self.interval}


def score(
    hypotheses: Sequence[str], references: Sequence[str] | References, config: MetricsConfig, language: str = ""
) -> list[Score]:
    """Score hypotheses, detokenised and line by line, against the references; equal to the sacrebleu command.

    `language` is the target's code ("" if unknown). Memory: 12 bytes for each line and statistic (10 of BLEU, 24 of
    chrF++), and some 100 MB. `language_notes` are the caller's to show.
    Raises `DataError` when the counts differ or are zero, `ConfigError` for a tokenizer that is not installed.
    """
    return scores_and_lines(hypotheses, references, config, language)[0]


def scores_and_lines(
    hypotheses: Sequence[str], references: Sequence[str] | References, config: MetricsConfig, language: str = ""
) -> tuple[list[Score], Callable[[], dict[str, Values]]]:
    """Return scores as `score` does, and a function that returns those of each line, (L,), by printed names.

    Lines have the scores of `sacrebleu --sentence-level`: BLEU leaves out n-grams that are longer than the line.
    """
    references = checked_references([hypotheses], references)
    metrics = metrics_of(config, language)
    statistics = [each for (each,) in statistics_of(metrics, [hypotheses], references)]
    samples = resampled_sums(statistics, config.bootstrap, SEED) if config.bootstrap else [None] * len(metrics)
    scores = [
        score_of(metric, counts, None if sums is None else interval_of(metric.values(sums), mean), config.bootstrap)
        for metric, counts, sums in zip(metrics, statistics, samples, strict=True)
    ]
    measured = list(zip(metrics, statistics, strict=True))
    return scores, lambda: {metric.name: metric.line_values(counts) for metric, counts in measured}


def line_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> Values:
    """Return the chrF2 of each line, (L,)."""
    _, of_lines = scores_and_lines(hypotheses, references, MetricsConfig(names=["chrf"], bootstrap=0))
    return of_lines()[PRINTED_NAMES["chrf"]]


def score_of(metric: Metric, statistics: Statistics, interval: tuple[float, float] | None, resamples: int) -> Score:
    """Return the score of a system from the statistics of its lines; the interval is cut off at its scale's ends."""
    within = interval and (max(metric.lowest, interval[0]), min(metric.highest, interval[1]))
    value = float(metric.value(totals(statistics)))
    return Score(metric.name, value, within, metric.signature(resamples), metric.digits)


def interval_of(resampled: Values, mean: Callable[[Any], Any] = np.mean) -> tuple[float, float]:
    """Return sacrebleu's mean - ci and mean + ci of the scores of resamples.

    mean: sacrebleu takes NumPy's where it compares systems, and that of Python's statistics for a single score.
    """
    ordered = np.sort(resampled)
    cut = len(ordered) // 40
    middle, half_width = float(mean(ordered)), 0.5 * float(ordered[-1 - cut] - ordered[cut])
    return middle - half_width, middle + half_width


def statistics_of(
    metrics: Sequence[Metric], systems: Sequence[Sequence[str]], references: References
) -> list[list[Statistics]]:
    """Return, for each metric, the matrices of each system."""
    statistics: dict[str, list[Statistics]] = {}
    chrf, chrf_words = PRINTED_NAMES["chrf"], PRINTED_NAMES["chrf++"]
    for metric in sorted(metrics, key=lambda metric: metric.name == chrf):  # chrF last, after chrF++
        # Of several references each takes that which is best by its own order of words.
        if metric.name == chrf and chrf_words in statistics and len(references.lists) == 1:
            # chrF++ counts characters as chrF does, three numbers for each order, and words after them.
            assert isinstance(metric, SacrebleuMetric)
            metric.metric.num_refs, order = 1, metric.metric.order
            statistics[metric.name] = [counts[:, : 3 * order] for counts in statistics[chrf_words]]
        else:
            statistics[metric.name] = metric.statistics(systems, references)
    return [statistics[metric.name] for metric in metrics]


def metrics_of(config: MetricsConfig, language: str) -> list[Metric]:
    """Return the metrics that `config` names, sacreBLEU's with its command's settings."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    # `force` changes no score: it silences the warning about lines that end in " .". The effective order stays off, as
    # in the command: it is for single sentences. TER splits Chinese and kanji into characters, as sacrebleu's
    # --ter-normalized and --ter-asian-support do; Korean has words between spaces.
    by_character = ter_splits_characters(language)

    def bleu(name: str, **options: Any) -> Metric:
        tokenizer = bleu_tokenizer(config, language)
        corpus, line = (BLEU(tokenize=tokenizer, force=True, effective_order=of, **options) for of in (False, True))
        return SacrebleuMetric(name, corpus, line)

    make: dict[str, Callable[[], Metric]] = {
        "bleu": lambda: bleu("bleu"),
        "chrf": lambda: SacrebleuMetric("chrf", CHRF()),
        "chrf++": lambda: SacrebleuMetric("chrf++", CHRF(word_order=2)),
        "ter": lambda: SacrebleuMetric("ter", TER(normalized=by_character, asian_support=by_character)),
        "bleu-lc": lambda: bleu("bleu-lc", lowercase=True, smooth_method="none"),
        "exact": lambda: Ratio(PRINTED_NAMES["exact"], exact_matches, "line", 100.0),
    }
    found = [_registered(name) if name in REGISTERED else make[name]() for name in config.names]
    return [*found, command_metric(COMMAND, config.command)] if config.command else found


def _registered(name: str) -> Metric:
    made = REGISTERED[name]()
    if hasattr(made, "_compute_score_from_stats"):
        return SacrebleuMetric(name, made)

    def count(system: Sequence[str], references: References) -> list[tuple[float, float]]:
        return [(float(value), 1.0) for value in made(system, references.lists, references.sources)]

    return Ratio(PRINTED_NAMES[name], count, name)


def checked_references(systems: Sequence[Sequence[str]], references: Sequence[str] | References) -> References:
    """Return the references of systems' translations; of lines alone, there is one a line, and no source.

    DataError unless each hypothesis has its references: sacrebleu's library cuts to the shorter list.
    """
    checked = references if isinstance(references, References) else References([references])
    for hypotheses, wanted in product(systems, checked.lists):
        if len(hypotheses) != len(wanted):
            raise DataError(
                f"{len(hypotheses)} hypotheses but {len(wanted)} references: "
                "line n is scored against line n, so the counts must be equal (an empty translation is an empty line)"
            )
    if not len(checked):
        raise DataError("0 hypotheses and 0 references: there is nothing to score")
    return checked
