"""The rules that settings are chosen by: a table for each family, and the few steps that read it.

The figures were measured by `benchmarks/auto/`; docs/choosing.md has them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tolka.auto.text_facts import TextFacts
from tolka.metrics.tables import table
from tolka.system.number_format import count_text
from tolka.tokenizer.extension import MUCH_UNSPELT

_OF_TRAINING = (
    *("batching.tokens", "optimizer.lr", "scheduler", "scheduler.horizon", "scheduler.warmup"),
    *("trainer.updates", "trainer.epochs", "trainer.validate_every", "trainer.patience", "trainer.metric"),
)
OF_TRANSFORMERS = "model.decoder_layers", "model.d_ff", "optimizer"
_OF_MODEL = "model", "model.d_model", "model.layers", "model.dropout", "tokenizer.vocab_size"
FRESH = (*_OF_MODEL, *OF_TRANSFORMERS, *_OF_TRAINING)
"""The settings that are chosen for a model with fresh weights, a group before its keys."""
TUNED = ("corpus.both_directions", "tokenizer.extend", *_OF_TRAINING)
"""The settings that are chosen for a model that training starts from (run.init_from)."""


@dataclass(frozen=True)
class Choice:
    """A setting that was chosen, and the reason in a few words; "" where it only follows from others."""

    key: str
    value: Any
    reason: str


@dataclass(frozen=True)
class TextSize:
    """Settings that suit a text of up to `words` running words on its longer side.

    passes: through the text, as many as were usual before validations brought nothing better. optimizer: of a
    Transformer.
    """

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
    optimizer: str = "adamw"


SIZES = {
    "rnn": [
        TextSize(150_000, "bilstm_attention", 256, 1, 0.3, 2000, 1024, 0.006, 200, 40),
        TextSize(500_000, "bilstm_attention", 256, 1, 0.2, 8000, 1024, 0.004, 200, 25),
        TextSize(math.inf, "bilstm_attention", 256, 1, 0.1, 8000, 2048, 0.004, 400, 25),
    ],
    "transformer": [
        TextSize(15_000, "transformer_tiny", 128, 3, 0.3, 1000, 1024, 0.002, 100, 200),
        TextSize(150_000, "transformer_tiny", 256, 1, 0.2, 2000, 1024, 0.003, 200, 40),
        TextSize(500_000, "transformer_tiny", 256, 1, 0.1, 8000, 2048, 0.01, 300, 20, "muon"),
        TextSize(3_000_000, "transformer_tiny", 128, 3, 0.1, 8000, 2048, 0.003, 400, 20),
        TextSize(30_000_000, "transformer_small", 256, 3, 0.1, 8000, 4096, 0.001, 400, 15),
        TextSize(math.inf, "transformer_base", 512, 6, 0.1, 16000, 25_000, 0.0007, 4000, 7),
    ],
}
# A recurrent model with attention was better than a Transformer where a word comes as often as this, up to 1 144 700
# words on the longer side. On a CPU nothing says that this ends there, as minutes are few for more text; a GPU, where
# nobody has compared them, trains a Transformer from 100 000 pairs on.
_RNN_FROM, _RNN_PAIRS_ON_GPU = 3.05, 100_000
MARGIN = 3
"""Passes through the text at most, as a multiple of the usual ones."""
# Subwords of a word: 2.15 with a vocabulary of 1000, and less with each time that it doubles; in English and German.
_SUBWORDS, _FEWER, _FEWEST_SUBWORDS = 2.15, 0.27, 1.2
_WIDEST_ON_CPU = 256
FORMS = {"marian": "transformer_student", "huggingface": "transformer_marian"}
"""Transformers that these programs know, by where a model leaves to; with post-norm, they want half of the rate."""
_FEW_LINES = 50  # of a validation set: BLEU of fewer says little
_LEAST_INTERVAL, _MOST_INTERVAL = 100, 1000  # updates between two validations; fewer where those are ten passes
_PATIENCE = 4
_MOST_ADDED = 2000  # subwords, and a quarter of the words at most, but one for each character at least
# A vocabulary of its own has less than 2; with 3.3 or more, 1000 new ones gave 3 to 10 BLEU. Between is a guess.
_MANY_SUBWORDS = 2.5
_NEW_LANGUAGE_RATE = 5e-4  # with a fifth of it, a model of English and German learnt nothing of 300 Korean lines
_STREAMED_UPDATES = 200_000
_ADAPTERS_RATE = 3  # times that of all weights: 9.4 BLEU instead of 5.2 in a language that was new
_TUNED_WIDTH, _LEAST_TUNING_RATE = 128, 5e-5  # that of the models of TUNING_SIZES; a guess


@dataclass(frozen=True)
class TuningSize:
    """Settings that suit fine-tuning on up to `pairs` pairs. passes: as in TextSize."""

    pairs: float
    tokens: int
    rate: float
    warmup: int
    passes: int


TUNING_SIZES = [
    TuningSize(1000, 1024, 0.0001, 50, 40),
    TuningSize(10_000, 1024, 0.001, 50, 20),
    TuningSize(math.inf, 4096, 0.0005, 200, 7),
]


def choose_tuning(text: TextFacts, tokens: int = 0, width: int = _TUNED_WIDTH, adapters: bool = False) -> list[Choice]:
    """Return the settings of TUNED for a text to fine-tune a model on.

    tokens: as in `choose`. width: the model's. adapters: whether they alone are trained.
    """
    is_unspelt = text.unspelt > MUCH_UNSPELT
    learns_language = is_unspelt or bool(text.new_languages)
    sizes = [size for size in TUNING_SIZES if not learns_language or size.rate >= _NEW_LANGUAGE_RATE]
    # Old text beside a new language is there to be kept, not to be learnt.
    pairs = math.inf if text.streamed else text.new_pairs if text.new_languages else text.pairs
    size = next(size for size in sizes if pairs <= size.pairs)
    # As the width grows, so must the rate fall (Yang et al. 2021, arXiv:2203.03466).
    rate = max(size.rate * min(1.0, _TUNED_WIDTH / width), min(size.rate, _LEAST_TUNING_RATE))
    size = replace(size, rate=float(f"{rate * (_ADAPTERS_RATE if adapters else 1):.2g}"))
    # Every character first; then what comes often enough to be learnt.
    new = " and ".join(text.new_languages)
    added, why = int(max(1.2 * text.characters, min(_MOST_ADDED, pairs * text.words / 4))), ""
    if is_unspelt:
        why = f"{text.unspelt:.0%} of a side's subwords are bytes, or unknown to the model"
    elif text.subwords > _MANY_SUBWORDS:
        why = f"the model has {text.subwords:.1f} subwords for a word of {new}"
    elif text.unknown:
        added, why = text.unknown, f"{count_text(text.unknown, 'character')} unknown to the model"
    language = [Choice("corpus.both_directions", not text.streamed, f"new to the model: {new}")]
    return [
        *(language if new else []),
        Choice("tokenizer.extend", added if why else 0, why or "the model spells this text well"),
        *_course(text, size, _SUBWORDS - _FEWER * 3, tokens),
    ]


def choose(
    text: TextFacts, family: str = "any", gpu: bool = False, tokens: int = 0, leaves_to: str = "html"
) -> list[Choice]:
    """Return the settings of FRESH for a text.

    family, leaves_to: of AutoOptions. gpu: whether one trains. tokens: of an update, where they are typed.
    """
    family, why = _family(text, gpu, leaves_to) if family == "any" else (family, "model.family is typed")
    # A wider model would take days on a CPU.
    sizes = [size for size in SIZES[family] if gpu or size.d_model <= _WIDEST_ON_CPU]
    words = math.inf if text.streamed else text.pairs * text.words  # of a stream the end is not known
    size = next((size for size in sizes if words <= size.words), sizes[-1])
    size = replace(size, rate=size.rate / (2 if leaves_to in FORMS else 1))
    length = (
        "a stream, whose length is not known"
        if text.streamed
        else f"{count_text(text.pairs, 'pair')} of {text.words:.0f} words"
    )
    extent = f"for {length}{'' if gpu else ', on a CPU'}"
    # Each character has a subword of its own, and so has each byte.
    vocabulary = max(size.vocabulary, -(-(256 + text.characters) // 100) * 120)
    subwords = max(_FEWEST_SUBWORDS, _SUBWORDS - _FEWER * math.log2(vocabulary / 1000))
    others = "(others: model.leaves_to)" if family == "rnn" else f"and {leaves_to.replace('html', 'ctranslate2')}"
    own = [Choice("model.decoder_layers", 0, ""), Choice("model.d_ff", 0, ""), Choice("optimizer", size.optimizer, "")]
    return [
        Choice("model", FORMS.get(leaves_to, size.preset), f"{why}; it can go to html {others}"),
        Choice("model.d_model", size.d_model, extent),
        Choice("model.layers", size.layers, extent),
        *(own if family == "transformer" else []),
        Choice("model.dropout", size.dropout, "the less text, the more"),
        Choice("tokenizer.vocab_size", vocabulary, "the less text, the fewer: each must be seen often"),
        *_course(text, size, subwords, tokens),
    ]


def _course(text: TextFacts, size: TextSize | TuningSize, subwords: float, tokens: int) -> list[Choice]:
    """Return the settings of the batches, the rate, and the end. subwords: of a word. tokens: as in `choose`."""
    # Of one pass through the text.
    updates = max(1, round(text.pairs * (text.words * subwords + 1) / (tokens or size.tokens)))
    interval = validation_interval(updates)
    lines = count_text(text.validation, "validation pair")
    metric = ("nll", f"by {lines}, BLEU would be chance") if text.validation < _FEW_LINES else ("bleu", f"of {lines}")
    return [
        Choice("batching.tokens", size.tokens, f"about {count_text(updates, 'update')} in a pass through the text"),
        Choice("optimizer.lr", size.rate, "suits this model and batch"),
        Choice("scheduler", "wsd", "the rate falls when validations bring nothing better, and training ends"),
        Choice("scheduler.horizon", 0, ""),
        Choice("scheduler.warmup", size.warmup, "suits this rate"),
        Choice("trainer.updates", _STREAMED_UPDATES if text.streamed else 0, "at most" if text.streamed else ""),
        Choice(
            "trainer.epochs",
            *((0, "") if text.streamed else (MARGIN * size.passes, f"at most; {size.passes} are usual")),
        ),
        Choice("trainer.validate_every", interval, f"{interval / updates:.1f} passes through the text"),
        Choice("trainer.patience", _PATIENCE, "validations that bring nothing better"),
        Choice("trainer.metric", *metric),
    ]


def validation_interval(updates: int) -> int:
    """Return the updates between two validations. updates: of one pass through the text."""
    return min(max(updates, min(_LEAST_INTERVAL, 10 * updates)), _MOST_INTERVAL)


def usual_share(choices: Sequence[Mapping[str, Any]]) -> float:
    """Return the share of its most updates after which such a training usually ends; 0 if nobody knows.

    choices: as plain values.
    """
    return 1 / MARGIN if any(each["key"] == "trainer.epochs" and each["value"] for each in choices) else 0.0


def choices_table(choices: Sequence[Mapping[str, Any]]) -> str:
    """Return choices, as plain values, as a table for a terminal, below a line that says what they are."""
    rows = [[each["key"], str(each["value"]), each["reason"]] for each in choices if each["reason"]]
    return "chosen for this text; what is typed wins\n\n" + table(rows, ["setting", "value", "because"], "lll")


def _family(text: TextFacts, gpu: bool, leaves_to: str) -> tuple[str, str]:
    """Return the better family for a text, and why."""
    often = f"a word comes {text.repetition:.1f} times"
    if leaves_to != "html":
        return "transformer", f"model.leaves_to={leaves_to} takes no other; recipe=distillation makes it better"
    if gpu and text.pairs >= _RNN_PAIRS_ON_GPU:
        return "transformer", "there is enough text for it"
    if text.repetition < _RNN_FROM:
        return "transformer", f"{often}, too seldom for a recurrent model"
    return "rnn", f"{often}: better than a Transformer in the same minutes"
