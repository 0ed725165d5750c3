"""The length penalty of Wu et al. (2016, equation 14), plain normalisation and none, by hand."""

import math

import pytest
import torch
from rows import each_row

from tolka.search.length_penalty import NORMALIZATIONS, length_penalty
from tolka.search.options import BeamConfig


@each_row(
    ("length", "normalization", "exponent", "expected"),
    [
        (1, "gnmt", 0.6, 1.0),  # (5 + 1) / 6
        (7, "gnmt", 1.0, 2.0),  # (5 + 7) / 6
        (13, "gnmt", 2.0, 9.0),
        (19, "gnmt", 0.5, 2.0),  # the root of (5 + 19) / 6
        (7, "gnmt", 0.0, 1.0),
        (1, "plain", 0.6, 1.0),
        (7, "plain", 1.0, 7.0),
        (9, "plain", 0.5, 3.0),
        (3, "plain", 2.0, 9.0),
        (9, "plain", 0.0, 1.0),
        (9, "none", 2.0, 1.0),
    ],
)
def test_by_hand(length: int, normalization: str, exponent: float, expected: float) -> None:
    assert length_penalty(float(length), normalization, exponent) == pytest.approx(expected, rel=1e-12)
    lengths = torch.tensor([length, length], dtype=torch.float64)
    assert length_penalty(lengths, normalization, exponent).tolist() == pytest.approx([expected] * 2, rel=1e-12)


@each_row("normalization", NORMALIZATIONS)
def test_it_never_falls_as_the_length_grows(normalization: str) -> None:
    """So that an active hypothesis can be bounded by the penalty of the longest translation."""
    penalties = length_penalty(torch.arange(1.0, 200.0), normalization, 0.7)
    assert bool((penalties.diff() >= 0).all())


def test_the_same_two_hypotheses_change_places() -> None:
    """p = 1/4 in 1 token, p = 1/8 in 2: -2 ln 2 against -3 ln 2, divided by 1 and 7/6 or by 1 and 2."""
    short, long = 2 * math.log(0.5), 3 * math.log(0.5)

    def prefers_long(**options: object) -> bool:
        config = BeamConfig(**options)  # type: ignore[arg-type]
        return long / config.penalty(2.0) > short / config.penalty(1.0)

    assert not prefers_long(length_normalization="none")
    assert not prefers_long()  # gnmt, exponent 1
    assert not prefers_long(length_penalty=2.6)  # (7/6) ** 2.6 < 3/2
    assert prefers_long(length_penalty=2.7)  # log(3/2) / log(7/6) = 2.63
    assert prefers_long(length_normalization="plain")
