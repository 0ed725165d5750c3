"""Windows of lines: full ones, or what is there."""

from collections.abc import Callable, Iterator
from threading import Event

import pytest

from tolka.errors import DataError
from tolka.text.windows import arriving_windows, full_windows


def test_windows_are_full_but_for_the_last() -> None:
    assert list(full_windows("abcde", 2)) == [["a", "b"], ["c", "d"], ["e"]]


@pytest.mark.parametrize("windows", [full_windows, arriving_windows])
def test_an_error_comes_after_the_lines_before_it(windows: Callable[..., Iterator[list[str]]]) -> None:
    def lines() -> Iterator[str]:
        yield from ("a", "b", "c")
        raise DataError("stdin:4: not UTF-8")

    before = windows(lines(), 2)
    assert next(before) + next(before) == ["a", "b", "c"]
    with pytest.raises(DataError, match="stdin:4"):
        next(before)


def test_all_lines_arrive_in_order_and_never_more_than_a_window() -> None:
    lines = [str(number) for number in range(1000)]
    windows = list(arriving_windows(lines, 7))
    assert [line for window in windows for line in window] == lines
    assert max(map(len, windows)) == 7


def test_a_line_comes_before_the_next_one_is_written() -> None:
    answered = Event()

    def conversation() -> Iterator[str]:
        yield "question"
        assert answered.wait(60)
        yield "the next question"

    windows = arriving_windows(conversation(), 2000)
    assert next(windows) == ["question"]
    answered.set()
    assert list(windows) == [["the next question"]]
