"""Which scores to compute, and how."""

from dataclasses import dataclass, field
from typing import ClassVar

from tolka.errors import ConfigError
from tolka.options.checks import one_of
from tolka.options.settings import setting
from tolka.options.suggestions import did_you_mean

COMMAND = "command"
"""The metric that metrics.command computes."""
MINIMIZED = {"ter", "nll", "ppl"}
"""The metrics, also of trainer.metric, of which less is better."""
# Our name in the configuration -> the name that sacrebleu prints.
PRINTED_NAMES = {
    "bleu": "BLEU",
    "chrf": "chrF2",
    "chrf++": "chrF2++",
    "ter": "TER",
    "bleu-lc": "BLEU-4 lc tok",
    "exact": "exact match",
}
SPM_TOKENIZERS = ("flores101", "flores200", "spBLEU-1K")
"""Those of spBLEU; each needs its SentencePiece model."""
TOKENIZERS = ("auto", "13a", "zh", "ja-mecab", "ko-mecab", "char", "intl", "none", *SPM_TOKENIZERS)
# Below this, sacrebleu's "95%" interval cuts nothing off: it is the smallest and the largest resample.
FEWEST_RESAMPLES = 40
_MOST_RESAMPLES = 100_000  # half a minute of the usual metrics


@dataclass(frozen=True)
class MetricsConfig:
    """Which scores to compute, and how."""

    RESUMABLE: ClassVar[bool] = True

    names: list[str] = field(default_factory=lambda: ["bleu", "chrf", "chrf++", "ter"])
    """Scores, in this order: bleu, chrf, chrf++, ter, bleu-lc (of old papers), exact (% of lines)."""
    command: str = setting("", literal=True)
    """A command that prints a score a line, also wanted; {source}, {hypothesis} and {reference} in it are files."""
    tokenizer: str = setting("auto", resumable=False)
    """BLEU's tokenizer: auto follows the target language; 13a, zh, ja-mecab, char and others of sacreBLEU fix it."""
    bootstrap: int = 1000
    """Resamples for 95% intervals, and trials of a comparison's test: at least 40, or 0 for no intervals."""

    def __post_init__(self) -> None:
        if not self.names and not self.command:
            raise ConfigError(f"metrics.names is empty: name at least one of {', '.join(PRINTED_NAMES)}")
        for name in self.names:
            if name not in PRINTED_NAMES:
                raise ConfigError(f"metrics.names: unknown '{name}'.{did_you_mean(name.lower(), PRINTED_NAMES)}")
        if len(set(self.names)) < len(self.names):
            raise ConfigError(f"metrics.names ({', '.join(self.names)}) has a metric twice: name each once")
        if self.command and "{hypothesis}" not in self.command:
            raise ConfigError(f"metrics.command ({self.command}) has no {{hypothesis}}, the file to score")
        one_of(self, "metrics", "tokenizer", TOKENIZERS)
        if self.bootstrap != 0 and not FEWEST_RESAMPLES <= self.bootstrap <= _MOST_RESAMPLES:
            allowed = f"0 (no intervals) or at least {FEWEST_RESAMPLES}, and at most {_MOST_RESAMPLES}"
            raise ConfigError(f"metrics.bootstrap ({self.bootstrap}) must be {allowed}: try 1000")
