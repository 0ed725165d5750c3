"""Schedules at their edges: steps count from 1."""

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tolka.errors import ConfigError
from tolka.optim.schedules.base import SCHEDULERS, EndingConfig, LearningRate, SchedulerConfig
from tolka.optim.schedules.formulas import ConstantConfig, CosineConfig, InverseSqrtConfig, LinearConfig, NoamConfig
from tolka.optim.schedules.wsd import WarmupStableDecayConfig

ENDING: list[type[EndingConfig]] = [LinearConfig, CosineConfig, WarmupStableDecayConfig]


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


def test_cosine_by_hand() -> None:
    """From 12 to 2: the cosine of 60, 90 and 120 degrees is 1/2, 0 and -1/2."""
    schedule = CosineConfig(warmup=10, horizon=40, floor=2 / 12)
    expected = {1: 1.2, 5: 6.0, 10: 12.0, 20: 9.5, 25: 7.0, 30: 4.5, 40: 2.0, 41: 2.0, 4000: 2.0}
    for step, rate in expected.items():
        assert schedule.rate(step, peak=12.0) == pytest.approx(rate)


def test_wsd_by_hand() -> None:
    """Warm-up to 10, flat to 84, then 16 updates down from 10 to 2: half of the way is behind after a quarter."""
    schedule = WarmupStableDecayConfig(warmup=10, horizon=100, decay=16, floor=0.2)
    expected = {1: 1.0, 10: 10.0, 11: 10.0, 84: 10.0, 85: 8.0, 88: 6.0, 93: 4.0, 100: 2.0, 101: 2.0, 4000: 2.0}
    for step, rate in expected.items():
        assert schedule.rate(step, peak=10.0) == pytest.approx(rate)


def test_wsd_at_its_edges() -> None:
    """No stable stretch; a decay of one update; one of a fifth, as far as the warm-up leaves it room."""
    full = WarmupStableDecayConfig(warmup=4, horizon=8, decay=4, floor=0.0)
    assert [full.rate(step, 1.0) for step in (3, 4, 5, 8)] == [0.75, 1.0, 0.5, 0.0]
    sudden = WarmupStableDecayConfig(warmup=0, horizon=8, decay=1, floor=0.5)
    assert [sudden.rate(step, 1.0) for step in (1, 7, 8, 9)] == [1.0, 1.0, 0.5, 0.5]
    fifth = WarmupStableDecayConfig(warmup=4, horizon=20, floor=0.0)
    assert [fifth.rate(step, 1.0) for step in (16, 17, 20)] == [1.0, 0.5, 0.0]
    assert [WarmupStableDecayConfig(warmup=9, horizon=10, floor=0.0).rate(step, 1.0) for step in (9, 10)] == [1.0, 0.0]


def test_constant_by_hand() -> None:
    schedule = ConstantConfig(warmup=4)
    assert [schedule.rate(step, peak=2.0) for step in (1, 2, 4, 5, 10**9)] == [0.5, 1.0, 2.0, 2.0, 2.0]


@pytest.mark.parametrize("warmup", [0, 1])
def test_flat_ones_begin_at_the_peak_without_warm_up(warmup: int) -> None:
    assert ConstantConfig(warmup=warmup).rate(1, peak=2.0) == 2.0
    assert WarmupStableDecayConfig(warmup=warmup).rate(1, peak=2.0) == 2.0


@pytest.mark.parametrize("config", ENDING)
def test_ending_ones_after_a_warm_up_of_one_and_none(config: type[EndingConfig]) -> None:
    """A warm-up of one is the peak at once; without one, the decay's first update is already below it."""
    options: dict[str, Any] = {
        "horizon": 6,
        "floor": 0.25,
        **({"decay": 5} if config is WarmupStableDecayConfig else {}),
    }
    assert config(warmup=1, **options).rate(1, peak=2.0) == 2.0
    assert config(warmup=1, **options).rate(6, peak=2.0) == pytest.approx(0.5)
    if config is not WarmupStableDecayConfig:
        assert 1.5 < config(warmup=0, **options).rate(1, peak=2.0) < 2.0


def steepest(schedule: SchedulerConfig) -> float:
    """The largest change, in peaks, that one step may bring."""
    rise = 1.0 / max(schedule.warmup, 1)
    if not isinstance(schedule, EndingConfig):
        return rise  # the inverse square root falls by less than half a rise
    length = schedule.horizon - schedule.warmup
    fall = {
        LinearConfig: 1.0 / length,
        CosineConfig: math.pi / 2.0 / length,
        # The root's first step is its longest.
        WarmupStableDecayConfig: getattr(schedule, "decay", 1) ** -0.5,
    }[type(schedule)]
    return float(max(rise, fall * (1.0 - schedule.floor)))


@st.composite
def schedules(draw: st.DrawFn) -> SchedulerConfig:
    """Any schedule that has a peak of its own, with a warm-up from 0 on."""
    config = SCHEDULERS.get(draw(st.sampled_from(sorted(set(SCHEDULERS.names()) - {"noam"}))))
    options: dict[str, Any] = {"warmup": draw(st.integers(0, 50))}
    if issubclass(config, EndingConfig):
        options["horizon"] = options["warmup"] + draw(st.integers(1, 100))
        options["floor"] = draw(st.floats(0.0, 1.0))
    if config is WarmupStableDecayConfig:
        options["decay"] = draw(st.integers(1, options["horizon"] - options["warmup"]))
    return config(**options)


@given(schedule=schedules(), peak=st.floats(1e-6, 10.0))
def test_up_to_the_peak_then_never_up_again_and_without_a_jump(schedule: SchedulerConfig, peak: float) -> None:
    rates = [schedule.rate(step, peak) for step in range(1, 200)]
    slack = 1e-9 * peak
    top = max(schedule.warmup, 1)
    assert 0.0 <= min(rates) <= max(rates) <= peak + slack
    assert all(before < after for before, after in pairwise(rates[:top]))
    assert all(after <= before + slack for before, after in pairwise(rates[top - 1 :]))
    assert rates[top - 1] == pytest.approx(peak) or schedule.warmup == 0
    limit = steepest(schedule) * peak + slack
    assert all(abs(after - before) <= limit for before, after in pairwise(rates))
    if isinstance(schedule, EndingConfig):
        assert rates[-1] == schedule.rate(schedule.horizon, peak) == pytest.approx(schedule.floor * peak, abs=slack)


def test_by_the_clock_the_pace_so_far_gives_the_horizon() -> None:
    """A hundred updates in half of the minutes: there will be two hundred."""
    schedule = LinearConfig(warmup=10, horizon=0, floor=0.0)
    assert schedule.paced(100, 0.5, updates=1000) == LinearConfig(warmup=10, horizon=200, floor=0.0)
    assert schedule.paced(100, 0.5, updates=150).rate(100, 1.0) == pytest.approx(1 - 90 / 140)
    assert [schedule.paced(n, n / 50, updates=1000).rate(n, 1.0) for n in (5, 10, 30, 50)] == [0.5, 1.0, 0.5, 0.0]
    assert schedule.paced(1, 0.0, updates=1000).rate(1, 1.0) == pytest.approx(0.1)
    assert schedule.paced(8, 1.0, updates=1000).rate(8, 1.0) == pytest.approx(0.8)  # over before the warm-up


def test_a_decay_that_does_not_fit_the_minutes_begins_with_the_warm_up_s_end() -> None:
    schedule = WarmupStableDecayConfig(warmup=10, horizon=0, decay=16, floor=0.0)
    assert schedule.paced(50, 0.5, updates=1000) == WarmupStableDecayConfig(warmup=10, horizon=100, decay=16, floor=0.0)
    assert schedule.paced(10, 0.5, updates=1000) == WarmupStableDecayConfig(warmup=10, horizon=20, decay=10, floor=0.0)


def test_a_plateau_begins_a_decay_of_half_of_the_updates_so_far() -> None:
    """The rate has fallen by half after a quarter of the 32 updates; without a plateau it falls in time for the end."""
    schedule = WarmupStableDecayConfig(warmup=10, horizon=0, floor=0.0)
    assert schedule.last_update(64) == 96
    rates = [schedule.paced(step, 0.0, 1000, 64).rate(step, 1.0) for step in (64, 72, 96, 97)]
    assert rates == pytest.approx([1.0, 0.5, 0.0, 0.0])
    assert [schedule.paced(step, 0.0, 100).rate(step, 1.0) for step in (64, 80, 85, 100)] == [1.0, 1.0, 0.5, 0.0]
    # At 72 the minutes allow no more than 72 updates.
    assert schedule.paced(72, 1.0, 1000, 64).rate(72, 1.0) == 0.0
    assert WarmupStableDecayConfig(warmup=10, horizon=0, decay=5).last_update(64) == 69


def test_only_a_decay_without_a_horizon_of_its_own_waits_for_a_plateau() -> None:
    assert WarmupStableDecayConfig(horizon=0).last_update(0) is None  # there was none yet
    assert (WarmupStableDecayConfig().last_update(100), ConstantConfig().last_update(100)) == (None, None)


@pytest.mark.parametrize("schedule", [LinearConfig(), InverseSqrtConfig(), NoamConfig()])
def test_other_schedules_know_no_clock(schedule: SchedulerConfig) -> None:
    assert schedule.paced(100, 0.5, updates=300) is schedule


@pytest.mark.parametrize("config", ENDING)
def test_a_horizon_shorter_than_the_warm_up_is_refused(config: type[EndingConfig]) -> None:
    with pytest.raises(ConfigError, match=r"scheduler.horizon \(400\) must be longer than scheduler.warmup \(400\)"):
        config(warmup=400, horizon=400)
    with pytest.raises(ConfigError, match=r"scheduler.floor \(1.1\) must be from 0 to 1"):
        config(floor=1.1)


def test_a_decay_that_does_not_fit_is_refused() -> None:
    WarmupStableDecayConfig(warmup=400, horizon=1000, decay=600)
    with pytest.raises(ConfigError, match=r"warmup \(400\) and scheduler.decay \(601\) do not fit .*horizon \(1000\)"):
        WarmupStableDecayConfig(warmup=400, horizon=1000, decay=601)
    with pytest.raises(ConfigError, match=r"scheduler.decay \(-1\) must be 0"):
        WarmupStableDecayConfig(decay=-1)


def test_complaints() -> None:
    with pytest.raises(ConfigError, match=r"scheduler.warmup \(-1\)"):
        InverseSqrtConfig(warmup=-1)
    with pytest.raises(ConfigError, match=r"scheduler.lr_init \(0\)"):
        NoamConfig(lr_init=0)


@pytest.mark.parametrize("warmup", [1, 2, 5])
def test_a_settled_warm_up_takes_the_place_of_the_schedules(warmup: int) -> None:
    """Ten updates, of which a fifth is the decay: from step 9 on."""
    rate = LearningRate(WarmupStableDecayConfig(warmup=8, horizon=0, floor=0.0), 2.0, 10)
    rates = [rate.at(step, step / 10, warmup=warmup) for step in range(1, 11)]
    assert rates[: warmup + 1] == pytest.approx([2.0 * step / warmup for step in range(1, warmup + 1)] + [2.0])
    assert (rates[7], rates[9]) == (2.0, 0.0)
    assert rate.at(5, 0.5, warmup=0) == pytest.approx(2.0 * 5 / 8)
