"""Schedules whose defaults do not fit into a short training shrink; what was typed does not."""

import itertools
from typing import Any

import pytest

from tolka.config.dependent_settings import fit_schedule
from tolka.optim.schedules.base import SCHEDULERS

LINEAR = {"name": "linear", "warmup": 400, "horizon": 20000, "floor": 0.01}


def test_what_shrinks() -> None:
    cases: list[tuple[dict[str, Any], Any, list[str], dict[str, int]]] = [
        ({"warmup": 400}, 5, [], {"warmup": 0}),
        ({"warmup": 400}, 300, [], {"warmup": 30}),
        ({"warmup": 400}, 799, [], {"warmup": 79}),
        ({"warmup": 400}, 800, [], {}),
        ({"warmup": 400}, 300, ["warmup"], {}),
        (LINEAR, 20000, [], {}),
        (LINEAR, 30000, [], {}),
        (LINEAR, 1000, [], {"horizon": 1000}),
        (LINEAR, 300, [], {"horizon": 300, "warmup": 30}),
        (LINEAR, 300, ["horizon"], {"warmup": 30}),
        ({**LINEAR, "horizon": 300}, 20000, ["horizon"], {"warmup": 30}),
        ({**LINEAR, "horizon": 0}, 20000, ["horizon"], {}),
        ({"warmup": "many"}, 300, [], {}),
        ({"warmup": 400}, "many", [], {}),
    ]
    for scheduler, updates, typed, changed in cases:
        assert fit_schedule(scheduler, updates, typed) == changed


def test_noam_keeps_its_peak() -> None:
    """0.0625 / sqrt(4000) is 0.00099; a warm-up of 30 alone would make it 0.0114."""
    noam = {"name": "noam", "warmup": 4000, "lr_init": 0.0625}
    fitted = {**noam, **fit_schedule(noam, 300, [])}
    assert fitted["warmup"] == 30
    assert SCHEDULERS.get("noam")(**fitted).rate(30, 0.0) == pytest.approx(0.00099, rel=0.01)
    assert fit_schedule(noam, 300, ["lr_init"]) == {}


def test_every_schedule_is_valid_in_a_training_of_any_length() -> None:
    for name, updates in itertools.product(SCHEDULERS.names(), (1, 2, 9, 10, 11, 399, 400, 401)):
        config = SCHEDULERS.get(name)
        fitted = {**vars(config()), **fit_schedule(vars(config()), updates, [])}
        assert config(**fitted).rate(updates, 1.0) > 0, (name, updates)
