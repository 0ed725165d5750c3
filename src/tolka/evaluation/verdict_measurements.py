"""Measure a trained model, the lines that it is judged by, and a sample of its training text, for the verdict.

The learning curve says what the last third of the training brought.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tolka.data.store import TokenStore
from tolka.engines.torch_engine import TorchEngine
from tolka.evaluation.input_notes import equal_note, language_note, shift_note
from tolka.evaluation.verdict_evidence import NEARLY_RIGHT
from tolka.metrics.languages import choose_bleu_tokenizer, has_spaces
from tolka.metrics.options import MetricsConfig
from tolka.metrics.scores import line_chrf, score
from tolka.text.check.misalignment import correlation
from tolka.text.pairs import Pair
from tolka.translation.translator import Translator

_MOST = 500  # lines to measure on: enough for shares to within a few points, and seconds of work
_LONGEST = 1000  # subwords of a side; longer pairs are not measured
_FEWEST, _FEWEST_LENGTHS = 20, 100  # lines for a score of their own; pairs for a correlation
_SELDOM = 5  # occurrences in training, with which a subword is learnt badly
_REPRODUCED = 0.95  # share of references that are their sources, from which on they are no references
_FEWEST_TRIGRAMS, _MOST_PAIRS = 4, 1_000_000  # of a side, for near copies; pairs among which these are looked for
_NEAR = 0.7  # share of trigrams in common: a word that is changed costs three or four
IdPair = tuple[list[int], list[int]]
_T = TypeVar("_T")


@dataclass(frozen=True)
class Material:
    """What is measured, in the direction of the translator.

    tested: the pairs that the model is judged by, with their translations. validation: its pairs. training: ids of some
    thousand pairs, spread over the text, which is the store's.
    """

    translator: Translator[TorchEngine]
    tested: Sequence[Pair]
    translations: Sequence[str]
    validation: Sequence[Pair]
    training: Sequence[IdPair]
    store: TokenStore

    @property
    def language(self) -> str:
        """The code of the language that the material is translated into."""
        return self.translator.direction.target

    @property
    def scale(self) -> str:
        """The score that levels are by: BLEU by a tokenizer of another language means little."""
        if not choose_bleu_tokenizer(self.language)[1]:
            return "BLEU"
        return "chrF2" if has_spaces(self.language) else "chrF2 without spaces"

    def training_texts(self) -> list[Pair]:
        """Return the texts of the training pairs, as the store keeps ids alone."""
        tokenizer, (sources, targets) = self.translator.tokenizer, zip(*self.training, strict=True)
        return [*map(Pair, tokenizer.decode_source(sources), tokenizer.decode_target(targets))]

    def encoded(self, pairs: Iterable[Pair]) -> list[IdPair]:
        """Return the ids of pairs."""
        tokenizer, pairs = self.translator.tokenizer, [*map(self.translator.characters.pair, pairs)]
        sources = tokenizer.encode_source([pair.source for pair in pairs])
        return [*zip(sources, tokenizer.encode_target([pair.target for pair in pairs]), strict=True)]

    def scores(self, rows: Sequence[int]) -> tuple[float, float]:
        """Return BLEU and chrF2 of the translations of these tested pairs."""
        references = [self.tested[row].target for row in rows]
        return _scores([self.translations[row] for row in rows], references, self.language)


def measure_fit(material: Material) -> dict[str, Any]:
    """Return how the model fits: the fields of Evidence that follow from the material."""
    pairs, texts, language = _some(material.tested), _some(material.translations), material.language
    references, sources = [pair.target for pair in pairs], [pair.source for pair in pairs]
    commonest = [_commonest([pair.target for pair in material.training_texts()])[0]] * len(pairs)
    lines = line_chrf(texts, references)
    bleu, chrf = material.scores(range(len(material.tested)))
    valid_ids = material.encoded(_some(material.validation))
    trained, validated = (Losses(material.translator, each) for each in (_some(material.training), valid_ids))
    targets, valid_targets = ([target for _, target in ids] for ids in (material.training, valid_ids))
    return {
        "lines": len(pairs),
        "scale": material.scale,
        "bleu": bleu,
        "chrf": chrf,
        "copy_chrf": _scores(sources, references, language)[1],
        "over_copy": _interval(lines - line_chrf(sources, references)),
        "line_chrf": _scores(commonest, references, language)[1],
        "over_line": _interval(lines - line_chrf(commonest, references)),
        "nearly_right": float(np.mean(lines >= NEARLY_RIGHT)),
        "copied": float(np.mean([pair.source == text != pair.target for pair, text in zip(pairs, texts, strict=True)])),
        "commonest": (_commonest(texts)[1] - _commonest(references)[1]) / len(pairs),
        "train_loss": trained.own,
        "valid_loss": validated.own,
        "unigram_loss": unigram_loss(targets, valid_targets, material.translator.tokenizer.target_size),
        "gain": validated.other - validated.own,
        "train_gain": trained.other - trained.own,
        "unrelated": trained.unrelated,
        "unrelated_valid": validated.unrelated,
    }


def measure_text(material: Material, test: str) -> dict[str, Any]:
    """Return facts about the texts: fields of Evidence. test: the name of the set that is judged by."""
    tokenizer, texts = material.translator.tokenizer, material.training_texts()
    words = sum(len(pair.target.split()) for pair in texts) if has_spaces(material.language) else 0
    subwords = sum(len(target) for _, target in material.training)
    lengths = [len(source) for source, _ in material.encoded(_some(material.tested))]
    size = max(tokenizer.source_size, tokenizer.target_size)
    counts = np.bincount(material.store.target_ids, minlength=size)
    if tokenizer.shared:
        counts += np.bincount(material.store.source_ids, minlength=size)
    return {
        "vocabulary": tokenizer.target_size,
        "subwords_per_word": subwords / words if words else 0.0,
        "test_fault": _fault_of_test(material, test),
        **_parallelism(texts, material.validation),
        "copies": float(np.mean([pair.source == pair.target for pair in texts])),
        "one_target": _commonest([pair.target for pair in texts])[1] / len(texts),
        "rare": float(np.mean(counts[: tokenizer.target_size] < _SELDOM)),
        "longest": material.translator.max_length,
        "too_long": float(np.mean([length > material.translator.max_length for length in lengths])),
    }


def measure_leaks(material: Material) -> tuple[tuple[float, float], tuple[float, float] | None]:
    """Return the shares of tested pairs that are in the training text, or nearly, and the scores of those that are not.

    None for scores of too few lines.
    """
    pairs = material.encoded(material.tested)
    seen, near = material.store.has(pairs), near_copies(material.store, pairs)
    told = [is_near for is_near in near if is_near is not None]
    share = sum(told) / len(told) if len(told) >= _FEWEST else 0.0
    # What is too short to tell may be nearly the same as well.
    others = [row for row, is_seen in enumerate(seen) if not is_seen and (near[row] is False or share < 0.2)]
    unseen = material.scores(others) if len(others) >= _FEWEST else None
    return (sum(seen) / len(seen), share), unseen


def near_copies(store: TokenStore, pairs: Sequence[IdPair]) -> list[bool | None]:
    """Return whether a pair of the store has most trigrams of both sides of each of these pairs; None for short pairs.

    Of test sets of real text up to 7 % have such a pair, and all have to which a word was added.
    """
    sources, targets = ([*map(_trigrams, side)] for side in zip(*pairs, strict=True))
    found = [False if min(map(len, both)) >= _FEWEST_TRIGRAMS else None for both in zip(sources, targets, strict=True)]
    having: dict[tuple[int, ...], list[int]] = {}
    for number, trigrams in enumerate(targets):
        for each in trigrams:
            having.setdefault(each, []).append(number)
    # Some ten seconds for a million pairs; of more, some are looked at.
    for row in range(0, len(store), -(-len(store) // _MOST_PAIRS) or 1):
        shared = Counter(chain.from_iterable(having.get(each, ()) for each in _trigrams(store.target(row).tolist())))
        for number, count in shared.items():
            if found[number] is False and count >= _NEAR * len(targets[number]):
                common = sources[number] & _trigrams(store.source(row).tolist())
                found[number] = len(common) >= _NEAR * len(sources[number])
    return found


def _trigrams(ids: Sequence[int]) -> set[tuple[int, ...]]:
    return {*zip(ids, ids[1:], ids[2:], strict=False)}


class Losses:
    """nll per token of pairs, with their own sources and with others; estimated share of pairs that are unrelated."""

    def __init__(self, translator: Translator[TorchEngine], pairs: Sequence[IdPair]) -> None:
        longest = min(translator.engine.longest_sentence or _LONGEST, _LONGEST)
        pairs = [ids for ids in pairs if all(0 < len(side) <= longest for side in ids)]
        others = [self._with_other_source(pairs, row) for row in range(len(pairs))]
        own, other = ([-sum(each) for each in translator.token_scores(rows)] for rows in (pairs, others))
        tokens = sum(len(target) + 1 for _, target in pairs) or 1
        self.own, self.other = sum(own) / tokens, sum(other) / tokens
        # Of two sources that are both unrelated, either is better in half of the pairs.
        worse = sum(with_own > with_other for with_own, with_other in zip(own, other, strict=True))
        self.unrelated = min(1.0, 2 * worse / max(1, len(pairs)))

    @staticmethod
    def _with_other_source(pairs: Sequence[IdPair], row: int) -> IdPair:
        """Return the target with a source of another one, far from it, as neighbours may be alike; else as it is."""
        source, target = pairs[row]
        far = (pairs[(row + len(pairs) // 2 + step) % len(pairs)] for step in range(len(pairs)))
        return next((other[0] for other in far if other[0] != source and other[1] != target), source), target


def unigram_loss(training: Sequence[Sequence[int]], text: Sequence[Sequence[int]], vocabulary: int) -> float:
    """Return the nats per token, `</s>` included, of a text under the frequencies of tokens in another."""
    counts = Counter(chain.from_iterable(training))
    total = counts.total() + len(training) + vocabulary  # one more of each, so that none has probability 0
    nats = sum(math.log(total / (counts[token] + 1)) for ids in text for token in ids)
    ends = len(text) * math.log(total / (len(training) + 1))
    return (nats + ends) / max(1, sum(len(ids) + 1 for ids in text))


def _fault_of_test(material: Material, test: str) -> str:
    """Return the fault of the test set, in words; "" if it has none."""
    sources = f"the sources of {test}", [pair.source for pair in material.tested]
    references = f"the references of {test}", [pair.target for pair in material.tested]
    notes = [shift_note(("its translations", material.translations), references)]
    # Dialects may have most lines in common, in validation as well.
    if np.mean([pair.source == pair.target for pair in material.validation]) < _REPRODUCED / 2:
        notes.append(equal_note(references, sources, _REPRODUCED))
    direction = material.translator.direction
    notes += [language_note(sources, direction.source), language_note(references, direction.target)]
    return next(filter(None, notes), "")


def _parallelism(training: Sequence[Pair], validation: Sequence[Pair]) -> dict[str, Any]:
    """Return how lengths correlate and their ratio, in pairs whose sources are as long as most in validation."""
    valid, trained = (
        np.array([(len(pair.source), len(pair.target)) for pair in pairs], np.float64)
        for pairs in (validation, training)
    )
    low, middle, high = np.percentile(valid[:, 0], (10, 50, 90))
    alike = [each[(each[:, 0] >= low) & (each[:, 0] <= high)] for each in (trained, valid)]
    if min(map(len, alike)) < _FEWEST_LENGTHS:
        return {}
    own, other = (correlation(*np.log1p(each).T) for each in alike)
    # Long texts are cut off, and short ones have ratios of any kind.
    ratios = [np.median((each[:, 1] / each[:, 0])[each[:, 0] >= middle]) for each in alike]
    return {"correlation": own, "valid_correlation": other, "ratio": float(ratios[0] / max(ratios[1], 1e-9))}


def _some(rows: Sequence[_T]) -> Sequence[_T]:
    """Return at most some hundred of the rows, spread evenly."""
    return rows[:: -(-len(rows) // _MOST) or 1]


def _commonest(lines: Sequence[str]) -> tuple[str, int]:
    """Return the commonest line, and how often it comes."""
    return Counter(lines).most_common(1)[0]


def _interval(differences: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return the 95 % interval of their mean."""
    mean, error = float(differences.mean()), float(differences.std() / math.sqrt(len(differences)))
    return mean - 1.96 * error, mean + 1.96 * error


def _scores(hypotheses: Sequence[str], references: Sequence[str], language: str) -> tuple[float, float]:
    bleu, chrf = score(hypotheses, references, MetricsConfig(names=["bleu", "chrf"], bootstrap=0), language)
    return bleu.value, chrf.value


def last_third(history: Sequence[Mapping[str, Any]], metric: str) -> dict[str, Any]:
    """Return the gains of the last third of a training: gained, loss_fell and peak_until of Evidence.

    history: the lines of metrics.jsonl. metric: bleu or chrf. A rate that falls makes score and loss better by itself.
    Where it fell in the second half only, and after a validation, the last third is that of the time before.
    """
    rates = [(line["update"], line["lr"]) for line in history if "lr" in line]
    # The mean of checkpoints is not a point of the curve.
    points = [line for line in history if "valid_loss" in line and "mean_of_updates" not in line]
    peak, peak_until = max((rate for _, rate in rates), default=0.0), 0
    at_peak = [update for update, rate in rates if rate >= peak]
    falling = [update for update, _ in rates if update > at_peak[-1]]
    # A schedule without a constant stretch has its peak in one line.
    if len(at_peak) > 1 and falling and 2 * at_peak[-1] >= rates[-1][0]:
        until = falling[0] - 1  # with the validation that began the decay
        peak_until = until if any(0 < line["update"] <= until for line in points) else 0
    points = [line for line in points if not peak_until or line["update"] <= peak_until]
    scores, losses = (
        [(line["update"], line[name]) for line in points if line.get(name) is not None]
        for name in (metric, "valid_loss")
    )
    scores_before, losses_before = (
        [value for update, value in curve if 3 * update <= 2 * curve[-1][0]] for curve in (scores, losses)
    )
    gained = max(score for _, score in scores) - max(scores_before) if scores_before else None
    best_before = min(losses_before, default=0.0)
    # With a rate that falls all the time it falls in any case.
    says_something = best_before and rates and (peak_until or rates[-1][1] == peak)
    fell = 1 - min(loss for _, loss in losses) / best_before if says_something else 0.0
    return {"gained": gained, "loss_fell": fell, "peak_until": peak_until}
