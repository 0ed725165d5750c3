"""Numbers out of all measure are short for people and legal in JSON."""

import json
import math
from typing import Any

import pytest
from rows import each_row

from tolka.evaluation.perplexity import Perplexity
from tolka.system.number_format import json_text, number_text


@each_row(
    ("value", "text"),
    [
        (1.0, "1.00"),
        (12.345, "12.35"),
        (999999.0, "999999.00"),
        (1e6, "1.0e6"),
        (14403115356287.63, "1.4e13"),
        (1e304, "1.0e304"),
        (math.inf, "over 1e304"),
        (None, "over 1e304"),
    ],
)
def test_perplexities_for_people(value: float | None, text: str) -> None:
    assert number_text(value) == text


def refused(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def test_what_json_cannot_say_is_null() -> None:
    value: dict[str, Any] = {"a": [1.5, math.inf, (-math.inf, "x")], "b": {"c": math.nan}, "d": None, "e": True, "f": 2}
    read = json.loads(json_text(value), parse_constant=refused)
    assert read == {"a": [1.5, None, [None, "x"]], "b": {"c": None}, "d": None, "e": True, "f": 2}


def test_a_perplexity_that_is_infinite_has_its_nll_beside_it() -> None:
    """Two "words" of a language without blanks: 750 nats each, while a float ends at 709."""
    measured = Perplexity(nll=1500.0, tokens=300, words=2, characters=400, pairs=2, skipped=0)
    assert measured.per_word == math.inf
    read = json.loads(json_text(measured.as_dict()), parse_constant=refused)
    assert (read["ppl_word"], read["nll"], read["words"]) == (None, 1500.0, 2)
    assert read["ppl"] == pytest.approx(math.exp(5))
