"""One number in the ways that languages write it, and what one side of a pair lacks."""

from rows import each_row

from tolka.translation.numbers import Number, numbers_of, to_ascii_digits, unmatched_numbers


def only(text: str) -> Number:
    [number] = numbers_of(to_ascii_digits(text))
    return number


@each_row(
    ("one", "other", "equal"),
    [
        ("6,000 dollars", "6.000 Dollar", True),
        ("6 000", "6천", True),
        ("1.5 million", "150만", True),
        ("1,5 Millionen", "1.5 million", True),
        ("½", "0,5", True),
        ("٣", "3", True),
        ("6,000", "6,001", False),
        ("3 pm", "15 Uhr", True),
        ("1.50", "1.5", True),
    ],
)
def test_two_numbers_are_equal_if_they_share_a_reading(one: str, other: str, equal: bool) -> None:
    assert (not set(only(one).readings).isdisjoint(only(other).readings)) is equal


def test_a_date_has_parts() -> None:
    assert [part.readings[0] for part in numbers_of("3/14/2024")] == [3, 14, 2024]


@each_row(
    ("source", "target", "missing", "invented"),
    [
        ("It costs 6,000 dollars.", "Es kostet 9.000 Dollar.", ["6,000"], ["9.000"]),
        ("3/14/2024", "14.3.2024", [], []),
        ("3:30", "15:30", [], []),
        ("3/14/2024", "3/14/24", ["3/14/2024"], ["3/14/24"]),
        ("a scale of 1:10", "ein Maßstab von 1 zu 10", [], []),
        ("12 people", "zwölf Leute", [], []),
        ("March 3", "3월 3일", [], []),
        ("Elizabeth 2", "Elisabeth II", [], []),
        ("no number", "none either", [], []),
    ],
)
def test_what_one_side_lacks(source: str, target: str, missing: list[str], invented: list[str]) -> None:
    assert unmatched_numbers(source, target) == (missing, invented)
