"""Which weights of a model to start from are trained, and in how large batches, so that it fits into memory.

The figures were measured by `benchmarks/finetuning_memory.py` on a CPU, in fp32; docs/howto/new_language.md has them.
"""

from collections.abc import Collection
from dataclasses import dataclass

from tolka.auto.rules import Choice
from tolka.errors import ConfigError

_TRAINED = "finetuning.freeze", "finetuning.lora_rank"
_BATCHES = "batching.tokens", "trainer.accumulate"
MEMORY = (*_TRAINED, *_BATCHES)
"""The settings that are chosen for the memory that there is."""
_RANK = 32  # of adapters
_BASE = 1e9  # bytes of Python, torch and the text
_NUMBER = 4  # bytes, in fp32
_COPIES = 5  # of what is trained: itself, its gradient, Adam's two moments, and the beginning to return to after NaN
_USES = 4  # of a matrix of subwords that is trained: gradients of source, target and output, and their sum
_ACTIVATIONS = 3.5  # numbers for each token, as a multiple of the layers' weights over the width


@dataclass(frozen=True)
class ModelSize:
    """How many weights a model to start from has, how many each of its matrices of subwords has, and its width."""

    weights: int
    subwords: dict[str, int]
    width: int

    def bytes(self, trained: str, tokens: int) -> float:
        """Estimate the peak of a training in batches of `tokens`. trained: "all", "layers" or "adapters"."""
        subwords = sum(self.subwords.values())
        layers = self.weights - subwords
        more = {
            "all": (_COPIES - 1) * self.weights + _USES * subwords,
            "layers": (_COPIES - 1) * layers,
            "adapters": layers,  # merged into copies of the layers' weights when a model is saved
        }
        return _BASE + _NUMBER * (self.weights + more[trained] + _ACTIVATIONS * layers / self.width * tokens)


def choose_memory(
    size: ModelSize, trained: str, tokens: int, least: int, accumulate: int, limit: float, is_open: Collection[str]
) -> list[Choice]:
    """Return the choices of MEMORY that make a training fit into `limit` bytes; ConfigError where nothing open does.

    trained: what the settings train so far; see `ModelSize.bytes`. tokens, accumulate: batching.tokens and
    trainer.accumulate so far. least: tokens that a batch must hold. is_open: the settings that may change.
    """
    may_freeze, may_divide = {*_TRAINED} <= {*is_open}, {*_BATCHES} <= {*is_open}
    divisions = [2**power for power in range(16) if not power or (may_divide and tokens >= least << power)]
    ways = [trained, *(("layers", "adapters") if may_freeze and trained == "all" else ())]
    for way in ways:
        for parts in divisions:
            if (needed := size.bytes(way, -(-tokens // parts))) <= limit:
                return _choices(size, way if way != trained else "", tokens, accumulate, parts, limit)
    alone = " even with adapters alone" if way == "adapters" else ""
    closed = ", ".join(sorted({*MEMORY} - {*is_open}))
    raise ConfigError(
        f"fine-tuning a model of {size.weights:,} parameters takes about {needed / 1e9:.3g} GB{alone}, and there are "
        f"{limit / 1e9:.3g} (trainer.memory): mt-train import MODEL -o OUT 'languages=[CODE,CODE]' leaves out what "
        f"other languages need{f'; less is needed where {closed} is not typed' if closed else ''}"
    )


def _choices(size: ModelSize, way: str, tokens: int, accumulate: int, parts: int, limit: float) -> list[Choice]:
    why = f"to fit into {limit / 1e9:.3g} GB"
    chosen = []
    if way == "layers":
        chosen.append(Choice("finetuning.freeze", [*size.subwords], f"{why}, the old subwords keep their rows"))
    if way == "adapters":
        chosen.append(Choice("finetuning.lora_rank", _RANK, f"{why}, low-rank adapters alone are trained"))
    if parts > 1:
        chosen.append(Choice("batching.tokens", -(-tokens // parts), why))
        chosen.append(
            Choice("trainer.accumulate", accumulate * parts, "so that an update has as many tokens as before")
        )
    return chosen
