"""Where two systems differ, by hand on a few lines."""

import random

import pytest

from tolka.metrics import contrast as contrast_module
from tolka.metrics.contrast import contrasts
from tolka.metrics.metric import References
from tolka.metrics.options import MetricsConfig
from tolka.metrics.scores import score

CONFIG = MetricsConfig(names=["bleu"], tokenizer="none")
REFERENCES = References([["the Old mill 1987", "we went home", "the rain", "no change here at all"]])
A = ["the Old mill 1987", "we stayed home", "rain", "no change here"]
B = ["the old mill 1986", "we went home", "the rain", "no change here"]


def test_lines_and_words_by_hand() -> None:
    (found,) = contrasts([A, B], REFERENCES, CONFIG)
    assert (found.lines, found.better, found.worse) == (4, 2, 1)
    assert found.deciding == ([1, 2], [0])
    assert dict(found.gained) == {"went": 1, "the": 1}
    assert dict(found.lost) == {"Old": 1, "1987": 1}


def test_parts_by_length_have_the_scores_of_their_lines() -> None:
    draw = random.Random(1)
    lines = [" ".join(draw.choice("abcde") for _ in range(draw.randint(1, 30))) for _ in range(80)]
    systems = [[line.replace(letter, "x") for line in lines] for letter in "ab"]
    (found,) = contrasts(systems, References([lines]), MetricsConfig())
    assert sum(part.count for part in found.lengths) == 80
    for part in found.lengths:
        low, high = int(part.name.split()[0]), int(part.name.split()[2])
        rows = [row for row, line in enumerate(lines) if low <= len(line.split()) <= high]
        assert len(rows) == part.count
        for system, value in zip(systems, (part.a, part.b), strict=True):
            config = MetricsConfig(names=["chrf"], bootstrap=0)
            (alone,) = score([system[row] for row in rows], [lines[row] for row in rows], config)
            assert value == pytest.approx(alone.value)


def test_every_two_of_several_and_lines_without_spaces() -> None:
    references = References([["今天天气很好", "他读书"]])
    first, second, third = contrasts(
        [["今天", "他读书"], ["今天天气", "书"], ["今天天气很好", "他读书"]], references, CONFIG, "zh"
    )
    assert [(each.better, each.worse) for each in (first, second, third)] == [(1, 1), (1, 0), (2, 0)]
    assert [part.name for part in first.lengths] == ["3 characters", "6 characters"]


def test_of_many_lines_some_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contrast_module, "MOST_LINES", 10)
    lines = [f"line {number}" for number in range(25)]
    other = [*lines[:24], "nothing"]
    (found,) = contrasts([lines, other], References([lines]), MetricsConfig())
    assert (found.lines, found.worse) == (9, 1)
    assert found.deciding == ([], [24])
