"""Language codes, and what is typed in their place."""

import pytest

from tolka.errors import ConfigError
from tolka.text.scripts import check_code, code_named


@pytest.mark.parametrize("code", ["de", "eng", "en-GB", "zh_Hans", "eng_Latn", "xa", "xb", "x-mine", "qaa-x-a", "no"])
def test_codes(code: str) -> None:
    check_code("corpus.source", code)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("english", "en"),
        ("Korean", "ko"),
        ("germann", "de"),
        ("Greek", "el"),
        ("mandarin", "cmn"),
        ("haitian_creole", "ht"),
        ("Thai", "th"),
        ("jp", "ja"),
        ("cn", "zh"),
        ("cz", "cs"),
        ("phoneme", ""),
        ("en_US.UTF-8", ""),
        ("source", ""),
    ],
)
def test_names_of_languages_and_countries_are_no_codes(typed: str, meant: str) -> None:
    assert code_named(typed) == meant
    with pytest.raises(ConfigError, match=rf"k \('{typed}'\) is no language code.*{meant}"):
        check_code("k", typed)
