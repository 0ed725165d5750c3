"""Every text against every other one, compared with sacrebleu pair by pair."""

import random
from typing import Any

import numpy as np
import pytest
from sacrebleu import sentence_chrf

from tolka.metrics.pairwise import chrf_matrix, chrf_of

SENTENCES = [
    "Ein Mann mit einem orangefarbenen Hut starrt auf etwas.",
    "Die Katze, die gestern 1,5 Fische gefressen hat, schläft jetzt.",
    "나는 너를 사랑합니다.",
    "彼は言った。「行け！」そして去った。",
    "a a a b a a a b",
]
ODD = ["", " ", "a", "  a b  ", "aaaaaaaaaaaaaaaaaaaaaa", "a a a a a a a", "…", "🙂 🙂", "\u3000x", "Hello ."]


def changed(sentence: str, draw: random.Random) -> str:
    """The sentence with some words left out, doubled or moved, and some letters changed."""
    words = sentence.split(" ")
    for _ in range(draw.randint(0, 3)):
        place = draw.randrange(len(words))
        kind = draw.randrange(4)
        if kind == 0 and len(words) > 1:
            words.pop(place)
        elif kind == 1:
            words.insert(place, words[place])
        elif kind == 2:
            words.append(words.pop(place))
        else:
            words[place] = words[place][1:] + draw.choice("xyzé")
    return " ".join(words)


@pytest.mark.parametrize("seed", range(4))
def test_it_is_sacrebleu_of_each_pair(seed: int) -> None:
    draw = random.Random(seed)
    texts = [changed(draw.choice(SENTENCES), draw) for _ in range(14)] + ODD
    chrf = chrf_matrix(texts)
    assert chrf.shape == (len(texts), len(texts))
    for row, hypothesis in enumerate(texts):
        for column, reference in enumerate(texts):
            pair = hypothesis, reference
            assert chrf[row, column] == pytest.approx(sentence_chrf(hypothesis, [reference]).score, abs=1e-9), pair
    assert chrf_of(texts[0], texts[1]) == chrf[0, 1]


def test_rows_are_hypotheses() -> None:
    texts = ["the old boat", "the old boat drifts home"]
    matrix = chrf_matrix(texts)
    assert matrix[0, 1] == pytest.approx(sentence_chrf(texts[0], [texts[1]]).score)
    assert matrix[0, 1] < matrix[1, 0]  # recall counts four times as much as precision


def test_nothing_in_nothing_out() -> None:
    assert chrf_matrix([]).shape == (0, 0)


def test_only_what_stands_in_two_texts_takes_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The matrix of counts has a column for each n-gram of several texts, and 4 bytes for each count."""
    made: list[tuple[tuple[int, ...], object]] = []
    real = np.zeros

    def counted(shape: Any, dtype: Any = float) -> Any:
        made.append((tuple(np.atleast_1d(shape)), dtype))
        return real(shape, dtype)

    texts = ["".join(chr(0x4E00 + 50 * row + place) for place in range(50)) for row in range(6)]
    texts = [f"{text}ab" for text in texts]
    monkeypatch.setattr("tolka.metrics.pairwise.np.zeros", counted)
    matrix = chrf_matrix(texts)
    tables = [shape for shape, dtype in made if dtype == np.int32]
    assert tables == [(6, 2), (6, 1), (6, 0), (6, 0), (6, 0), (6, 0)]  # a and b; ab
    assert matrix.diagonal() == pytest.approx(100)
