"""Gather the evidence for a verdict: figures of the best model, of its tests and of the curve of its training."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from tolka.data.store import TokenStore
from tolka.engines.torch_engine import TorchEngine
from tolka.evaluation.figures import NEARLY_RIGHT, Evidence
from tolka.evaluation.learning_curve import LearningCurve
from tolka.evaluation.tester import TestResult
from tolka.metrics.languages import choose_bleu_tokenizer, has_spaces
from tolka.metrics.options import MetricsConfig
from tolka.metrics.scores import line_chrf, score
from tolka.text.direction import Direction
from tolka.text.pairs import Pair
from tolka.translation.translator import Translator

_LONGEST = 1000  # subwords of a side; longer pairs are not measured
_MOST = 500  # lines to measure on: enough for shares to within a few points, and seconds of work
_SELDOM = 5  # occurrences in training, with which a subword is learnt badly
IdPair = tuple[list[int], list[int]]


def gather(
    translator: Translator[TorchEngine],
    result: TestResult,
    tested: Sequence[Pair],
    validation: Sequence[Pair],
    training: Sequence[IdPair],
    history: Sequence[Mapping[str, Any]],
    facts: Mapping[str, Any],
    store: TokenStore,
) -> Evidence:
    """Return the evidence on a training.

    result: of the pairs `tested`. training: ids of some pairs, spread over the text, which is the store's. history: the
    lines of metrics.jsonl. facts: the fields of Evidence that only the run knows.
    """
    tokenizer, language = translator.tokenizer, result.direction.target
    targets = tokenizer.decode_target([target for _, target in training])
    (commonest_target, repeats), *_ = Counter(targets).most_common(1)
    words = sum(len(text.split()) for text in targets) if has_spaces(language) else 0
    scale = "chrF2" if has_spaces(language) else "chrF2 without spaces"
    curve = LearningCurve(history)
    # BLEU by a tokenizer of another language means little.
    scale = scale if choose_bleu_tokenizer(language)[1] else "BLEU"
    return Evidence(
        test=result.name,
        scale=scale,
        bleu_interval=next((each.interval for each in result.scores if each.name == "BLEU"), None),
        subwords_per_word=sum(len(target) for _, target in training) / words if words else 0.0,
        vocabulary=tokenizer.target_size,
        one_target=repeats / len(targets),
        **_of_translations(tested, result.translations, commonest_target, language),
        **_of_losses(translator, validation, training, result.direction),
        **_of_training_text(store, translator, tested, result.translations, language),
        longest=translator.max_length,
        too_long=_too_long(translator, tested),
        peak_until=curve.peak_until,
        gained=curve.gained("bleu" if scale == "BLEU" else "chrf"),
        loss_fell=curve.loss_fell,
        **facts,
    )


def _too_long(translator: Translator[TorchEngine], tested: Sequence[Pair]) -> float:
    """Return the share of sources that are longer than any in training, and are translated in parts."""
    sources = [translator.characters.source(pair.source) for pair in tested[:: max(1, len(tested) // _MOST)]]
    lengths = map(len, translator.tokenizer.encode_source(sources))
    return sum(length > translator.max_length for length in lengths) / len(sources)


def _of_translations(
    tested: Sequence[Pair], translations: Sequence[str], commonest_target: str, language: str
) -> dict[str, Any]:
    """Return scores of the translations, and of what takes no model; shares of some of the lines."""
    bleu, chrf = _scores(translations, [pair.target for pair in tested], language)
    step = max(1, len(tested) // _MOST)
    pairs, texts = tested[::step], translations[::step]
    references, count = [pair.target for pair in pairs], len(pairs)
    return {
        "lines": count,
        "bleu": bleu,
        "chrf": chrf,
        "copy_chrf": _scores([pair.source for pair in pairs], references, language)[1],
        "line_chrf": _scores([commonest_target] * count, references, language)[1],
        "nearly_right": float(np.mean(line_chrf(texts, references) >= NEARLY_RIGHT)),
        "copied": sum(pair.source == text != pair.target for pair, text in zip(pairs, texts, strict=True)) / count,
        "commonest": Counter(texts).most_common(1)[0][1] / count,
    }


def _of_losses(
    translator: Translator[TorchEngine],
    validation: Sequence[Pair],
    training: Sequence[IdPair],
    direction: Direction,
) -> dict[str, Any]:
    """Return losses on some pairs of the training and the validation text, with their own sources and with others."""
    tokenizer, some = translator.tokenizer, validation[:: -(-len(validation) // _MOST)]
    pairs = list(map(translator.characters.pair, some))
    sides = tokenizer.encode_source([pair.source for pair in pairs]), tokenizer.encode_target([p.target for p in pairs])
    longest = min(translator.engine.longest_sentence or _LONGEST, _LONGEST)
    valid_ids = [ids for ids in zip(*sides, strict=True) if all(0 < len(side) <= longest for side in ids)]
    train_ids = [ids for ids in training[:: max(1, len(training) // _MOST)] if max(map(len, ids)) <= longest]
    scorer = translator.for_direction(direction)
    valid, train = Losses(scorer, valid_ids), Losses(scorer, train_ids)
    targets = [target for _, target in training]
    return {
        "source_gain": valid.other - valid.own,
        "unrelated": train.unrelated,
        "unrelated_valid": valid.unrelated,
        "unigram_loss": unigram_loss(targets, [target for _, target in valid_ids], tokenizer.target_size),
        "valid_loss": valid.own,
        "train_loss": train.own,
    }


def _of_training_text(
    store: TokenStore,
    translator: Translator[TorchEngine],
    tested: Sequence[Pair],
    translations: Sequence[str],
    language: str,
) -> dict[str, Any]:
    """Return what of the scored pairs is in the training text, and how the others score."""
    pairs = [*map(translator.characters.pair, tested)]
    targets = translator.tokenizer.encode_target([pair.target for pair in pairs])
    sources = translator.tokenizer.encode_source([pair.source for pair in pairs])
    seen = store.has([*zip(sources, targets, strict=True)])
    rows = [row for row, is_seen in enumerate(seen) if not is_seen]
    others = [translations[row] for row in rows], [tested[row].target for row in rows]
    bleu, chrf = _scores(*others, language) if rows else (0.0, 0.0)
    counts = np.bincount(store.target_ids, minlength=translator.tokenizer.target_size)
    tokens = np.fromiter(chain.from_iterable(targets), np.int64)
    return {
        "leaked": sum(seen) / len(seen),
        "unseen_bleu": bleu,
        "unseen_chrf": chrf,
        "rare": float(np.mean(counts[tokens] < _SELDOM)) if len(tokens) else 0.0,
    }


class Losses:
    """nll per token of pairs, with their own sources and with others; estimated share of pairs that are unrelated."""

    def __init__(self, translator: Translator[TorchEngine], pairs: Sequence[IdPair]) -> None:
        # The next pair's source, of about the same kind, is as good as any.
        others = [(pairs[(row + 1) % len(pairs)][0], target) for row, (_, target) in enumerate(pairs)]
        own, other = ([-sum(each) for each in translator.token_scores(rows)] for rows in (pairs, others))
        tokens = sum(len(target) + 1 for _, target in pairs) or 1
        self.own, self.other = sum(own) / tokens, sum(other) / tokens
        # Of two sources that are both unrelated, either is better in half of the pairs.
        losses = zip(own, other, strict=True)
        self.unrelated = min(
            1.0, 2 * sum(with_own >= with_other for with_own, with_other in losses) / max(1, len(pairs))
        )


def unigram_loss(training: Sequence[Sequence[int]], text: Sequence[Sequence[int]], vocabulary: int) -> float:
    """Return the nats per token, `</s>` included, of a text under the frequencies of tokens in another."""
    counts = Counter(chain.from_iterable(training))
    total = counts.total() + len(training) + vocabulary  # one more of each, so that none has probability 0
    nats = sum(math.log(total / (counts[token] + 1)) for ids in text for token in ids)
    ends = len(text) * math.log(total / (len(training) + 1))
    return (nats + ends) / max(1, sum(len(ids) + 1 for ids in text))


def _scores(hypotheses: Sequence[str], references: Sequence[str], language: str) -> tuple[float, float]:
    bleu, chrf = score(hypotheses, references, MetricsConfig(names=["bleu", "chrf"], bootstrap=0), language)
    return bleu.value, chrf.value
