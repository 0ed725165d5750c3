"""What the range test recommends on curves drawn by hand; test_trainer.py has the test at work."""

import math

import pytest
from rows import each_row

from tolka.errors import TolkaError
from tolka.training.lr_finder import Sweep, diverged, judge


def straight_fall(start: float, end: float, low: float, noise: float = 0.0) -> list[float]:
    """Losses of the sweep: 9 up to the rate `start`, then on a straight line (over the rate's logarithm) to `low`.

    At `end` it is there, stays for one decade, and rises as it fell. noise: added and taken away in turn.
    """
    losses = []
    for step in range(1, 177):
        place = math.log10(Sweep().rate(step, 0.0))
        way = (place - math.log10(start)) / (math.log10(end) - math.log10(start))
        back = max(0.0, place - math.log10(end) - 1.0)
        losses.append(9.0 + (low - 9.0) * min(max(way, 0.0), 1.0) + back + noise * (-1) ** (step // 2))
    return losses


def test_the_sweep_by_hand() -> None:
    assert [Sweep().rate(step, peak=99.0) for step in (1, 26, 51, 176)] == pytest.approx([1e-6, 1e-5, 1e-4, 10.0])


@pytest.mark.parametrize("noise", [0.0, 0.4])
@pytest.mark.parametrize(("start", "end"), [(1e-5, 1e-2), (1e-4, 1.0)])
def test_the_recommended_rate_by_hand(start: float, end: float, noise: float) -> None:
    """85 % of the fall is at 85 % of a straight line: 0.0035, or 0.25. Smoothing rounds the line's corners."""
    found = judge(straight_fall(start, end, low=5.0, noise=noise))
    by_hand = start * (end / start) ** 0.85
    assert found.recommended == pytest.approx(by_hand, rel=0.15)
    assert found.recommended in found.rates
    assert "85% of its way from 9.0" in found.reason()


def test_losses_after_a_divergence_move_little() -> None:
    """The curve may end in a cliff: the way down to the lowest is what counts."""
    losses = straight_fall(1e-5, 1e-2, low=5.0)
    cliff = [*losses[:126], 30.0, 60.0, 90.0]
    assert judge(cliff).recommended == pytest.approx(judge(losses).recommended, rel=0.15)


@pytest.mark.parametrize("losses", [[], [9.0] * 176, [9.0 - 0.001 * step for step in range(176)], [9.0, 11.0, 13.0]])
def test_no_fall_no_recommendation(losses: list[float]) -> None:
    with pytest.raises(TolkaError, match=rf"no learning rate .* nats in {len(losses)} updates"):
        judge(losses)


@each_row(
    ("losses", "expected"),
    [
        ([], False),
        ([5.0] * 4 + [99.0], False),  # the first mean is the lowest
        ([5.0] * 5 + [5.9] * 5, False),
        ([5.0] * 5 + [6.1] * 5, True),
        ([5.0] * 5 + [9.0], False),  # one wild batch: a mean of 5.8
        ([9.0] * 5 + [5.0] * 5 + [7.0] * 3, True),  # 6.2, a nat above the lowest, not above the first
    ],
)
def test_divergence_by_hand(losses: list[float], expected: bool) -> None:
    assert diverged(losses) is expected
