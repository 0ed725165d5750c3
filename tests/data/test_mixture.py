"""Several texts in one epoch: as often as weights and temperature say."""

import numpy as np
import pytest

from tolka.data.buckets import BatchingConfig, make_batches
from tolka.data.mixture import Mixture
from tolka.errors import DataError

RNG = np.random.default_rng


def test_without_settings_every_row_comes_once() -> None:
    mixture = Mixture.of([3, 4])
    assert mixture.draws == (3, 4)
    assert sorted(mixture.draw(RNG(1)).tolist()) == list(range(7))


def test_weights_are_shares_of_an_epoch_as_long_as_before() -> None:
    mixture = Mixture.of([1000, 200], weights=[1, 3])
    assert mixture.draws == (300, 900)
    drawn = mixture.draw(RNG(1))
    often = np.bincount(drawn[drawn >= 1000] - 1000, minlength=200)
    assert (often.min(), often.max(), often.sum()) == (
        4,
        5,
        900,
    )  # four times, half of it once more
    large = drawn[drawn < 1000]
    assert len(set(large.tolist())) == 300


def test_a_weight_of_zero_leaves_a_text_out() -> None:
    assert Mixture.of([10, 10], weights=[0, 1]).draws == (0, 20)


def test_temperature_by_hand() -> None:
    # 100 ** 0.5 = 10 and 10000 ** 0.5 = 100: one part in eleven of 10100 pairs.
    assert Mixture.of([100, 10_000], temperature=2).draws == (918, 9182)
    assert Mixture.of([100, 10_000], temperature=1).draws == (100, 10_000)


def test_nothing_left_of_what_has_a_weight() -> None:
    with pytest.raises(DataError, match=r"corpus.weights would draw from no pair is left"):
        Mixture.of([0, 5], weights=[1, 0])


def test_a_text_of_which_nothing_is_left_is_no_obstacle() -> None:
    assert Mixture.of([0, 5], weights=[1, 1]).draws == (0, 5)
    assert sorted(Mixture.of([0, 5], temperature=3).draw(RNG(0)).tolist()) == [0, 1, 2, 3, 4]


def test_batches_follow_the_mixture() -> None:
    lengths = np.full(30, 4, np.int32)
    mixture = Mixture.of([10, 20], weights=[1, 1])
    config = BatchingConfig(tokens=50, max_length=20)
    rows = np.concatenate(make_batches(lengths, lengths, config, 1, 0, mixture))
    assert (rows < 10).sum() == 15
    again = np.concatenate(make_batches(lengths, lengths, config, 1, 0, mixture))
    assert rows.tolist() == again.tolist()


@pytest.mark.parametrize("weights", [[1e-9, 1]])
def test_no_text_with_a_weight_is_left_out_altogether(weights: list[float]) -> None:
    assert Mixture.of([10, 20], weights=weights).draws == (1, 30)
