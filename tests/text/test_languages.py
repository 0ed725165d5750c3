"""Which of several languages a text is in."""

import pytest
from rows import each_row

from tolka.text.languages import code_of_text

CODES = ["deu_Latn", "eng_Latn", "kor_Hang", "rus_Cyrl", "ukr_Cyrl", "zho_Hans"]


def test_letters_of_one_code_alone_decide() -> None:
    assert code_of_text(["나는 당신을", "사랑합니다 (OK)"], CODES) == "kor_Hang"
    assert code_of_text(["안녕"], ["eng_Latn", "kor_Hang"]) == "kor_Hang"


def test_of_several_codes_the_likeliest_is_taken_where_it_is_beyond_doubt() -> None:
    pytest.importorskip("py3langid")
    assert code_of_text(["Der Hund schläft unter dem alten Baum, und niemand stört ihn."], CODES) == "deu_Latn"
    assert code_of_text(["Собака спит под старым деревом, и никто ему не мешает."], CODES) == "rus_Cyrl"


@each_row("texts", [[], [""], ["1234 ..."], ["ok"], ["Χαίρετε, τι κάνετε σήμερα;"]])
def test_nobody_can_say(texts: list[str]) -> None:
    assert code_of_text(texts, CODES) == ""
