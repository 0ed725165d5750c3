"""Comparisons of several systems: every pair, Holm's correction, and intervals of differences."""

import random

import numpy as np
import pytest

from tolka.metrics.metric import REGISTERED
from tolka.metrics.options import PRINTED_NAMES, MetricsConfig
from tolka.metrics.significance import compare, gaps_to_best, holm, randomisation_p


def test_holm_by_hand() -> None:
    """The smallest is multiplied by 4, the next by 3 and so on; none is smaller than one before it, or above 1."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.4, 0.9]) == pytest.approx([0.8, 0.9])
    assert holm([0.6, 0.7]) == pytest.approx([1, 1])
    assert holm([0.2]) == [0.2]


def systems() -> tuple[list[list[str]], list[str]]:
    """Three systems that keep three, five and eight of ten words of 60 lines."""
    draw = random.Random(1)
    words = [f"word{number}" for number in range(50)]
    references = [[draw.choice(words) for _ in range(9)] for _ in range(60)]
    made = [
        [[word if draw.random() < kept else draw.choice(words) for word in line] for line in references]
        for kept in (0.3, 0.5, 0.8)
    ]
    return [[" ".join(line) for line in each] for each in made], [" ".join(line) for line in references]


def test_each_pair_is_compared_as_if_it_were_alone() -> None:
    made, references = systems()
    config = MetricsConfig(names=["bleu", "ter"], bootstrap=200)
    found = compare(made, references, config)
    assert [(each.name, each.systems) for each in found] == [
        (name, pair) for name in ("BLEU", "TER") for pair in ((0, 1), (0, 2), (1, 2))
    ]
    for each in found:
        a, b = each.systems
        [alone] = (one for one in compare([made[a], made[b]], references, config) if one.name == each.name)
        assert (alone.a, alone.b, alone.difference, alone.p_value) == (each.a, each.b, each.difference, each.p_value)
        assert (alone.interval, alone.signature) == (each.interval, each.signature)
        assert alone.p_adjusted == alone.p_value
    assert [each.p_adjusted for each in found[:3]] == holm([each.p_value for each in found[:3]])


def test_the_interval_of_a_difference_is_of_resamples_that_both_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean length is one of sums, so that resamples can be drawn again here: the same lines for both systems."""
    monkeypatch.setitem(PRINTED_NAMES, "size", "size")
    monkeypatch.setitem(REGISTERED, "size", lambda: lambda texts, references, sources: map(len, texts))
    made, references = systems()
    a, b = made[0], [f"{line} more" for line in made[0][:30]] + made[0][30:]
    (found,) = compare([a, b], references, MetricsConfig(names=["size"], bootstrap=400))
    sizes = [np.array([*map(len, each)]) for each in (a, b)]
    drawn = np.random.default_rng(12345).choice(60, size=(400, 60))
    first, second = (each[drawn].sum(1).astype(np.float32).astype(float) / 60 for each in sizes)
    changes = np.sort(second - first)
    assert found.interval is not None
    low, high = found.interval
    assert (high - low) == pytest.approx(changes[389] - changes[10])
    assert (high + low) / 2 == pytest.approx(changes.mean())


def test_two_systems_are_told_apart_by_approximate_randomisation() -> None:
    draw = np.random.default_rng(1)
    base = draw.normal(40, 15, 60)
    other = base + draw.normal(1, 3, 60)
    (change, p), best = gaps_to_best([base[None], other[None]])
    assert best == (0.0, 1.0)
    assert change == pytest.approx((base - other).mean())
    flipped = np.random.default_rng(2).choice((-1.0, 1.0), size=(20_000, 60)) @ (base - other)
    assert p == pytest.approx(randomisation_p(flipped, float((base - other).sum())), abs=0.02)


def test_of_many_equal_systems_the_best_is_seldom_called_better() -> None:
    """It was picked on these lines: pages of 20 equal systems say so in 5 %, as those of two do, not in 16 %."""
    draw = np.random.default_rng(1)
    called = 0
    for _ in range(200):
        found = gaps_to_best(list(draw.normal(40, 10, 100) + draw.normal(0, 10, (20, 1, 100))), trials=300)
        called += min(p for _, p in found) < 0.05
    assert called <= 20


def test_seeds_that_differ_make_a_difference_uncertain() -> None:
    draw = np.random.default_rng(1)
    lines = draw.normal(40, 10, 300)
    near = [lines + shift + draw.normal(0, 5, (3, 300)) for shift in (0.0, 3.0)]
    far = [each + np.array([[-4.0], [0.0], [4.0]]) for each in near]
    assert gaps_to_best(near)[0][1] < 0.01
    assert gaps_to_best(far)[0][1] > 0.2
    # Student's t of 4 degrees of freedom, where hardly anything but the seeds varies: 3 / (4 * sqrt(2 / 3)) = 0.92.
    assert gaps_to_best(far)[0][1] == pytest.approx(0.41, abs=0.06)
    assert gaps_to_best([lines[None], lines[None]]) == [(0.0, 1.0)] * 2
