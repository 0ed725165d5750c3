"""Texts that stop being parallel are found by their lengths."""

import numpy as np
import pytest
from rows import each_row

from tolka.text.check.misalignment import Lengths, correlation, find_shift


def parallel(pairs: int, seed: int = 1, noise: float = 0.25) -> tuple[Lengths, Lengths]:
    draw = np.random.default_rng(seed)
    source = np.exp(draw.normal(3.5, 0.6, pairs)).round()
    return source, (1.2 * source * np.exp(draw.normal(0, noise, pairs))).round()


@each_row("lines", [1, -1, 3])
@each_row("first", [1000, 2345])
def test_a_shift_is_found_with_its_line_and_its_distance(lines: int, first: int) -> None:
    source, target = parallel(5000)
    if lines > 0:  # so many lines too many in the target
        target = np.concatenate([target[:first], parallel(lines, seed=2)[1], target[first:]])
    else:
        target = np.delete(target, slice(first, first - lines))
    count = min(len(source), len(target))
    found = find_shift(source[:count], target[:count])
    assert found is not None
    assert found.lines == lines
    assert abs(found.first - (first + 1)) <= 3
    assert found.last == count
    assert found.correlation[0] > 0.8
    assert found.correlation[1] < 0.2


def test_a_stretch_of_other_text_is_no_shift() -> None:
    source, target = parallel(5000)
    target[2000:3000] = parallel(1000, seed=3)[1]
    found = find_shift(source, target)
    assert found is not None
    assert (found.first, found.last, found.lines) == (2001, 3000, 0)


@pytest.mark.parametrize("pairs", [0, 5, 399, 3000])
def test_parallel_text_has_none(pairs: int) -> None:
    assert find_shift(*parallel(pairs, noise=0.3)) is None


def test_texts_of_which_nothing_is_parallel_are_no_case_for_it() -> None:
    assert find_shift(parallel(3000)[0], parallel(3000, seed=4)[1]) is None


def test_lengths_that_do_not_vary() -> None:
    assert correlation(np.ones(5), np.arange(5.0)) == 0.0
    assert find_shift(np.ones(1000), np.ones(1000)) is None
