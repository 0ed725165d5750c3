"""The parity gate: an import or export fails unless both sides translate a sample alike.

Both translate greedily, at most `LIMIT` tokens a line. Compared are the share of identical lines, BLEU of the other
side's translations against ours, and, if both sides have logits, those of forced decoding and the growth of nll.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from tolka.data.batch import EOS, UNK, collate
from tolka.engines.gate import IDENTICAL
from tolka.engines.options import DecodingConfig
from tolka.errors import CheckpointError, DataError
from tolka.metrics.options import MetricsConfig
from tolka.metrics.scores import Score, score
from tolka.model_directory.read import SavedModel
from tolka.model_directory.settings import character_form, direction_of
from tolka.search.greedy import GreedyConfig
from tolka.system.number_format import count_text
from tolka.system.progress import Say, bar, silent
from tolka.text.direction import UNKNOWN, Direction
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.translation.request import Request
from tolka.translation.translator import Translator

LIMIT = 128
"""Most tokens of a translation, `</s>` included: the same on both sides."""
LINES = 64
"""Lines of a made-up sample."""
_TRIES = 50  # for each made-up line: most subwords of an odd vocabulary may be blanks
_FORCED_LINES = 32  # lines whose logits are compared: each has the whole vocabulary at every token
_FORCED_AT_ONCE = 8
_FORCED_CHARACTERS = 60  # of a translation: encoding may cut it into more subwords than it was made of
_FEW_DIFFERENT = 4  # translations, of which equal ones say little
_SHOWN = 200  # characters of a line in a message
Pairs = Sequence[tuple[str, str]]
Logits = NDArray[np.float32]


class Side(Protocol):
    """A program with a model; the gate compares two."""

    name: str
    """The program and its version, for the model card: "transformers 5.24.0"."""

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Return the greedy translation of each line, of at most `LIMIT` tokens; never with `<pad>` or `<s>`."""

    def logits(self, pairs: Pairs) -> list[Logits] | None:
        """Return the logits (T + 1, V - 2) of each (source, target)'s tokens and of `</s>`, with forced decoding.

        The columns are the subwords in tolka's order from `</s>` on, since no side may translate to `<pad>` or `<s>`.
        None, as here, if the program does not return logits.
        """
        return None


class TolkaSide:
    """A model directory on the CPU in fp32, through the same path as mt-translate."""

    def __init__(
        self, saved: SavedModel, limit: int = LIMIT, name: str = "tolka", has_logits: bool = True, factor: int = 0
    ) -> None:
        """limit: tokens of a translation, if the other side has fewer positions than LIMIT. factor: if it limits them
        to that many for each token of the source.

        has_logits: whether they can be compared: those of a trimmed model are of other subwords.
        """
        self.name, self._has_logits = name, has_logits
        # A constant limit: the factor's share of it is at least 1.
        search = GreedyConfig(max_length_factor=float(factor), max_length_extra=0 if factor else limit - 1)
        self._translator = Translator.of(saved, search, DecodingConfig(device="cpu", split="never"))
        self._saved, self._limit, self.direction = saved, limit, direction_to_compare(saved)
        self.engine = self._translator.engine

    def beginning(self, target: str) -> str:
        """Return the beginning of a target, of no more tokens than a translation may have."""
        while len(self._saved.tokenizer.encode_target([target])[0]) > self._limit:
            target = target[: len(target) // 2].strip()
        return target

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Return the greedy translation of each line, as a whole."""
        # A large model takes minutes on a CPU.
        with bar(f"translating with {self.name}", len(lines), " lines") as progress:
            return self._translator(
                lines, Request(direction=self.direction), lambda share: progress.update(share * len(lines))
            )

    def logits(self, pairs: Pairs) -> list[Logits] | None:
        """Return the logits of the model, see `Side`."""
        if not self._has_logits:
            return None
        tags = self._saved.tokenizer.tags(self.direction)
        tokenizer, model, logits_of_pairs = self._saved.tokenizer, self._saved.model, list[Logits]()
        for start in range(0, len(pairs), _FORCED_AT_ONCE):
            part = pairs[start : start + _FORCED_AT_ONCE]
            targets = tokenizer.encode_target([target for _, target in part])
            # As tokens of the target, so that the logits of the tags are compared too.
            tagged = [[*tags.target, *row] for row in targets]
            batch = collate(tokenizer.encode_source([source for source, _ in part]), tagged, (tags.source, ()))
            with torch.inference_mode():
                logits = model.logits(model(batch))[:, EOS:].float().cpu().numpy()
            ends = np.cumsum([len(row) + 1 for row in tagged])[:-1]
            logits_of_pairs += np.split(logits, ends)
        return logits_of_pairs


@dataclass(frozen=True)
class Threshold:
    """Limits for two sides: least share of identical lines and BLEU, greatest difference of logits and growth of nll.

    advice: for a user whose model is beyond them.
    """

    identical: float = IDENTICAL
    bleu: float = 99.0
    logits: float = 1e-3
    nll: float = math.inf
    advice: str = ""


FP32 = Threshold()
"""For weights in fp32 on both sides, whose sums differ only in their order."""
FP16 = Threshold(identical=0.9, bleu=95.0, logits=0.1)
"""For weights rounded to fp16 on the other side."""
BF16 = Threshold(identical=0.6, bleu=80.0, logits=1.0)
"""For weights rounded to bf16, which has 8 bits of precision, on the other side."""


@dataclass(frozen=True)
class Parity:
    """The result of a comparison of two sides, which are called `ours` and `other`.

    logits: their greatest difference. nll: growth of the nll per token on the other side, in nats: the Kullback-Leibler
    divergence of the distributions. Both are None if one side has no logits. first: the first line that differs, as
    (source, our translation, the other one). different: number of different translations, blank ones not counted.
    """

    ours: str
    other: str
    lines: int
    identical: int
    bleu: Score
    logits: float | None
    nll: float | None
    first: tuple[str, str, str] | None
    different: int

    def as_markdown(self) -> str:
        """Return the section of a model card."""
        logits = ""
        if self.logits is not None:
            logits = f" The greatest difference of logits is {self.logits:.1e}. nll grows by {self.nll:.1e} a token."
        return (
            f"## Parity\n\nOf {self.lines} lines, {self.other} and {self.ours} translate {self.identical} identically "
            f"(greedy), to {count_text(self.different, 'different text')}; BLEU between both is {self.bleu.value:.2f} "
            f"(`{self.bleu.signature}`).{logits}\n"
        )

    def check(self, threshold: Threshold, say: Say = silent) -> str:
        """Report the comparison, and return the section of a model card.

        CheckpointError, with the first line that differs, if the sides are less alike than the threshold.
        """
        reasons = []
        if self.identical < threshold.identical * self.lines:
            reasons.append(
                f"{self.identical} of {self.lines} lines are identical (at least {threshold.identical:.0%} must be)"
            )
        if self.bleu.value < threshold.bleu:
            reasons.append(f"BLEU between both is {self.bleu.value:.2f} (at least {threshold.bleu:g})")
        # `not <=`, so that NaN is refused as well.
        if self.logits is not None and not self.logits <= threshold.logits:
            reasons.append(f"logits differ by {self.logits:.1e} (at most {threshold.logits:.0e})")
        if self.nll is not None and not self.nll <= threshold.nll:
            reasons.append(f"nll grows by {self.nll:.4f} a token (at most {threshold.nll:g})")
        if reasons:
            shown = ""
            if self.first is not None:
                source, ours, theirs = (f"{text[:_SHOWN]!r}" for text in self.first)
                shown = (
                    f". First line that differs: {source} becomes {ours} in {self.ours} and {theirs} in {self.other}"
                )
            complaint = f"{self.other} does not translate like {self.ours}: {'; '.join(reasons)}"
            raise CheckpointError(f"{complaint}{shown}{threshold.advice}")
        section = self.as_markdown()
        say(section.splitlines()[-1])
        if self.logits is None and self.different < min(_FEW_DIFFERENT, self.lines):
            say(
                "warning: that proves little, as so few translations differ: give source lines of the model's kind, "
                "--sample FILE"
            )
        return section


def compare(ours: Side, theirs: Side, lines: Sequence[str], cut: Callable[[str], str] = str) -> Parity:
    """Translate the lines (at least one, none of them blank) with both sides, and compare.

    cut: shortens a target of forced decoding to a length for which both sides have positions.
    """
    # Blanks at the ends do not count: the other side's tokenizer may strip them.
    mine, other = ([text.strip() for text in side.translate(lines)] for side in (ours, theirs))
    both = list(zip(lines, mine, other, strict=True))
    first = next((each for each in both if each[1] != each[2]), None)
    (bleu,) = score(other, mine, MetricsConfig(names=["bleu"], tokenizer="13a", bootstrap=0))
    identical = sum(one == two for one, two in zip(mine, other, strict=True))
    if identical == len(both):  # of texts without four words in a line BLEU is below 100 even where all are equal
        bleu = replace(bleu, value=100.0)
    texts = list(zip(lines, mine, strict=True))[:_FORCED_LINES]
    # Where nothing was translated the target is the source, without the tag that begins it (`>>deu<<`).
    targets = [(target or source.split("<< ")[-1])[:_FORCED_CHARACTERS].strip() for source, target in texts]
    forced = [(source, cut(target)) for (source, _), target in zip(texts, targets, strict=True)]
    logits, nll = _differences(ours, theirs, forced)
    different = len({text for text in mine if text})
    return Parity(ours.name, theirs.name, len(both), identical, bleu, logits, nll, first, different)


def _differences(ours: Side, theirs: Side, pairs: Pairs) -> tuple[float | None, float | None]:
    """Return `logits` and `nll` of Parity; infinite if the sides cut a text into different numbers of subwords."""
    if (one := ours.logits(pairs)) is None or (two := theirs.logits(pairs)) is None:
        return None, None
    if any(a.shape != b.shape for a, b in zip(one, two, strict=True)):
        return math.inf, math.inf
    mine, other = np.concatenate(one), np.concatenate(two)  # (tokens, V - 2)
    log_p, log_q = (torch.from_numpy(each).log_softmax(dim=1) for each in (mine, other))
    # The expectation over our distribution, and not the nll of one text: it does not depend on how sure a model is.
    return float(np.abs(mine - other).max()), float((log_p.exp() * (log_p - log_q)).sum(dim=1).mean())


def direction_to_compare(saved: SavedModel) -> Direction:
    """Return the direction of a model; where it has many and its settings name none, that of its first two tags."""
    direction, languages = direction_of(saved.config), saved.tokenizer.languages
    return direction if not languages or set(direction) <= {*languages} else Direction(languages[0], languages[-1])


def sample_of(saved: SavedModel, given: Sequence[str] = (), say: Say = silent) -> list[str]:
    """Return the lines to compare: those given, in the model's form of characters, or made-up ones if none are given.

    Blank lines, and those with more subwords than the model was trained on, are left out with a note; DataError if none
    remain. CheckpointError if no lines can be made of the vocabulary.
    """
    longest = saved.sources.longest
    if not given:
        if made := made_up_lines(saved.tokenizer, LINES, longest=longest, direction=direction_to_compare(saved)):
            return made
        raise CheckpointError(
            f"{saved.folder}: its vocabulary gives no lines of at most {longest} subwords to compare translations of; "
            "name source lines with --sample FILE"
        )
    form = character_form(saved.config)
    texts = [text for line in given if (text := form.source(line))]
    lengths = map(len, saved.tokenizer.encode_source(texts))
    lines = [text for text, length in zip(texts, lengths, strict=True) if length <= longest]
    counts = {
        "blank": len(given) - len(texts),
        f"longer than the {longest} subwords that the model was trained on": len(texts) - len(lines),
    }
    reasons = ", ".join(f"{count} {reason}" for reason, count in counts.items() if count)
    if not lines:
        raise DataError(f"none of the {len(given)} lines of the sample can be compared: {reasons}")
    if len(lines) < len(given):
        say(f"note: {len(given) - len(lines)} of {len(given)} lines of the sample are left out: {reasons}")
    return lines


def made_up_lines(tokenizer: Tokenizer, count: int, longest: int = 128, direction: Direction = UNKNOWN) -> list[str]:
    """Return lines of 2 to 16 random subwords: of any language, and harder for a model than text.

    Each begins with one of the vocabulary's language tags (`>>deu<<`), if it has any and the direction has none, and
    has at most `longest` subwords. There are fewer lines, or none, for a vocabulary with hardly any ordinary subwords.
    """
    pieces = tokenizer.source_pieces(range(UNK + 1, tokenizer.source_size))
    tags = [] if tokenizer.replaced_tags(direction) else [f">>{code}<<" for code in tokenizer.typed_tags]
    words = [UNK + 1 + number for number, piece in enumerate(pieces) if not piece.startswith((">>", "<"))]
    most = min(16, longest - bool(tags))
    draw, lines = random.Random(1), list[str]()
    for _ in range(_TRIES * count if words and most > 0 else 0):
        (text,) = tokenizer.decode_source([draw.choices(words, k=draw.randint(min(2, most), most))])
        if text := text.strip():
            # Encoded again, since random subwords joined to text may be cut otherwise.
            line = f"{draw.choice(tags)} {text}" if tags else text
            if len(tokenizer.encode_source([line])[0]) <= longest:
                lines.append(line)
        if len(lines) == count:
            break
    return lines
