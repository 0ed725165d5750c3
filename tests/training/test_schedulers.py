"""Schedules at their edges: steps count from 1."""

import pytest

from tolka.errors import ConfigError
from tolka.training.schedulers import InverseSqrtConfig, LinearConfig, NoamConfig


def test_inverse_sqrt() -> None:
    schedule = InverseSqrtConfig(warmup=100)
    assert schedule.rate(1, peak=2.0) == pytest.approx(0.02)
    assert schedule.rate(100, peak=2.0) == pytest.approx(2.0)
    assert schedule.rate(101, peak=2.0) < 2.0
    assert schedule.rate(400, peak=2.0) == pytest.approx(1.0)


@pytest.mark.parametrize("warmup", [0, 1])
def test_without_warm_up_the_first_step_is_the_peak(warmup: int) -> None:
    assert InverseSqrtConfig(warmup=warmup).rate(1, peak=2.0) == pytest.approx(2.0)
    assert InverseSqrtConfig(warmup=warmup).rate(4, peak=2.0) == pytest.approx(1.0)


def test_noam_is_the_notes_formula() -> None:
    schedule = NoamConfig(warmup=4000, lr_init=512**-0.5)
    for step in (1, 10, 3999, 4000, 4001, 100_000):
        assert schedule.rate(step, peak=99.0) == pytest.approx(512**-0.5 * min(step**-0.5, step * 4000**-1.5))
    assert max(schedule.rate(step, 0.0) for step in range(1, 10_000)) == schedule.rate(4000, 0.0)


def test_linear_by_hand() -> None:
    schedule = LinearConfig(warmup=10, horizon=110, floor=0.1)
    expected = {1: 0.2, 10: 2.0, 60: 2.0 * 0.55, 110: 0.2, 500: 0.2}
    for step, rate in expected.items():
        assert schedule.rate(step, peak=2.0) == pytest.approx(rate)
    assert LinearConfig(warmup=0, horizon=10, floor=0.0).rate(1, 1.0) == pytest.approx(0.9)


def test_a_horizon_shorter_than_the_warm_up_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"scheduler.horizon \(400\) must be longer than scheduler.warmup \(400\)"):
        LinearConfig(warmup=400, horizon=400)


def test_complaints() -> None:
    with pytest.raises(ConfigError, match=r"scheduler.warmup \(-1\)"):
        InverseSqrtConfig(warmup=-1)
    with pytest.raises(ConfigError, match=r"scheduler.lr_init \(0\)"):
        NoamConfig(lr_init=0)
