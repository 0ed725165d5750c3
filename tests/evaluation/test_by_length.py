"""BLEU by source length: which sentences are where, and that each bucket is scored alone."""

import itertools
import random

import pytest

from tolka.evaluation.tester import _spans, bleu_by_length
from tolka.metrics.options import MetricsConfig
from tolka.metrics.scores import score
from tolka.text.pairs import Pair

METRICS = MetricsConfig(bootstrap=0)


def test_every_sentence_is_in_one_bucket_and_scored_there() -> None:
    draw = random.Random(1)
    sources = [" ".join("w" * draw.randint(1, 12)) for _ in range(90)]
    references = [" ".join(draw.choice(["tolo", "mirka", "pell"]) for _ in range(6)) for _ in sources]
    hypotheses = [r if len(s.split()) < 5 else r[:-6] + " selk" for s, r in zip(sources, references, strict=True)]
    found = bleu_by_length([*map(Pair, sources, references)], hypotheses, METRICS, "xb")
    assert sum(bucket["sentences"] for bucket in found) == 90
    assert 3 <= len(found) <= 5
    for before, after in itertools.pairwise(found):
        assert before["words"][1] < after["words"][0]
    for bucket in found:
        shortest, longest = bucket["words"]
        rows = [n for n, s in enumerate(sources) if shortest <= len(s.split()) <= longest]
        (alone, *_) = score([hypotheses[n] for n in rows], [references[n] for n in rows], METRICS, "xb")
        assert bucket == {"words": [shortest, longest], "sentences": len(rows), **alone.as_dict()}
    assert found[0]["score"] == pytest.approx(100.0)
    assert found[-1]["score"] < 90.0
    assert found[0].keys() == {"words", "sentences", "name", "score", "signature", "interval"}


@pytest.mark.parametrize(
    ("lengths", "spans"),
    [
        ([1, 2, 3, 4, 5], [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]),
        ([7] * 9, [(7, 7)]),
        ([1] * 8 + [9], [(1, 1), (9, 9)]),
        ([3, 1, 2, 2, 2, 9, 8, 8, 4, 4], [(1, 2), (3, 4), (8, 8), (9, 9)]),
        ([5], [(5, 5)]),
    ],
)
def test_spans_by_hand(lengths: list[int], spans: list[tuple[int, int]]) -> None:
    found = _spans(lengths, 5)
    assert found == spans
    covered = [length for length in lengths if any(a <= length <= b for a, b in found)]
    assert len(covered) == len(lengths)


def test_sources_without_spaces_are_counted_in_characters() -> None:
    sources = ["今天", "他在图书馆", "今天天气很好"]
    found = bleu_by_length([Pair(each, "a b") for each in sources], ["a b"] * 3, METRICS, "en", "zh", buckets=3)
    assert [bucket["characters"] for bucket in found] == [[2, 2], [5, 5], [6, 6]]
