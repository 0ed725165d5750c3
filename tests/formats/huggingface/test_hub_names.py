"""The names that models of OPUS-MT have on the Hub."""

import pytest

from tolka.formats.hub import opus_mt_name


@pytest.mark.parametrize(("source", "target"), [("en", "de"), ("EN", "de_AT"), ("en-GB", "de-Latn")])
def test_a_name_is_that_of_the_languages_without_their_variants(source: str, target: str) -> None:
    assert opus_mt_name(source, target) == "hub:Helsinki-NLP/opus-mt-en-de"
