"""Gather the evidence for a verdict: figures of the best model, of its tests and of the curve of its training."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from tolka.engines.torch_engine import TorchEngine
from tolka.evaluation.tester import TestResult
from tolka.evaluation.verdict import Evidence
from tolka.metrics.pairwise import PairwiseChrf
from tolka.metrics.scores import MetricsConfig, choose_bleu_tokenizer, has_spaces, score
from tolka.text.pairs import Pair
from tolka.translation.translator import Translator

_LONGEST = 1000  # subwords of a side; longer pairs are not measured
_MOST = 500  # lines to measure on: enough for shares to within a few points, and seconds of work
# chrF2. Of a model's translations of Tatoeba's test sentences, most above 75 said what the reference says, but for one
# word or its ending; of those from 65 to 75 about half said something else.
_NEARLY_RIGHT = 75.0
IdPair = tuple[list[int], list[int]]


def gather(
    translator: Translator[TorchEngine],
    result: TestResult,
    tested: Sequence[Pair],
    validation: Sequence[Pair],
    training: Sequence[IdPair],
    history: Sequence[Mapping[str, Any]],
    facts: Mapping[str, Any],
) -> Evidence:
    """Return the evidence on a training.

    result: of the pairs `tested`. training: ids of some pairs, spread over the text. history: the lines of
    metrics.jsonl. facts: the fields of Evidence that only the run knows.
    """
    language = translator.direction.target
    tokenizer = translator.tokenizer
    sources, targets = (
        tokenizer.decode_source([source for source, _ in training]),
        tokenizer.decode_target([target for _, target in training]),
    )
    (commonest_target, repeats), *_ = Counter(targets).most_common(1)
    step = max(1, len(tested) // _MOST)
    lines = list(zip(tested[::step], result.translations[::step], strict=True))
    references = [pair.target for pair, _ in lines]
    chrf = PairwiseChrf()
    line_scores = [chrf.score(text, pair.target) for pair, text in lines]
    held_out = list(map(translator.characters.pair, validation[:_MOST]))
    encoded = zip(
        tokenizer.encode_source([pair.source for pair in held_out]),
        tokenizer.encode_target([pair.target for pair in held_out]),
        strict=True,
    )
    most = min(translator.engine.longest_sentence or _LONGEST, _LONGEST)
    valid_ids = [ids for ids in encoded if all(0 < len(side) <= most for side in ids)]
    train_ids = [ids for ids in training[:: max(1, len(training) // _MOST)] if max(map(len, ids)) <= most]
    valid, train = Losses(translator, valid_ids), Losses(translator, train_ids)
    (bleu, chrf2) = _scores(result.translations, [pair.target for pair in tested], language)
    interval = next((each.interval for each in result.scores if each.name == "BLEU"), None)
    copy, line = (
        _scores(texts, references, language)[1]
        for texts in ([pair.source for pair, _ in lines], [commonest_target] * len(lines))
    )
    is_by_bleu = choose_bleu_tokenizer(language)[1] is None
    words = sum(len(text.split()) for text in targets) if has_spaces(language) else 0
    target_ids = [target for _, target in training]
    known = set(chain.from_iterable(text.split() for text in sources))
    return Evidence(
        test=result.name,
        lines=len(lines),
        metric="BLEU" if is_by_bleu else "chrF2",
        bleu=bleu,
        bleu_interval=interval,
        chrf=chrf2,
        has_spaces=has_spaces(language),
        nearly_right=sum(each >= _NEARLY_RIGHT for each in line_scores) / len(lines),
        copied=sum(pair.source == text != pair.target for pair, text in lines) / len(lines),
        commonest=Counter(text for _, text in lines).most_common(1)[0][1] / len(lines),
        copy_chrf=copy,
        line_chrf=line,
        source_gain=valid.other - valid.own,
        unrelated=train.unrelated,
        unrelated_valid=valid.unrelated,
        unigram_loss=unigram_loss(target_ids, [target for _, target in valid_ids], tokenizer.target_size),
        valid_loss=valid.own,
        train_loss=train.own,
        subwords_per_word=sum(map(len, target_ids)) / words if words else 0.0,
        vocabulary=tokenizer.target_size,
        one_target=repeats / len(targets),
        unseen_valid=_unseen([pair.source for pair in validation], known),
        unseen_test=_unseen([pair.source for pair in tested], known),
        **curve(history, "bleu" if is_by_bleu else "chrf"),
        **facts,
    )


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


def curve(history: Sequence[Mapping[str, Any]], metric: str) -> dict[str, Any]:
    """Return the figures of the curve of validations. history: the lines of metrics.jsonl. metric: bleu or chrf."""
    points = [line for line in history if line.get("valid_loss") is not None and "mean_of_updates" not in line]
    last = max((line["update"] for line in points), default=0)
    early = [line.get(metric) or 0.0 for line in points if line["update"] <= last * 2 / 3]
    late = [line.get(metric) or 0.0 for line in points if line["update"] > last * 2 / 3]
    losses = [line["valid_loss"] for line in points] or [math.inf]
    return {
        "gained": max(late, default=0.0) - max(early, default=0.0),
        "lowest_loss": min(losses),
        "last_loss": losses[-1],
    }


def _scores(hypotheses: Sequence[str], references: Sequence[str], language: str) -> tuple[float, float]:
    bleu, chrf = score(hypotheses, references, MetricsConfig(names=["bleu", "chrf"], bootstrap=0), language)
    return bleu.value, chrf.value


def _unseen(texts: Sequence[str], known: set[str]) -> float:
    words = [word for text in texts for word in text.split()]
    return sum(word not in known for word in words) / max(1, len(words))
