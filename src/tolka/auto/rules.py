"""The rules that settings are chosen by: one table, and the few steps that read it.

The figures were measured by `benchmarks/auto/`; docs/results.md has them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tolka.auto.text_facts import TextFacts
from tolka.metrics.tables import table
from tolka.system.number_format import count_text

FRESH = (
    *("model", "model.d_model", "model.layers", "model.dropout", "tokenizer.vocab_size", "batching.tokens"),
    *("optimizer.lr", "scheduler", "scheduler.horizon", "scheduler.warmup"),
    *("trainer.updates", "trainer.epochs", "trainer.validate_every", "trainer.patience", "trainer.metric"),
)
"""The settings that are chosen for a model with fresh weights, a group before its keys."""


@dataclass(frozen=True)
class TextSize:
    """Settings that suit a text of up to `words` running words on its longer side."""

    words: float
    preset: str
    d_model: int
    layers: int
    dropout: float
    vocabulary: int
    tokens: int
    rate: float
    warmup: int
    passes: int


@dataclass(frozen=True)
class Choice:
    """A setting that was chosen, and the reason in a few words."""

    key: str
    value: Any
    reason: str


def choices_table(choices: Sequence[Mapping[str, Any]]) -> str:
    """Return choices, as plain values, as a table for a terminal, below a line that says what they are."""
    rows = [[choice["key"], str(choice["value"]), choice["reason"]] for choice in choices]
    return "chosen for this text; what is typed wins\n\n" + table(rows, ["setting", "value", "because"], "lll")


ROWS = (
    TextSize(15_000, "transformer_tiny", 128, 3, 0.3, 1000, 1024, 0.002, 100, 400),
    TextSize(150_000, "bilstm_attention", 256, 1, 0.3, 2000, 1024, 0.002, 200, 100),
    TextSize(500_000, "transformer_tiny", 128, 3, 0.2, 8000, 2048, 0.003, 400, 60),
    TextSize(5_000_000, "transformer_small", 256, 3, 0.1, 8000, 2048, 0.001, 400, 30),
    TextSize(float("inf"), "transformer_base", 512, 6, 0.1, 16000, 8192, 0.0007, 4000, 20),
)
_FAMILIES = {"any": "", "transformer": "transformer", "rnn": "bilstm"}
_SUBWORDS = 1.3  # for a word, with vocabularies of these sizes
_FEW_LINES = 50  # of a validation set: BLEU and chrF of fewer say little
_LEAST_INTERVAL, _MOST_INTERVAL = 100, 1000  # updates between two validations
_PATIENCE = 4
_STREAMED_UPDATES = 200_000


def choose(text: TextFacts, family: str = "any") -> list[Choice]:
    """Return the settings of FRESH for a text. family: of AutoOptions."""
    row = row_for(text, family)
    size = f"for {text.pairs} pairs of {text.words:.0f} words"
    updates = max(1, round(text.pairs * (text.words * _SUBWORDS + 1) / row.tokens))  # of one pass through the text
    interval = min(max(updates, _LEAST_INTERVAL), _MOST_INTERVAL)
    better = f"{size} better than a Transformer, which other programs could use (model.family=transformer)"
    lines = count_text(text.validation, "validation pair")
    metric = ("nll", f"by {lines}, BLEU would be chance") if text.validation < _FEW_LINES else ("bleu", f"of {lines}")
    return [
        Choice("model", row.preset, better if family == "any" and row.preset.startswith("bilstm") else size),
        Choice("model.d_model", row.d_model, size),
        Choice("model.layers", row.layers, size),
        Choice("model.dropout", row.dropout, "the less text, the more"),
        Choice("tokenizer.vocab_size", row.vocabulary, f"for {text.vocabulary} different words"),
        Choice("batching.tokens", row.tokens, f"{updates} updates in a pass through the text"),
        Choice("optimizer.lr", row.rate, "suits this model and batch"),
        Choice("scheduler", "wsd", "the rate falls when validations bring nothing better, and training ends"),
        Choice("scheduler.horizon", 0, "no end is set beforehand"),
        Choice("scheduler.warmup", row.warmup, "suits this rate"),
        Choice("trainer.updates", _STREAMED_UPDATES if text.streamed else 0, "at most"),
        Choice("trainer.epochs", 0 if text.streamed else row.passes, "passes through the text at most"),
        Choice("trainer.validate_every", interval, f"{interval / updates:.1f} passes through the text"),
        Choice("trainer.patience", _PATIENCE, "validations"),
        Choice("trainer.metric", *metric),
    ]


def row_for(text: TextFacts, family: str = "any") -> TextSize:
    """Return the row for a text of this size, among those of the family that is wanted."""
    rows = [row for row in ROWS if row.preset.startswith(_FAMILIES[family])]
    return next((row for row in rows if text.pairs * text.words <= row.words), rows[-1])
