"""Options of translation, except those of the search."""

from dataclasses import dataclass

from tolka.errors import ConfigError
from tolka.options.checks import MOST_THREADS, at_least, at_most, one_of, zero_or_more
from tolka.options.settings import setting
from tolka.text.lines import LineLimit
from tolka.translation.splitting import FEW, SPLITS

BACKENDS = ("torch", "ctranslate2", "auto")
DTYPES = ("fp32", "bf16", "fp16", "int8")
ATTENTION_KINDS = {"cross": ("decoder", "cross"), "encoder": ("encoder", "self"), "decoder": ("decoder", "self")}
"""Kind of attention map -> part of the model, and name of the attention in it."""


@dataclass(frozen=True)
class DecodingConfig:
    """Options of decoding: device, dtype, batches, and how texts are split."""

    device: str = "auto"
    """auto (the first GPU, else the CPU), cpu, cuda, cuda:N"""
    threads: int = 0
    """CPU threads to compute with, as for two jobs at once; 0 = torch's own choice, as a rule one for each core"""
    workers: int = 0
    """batches side by side on a CPU, each with its share of the threads and memory of its own; 0 = two if it has two"""
    precision: str = "fp32"
    """of the weights while translating: fp32 or as stored, bf16, fp16, int8 (a CPU; from d_model 256 on); PPL: fp32"""
    tokens: int = 16384
    """ceiling on a batch: padded source tokens times the search's hypotheses; longer pairs are left out of the PPL"""
    window: int = 2000
    """lines read before translating; within a window lines are sorted by length, their order is restored"""
    max_line_bytes: int = LineLimit.max_bytes
    """ceiling on a line of a file that is read: a longer one is an error, not a sentence"""
    max_length: int = 0
    """subwords of the longest part that is translated at once; 0 = of the longest source trained on"""
    split: str = "auto"
    """a line is cut into its sentences, at max_length (length), never, or as the model was trained (auto)"""
    backend: str = "torch"
    """what computes: torch, ctranslate2 (an extra), or auto = that on one model where it can do what is asked"""
    weights: list[float] = setting(default_factory=list)
    """of each model of several that translate together, as in [0.6,0.4], positive; empty = all the same"""

    def __post_init__(self) -> None:
        at_least(self, "decoding", 1, "tokens", "window", "max_line_bytes")
        one_of(self, "decoding", "precision", DTYPES)
        one_of(self, "decoding", "split", SPLITS)
        one_of(self, "decoding", "backend", BACKENDS)
        at_most(self, "decoding", MOST_THREADS, "threads")
        zero_or_more(self, "decoding", "as trained", "max_length")
        zero_or_more(self, "decoding", "torch's own choice", "threads")
        zero_or_more(self, "decoding", "two if there are two threads", "workers")
        at_most(self, "decoding", MOST_THREADS, "workers")
        if any(weight <= 0 for weight in self.weights):
            raise ConfigError(
                f"decoding.weights ({self.weights}) must all be above 0: leave out a model without weight"
            )

    @property
    def line_limit(self) -> LineLimit:
        """max_line_bytes, as readers take it."""
        return LineLimit(self.max_line_bytes, "decoding.max_line_bytes")


def resolved_split(split: str, several_sentences: float | None) -> str:
    """Return decoding.split with auto resolved to sentences, length, or unknown, which acts as length.

    several_sentences: from `TrainingSources`; unknown where it is None.
    """
    if split != "auto":
        return split
    if several_sentences is None:
        return "unknown"
    return "sentences" if several_sentences < FEW else "length"


@dataclass(frozen=True)
class AttentionConfig:
    """Options of attention maps: which layer and heads are returned."""

    kind: str = "cross"
    """cross = from target to source, encoder = self-attention of the source, decoder = self-attention of the target"""
    layer: int = -1
    """counted from 0 over the layers that have such a map; -1 = the last, -2 = the one before"""
    head: str = setting("mean", literal=True)
    """mean over the heads, all = a map of each, or the number of one, from 0"""
    alignments: bool = False
    """whether a tab and the word alignment follow each translation, in Pharaoh's format: source-target, from 0"""

    def __post_init__(self) -> None:
        if self.kind not in ATTENTION_KINDS:
            raise ConfigError(f"attention.kind ('{self.kind}') is unknown. Known: {', '.join(ATTENTION_KINDS)}")
        if self.head not in ("mean", "all") and not self.head.isdecimal():
            raise ConfigError(f"attention.head ('{self.head}') must be mean, all, or the number of a head, from 0")
        if self.alignments and (self.kind != "cross" or self.head == "all"):
            raise ConfigError(
                f"attention.alignments=true reads one map from target to source: attention.kind ({self.kind}) must be "
                f"cross, and attention.head ({self.head}) mean or a number"
            )
