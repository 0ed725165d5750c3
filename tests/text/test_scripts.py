"""Language codes and what is typed in their place, and which script a text is in."""

import pytest
from rows import each_row

from tolka.errors import ConfigError
from tolka.text.scripts import check_code, code_named, is_in_other_script, is_right_to_left, language_tag


@each_row(
    ("text", "language", "other", "expected"),
    [
        ("나는 당신을 사랑합니다.", "en", "ko", True),
        ("LG의 가전", "ko", "en", False),  # a name
        ("KBS의 LG 가전", "ko", "en", True),
        ("USB 가전은", "ko", "", False),
        ("The washing machine 가전은", "ko", "", True),
        ("Это", "ko", "en", False),  # neither
        ("Это", "ko", "", True),
        ("我喝茶", "ja", "zh", False),  # Japanese has these letters as well
        ("123 !?", "en", "ko", False),
        ("", "en", "", False),
        ("ferry", "xa", "ko", False),
        ("나는", "en", "xa", False),
    ],
)
def test_a_text_has_more_letters_of_the_other_script(text: str, language: str, other: str, expected: bool) -> None:
    assert is_in_other_script(text, language, other) == expected


@each_row("code", ["de", "eng", "en-GB", "zh_Hans", "eng_Latn", "xa", "xb", "x-mine", "qaa-x-a", "no"])
def test_codes(code: str) -> None:
    check_code("corpus.source", code)


@each_row(
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
    with pytest.raises(ConfigError, match=rf"k \('{typed}'\) is not a language code.*{meant}"):
        check_code("k", typed)


@each_row(
    ("code", "tag"),
    [("deu_Latn", "de"), ("zho_Hant", "zh-Hant"), ("en_XX", "en"), ("pt-BR", "pt-BR"), ("x-mine", "x-mine"), ("", "")],
)
def test_codes_of_other_programs_are_written_as_documents_have_them(code: str, tag: str) -> None:
    assert language_tag(code) == tag


def test_which_languages_are_written_from_right_to_left() -> None:
    assert [
        code for code in ("ar", "he", "fa_IR", "ckb", "arb_Arab", "tr", "ko", "und", "") if is_right_to_left(code)
    ] == [*("ar", "he", "fa_IR", "ckb", "arb_Arab")]
