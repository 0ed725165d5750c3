"""Options of decoding, except those of the search. Needs no torch."""

from dataclasses import dataclass

from tolka.options.checks import MOST_THREADS, at_least, at_most, one_of, zero_or_more
from tolka.options.settings import setting
from tolka.text.lines import LineLimit

BACKENDS = ("torch", "ctranslate2", "auto")
SPLITS = ("auto", "sentences", "length", "never")
_FEW = 0.1  # share of training lines with several sentences below which a model counts as one of single sentences
_TOKENS, _WINDOW = 16384, 2000
# On an H200, beam search of a base model with 65536 tokens was 2.9 times as fast as with 16384, in 14.5 GB instead of
# 6.5. A token has 256 KiB of a GPU's memory, and a batch so many tokens at most; a window holds several batches.
_BYTES_PER_TOKEN, _MOST_TOKENS, _GPU_WINDOW = 2**18, 2**18, 20_000
DTYPES = ("auto", "fp32", "bf16", "fp16", "int8")


@dataclass(frozen=True)
class DecodingConfig:
    """Options of decoding: device, dtype, batches, and how texts are split."""

    device: str = "auto"
    """auto (the first GPU, else the CPU), cpu, cuda, cuda:N"""
    threads: int = 0
    """CPU threads to compute with, as for two jobs at once; 0 = torch's own choice, as a rule one for each core"""
    precision: str = "auto"
    """while translating: auto (fp32; GPU: bf16 or fp16), fp32, bf16, fp16, int8 (a CPU; from d_model 256); PPL: fp32"""
    tokens: int = 0
    """ceiling on a batch: padded source tokens times hypotheses; 0 = 16384 (no PPL for longer pairs); GPU: by memory"""
    window: int = 0
    """lines read and sorted by length before translating (their order is restored); 0 = 2000, on a GPU 20000"""
    max_line_bytes: int = LineLimit.max_bytes
    """ceiling on a line of a file that is read: a longer one is an error, not a sentence"""
    max_length: int = 0
    """subwords of the longest part that is translated at once; 0 = of the longest source trained on"""
    split: str = "auto"
    """a line is cut into its sentences, at max_length (length), never, or as the model was trained (auto)"""
    source: str = setting("", literal=True)
    """code of the source language, for a model of many languages; empty = the one that it usually translates from"""
    target: str = setting("", literal=True)
    """code of the target language, likewise; mt-translate MODEL source=en target=ko is short for both"""
    backend: str = "auto"
    """what computes: torch, ctranslate2 (an extra), or auto = that on a CPU, if it has translated a sample as torch"""

    def __post_init__(self) -> None:
        zero_or_more(self, "decoding", "by the device", "tokens", "window")
        at_least(self, "decoding", 1, "max_line_bytes")
        one_of(self, "decoding", "precision", DTYPES)
        one_of(self, "decoding", "split", SPLITS)
        one_of(self, "decoding", "backend", BACKENDS)
        at_most(self, "decoding", MOST_THREADS, "threads")
        zero_or_more(self, "decoding", "as trained", "max_length")
        zero_or_more(self, "decoding", "torch's own choice", "threads")

    def batch_tokens(self, gpu_memory: int = 0) -> int:
        """Return the ceiling on a batch. gpu_memory: bytes of the GPU that translates, 0 without one."""
        return self.tokens or (min(gpu_memory // _BYTES_PER_TOKEN, _MOST_TOKENS) if gpu_memory else _TOKENS)

    def window_lines(self, on_gpu: bool) -> int:
        """Return the lines of a window."""
        return self.window or (_GPU_WINDOW if on_gpu else _WINDOW)

    @property
    def line_limit(self) -> LineLimit:
        """The limit of max_line_bytes, as readers take it."""
        return LineLimit(self.max_line_bytes, "decoding.max_line_bytes")


def resolved_split(split: str, several_sentences: float | None) -> str:
    """Return decoding.split with auto resolved to sentences, length, or unknown, which acts as length.

    several_sentences: from `TrainingSources`; unknown where it is None.
    """
    if split != "auto":
        return split
    if several_sentences is None:
        return "unknown"
    return "sentences" if several_sentences < _FEW else "length"
