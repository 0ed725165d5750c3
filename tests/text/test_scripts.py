"""Which script a text is in, as three notes on exchanged or wrong files judge it."""

import pytest

from tolka.text.scripts import is_in_other_script


@pytest.mark.parametrize(
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
