"""Two spellings of one text: what is made of the other one, and that the usual one stays as it is."""

import pytest
from rows import each_row

from tolka.text.typography import own_spellings, spellings, standard

USUAL = [
    ("ro", "Ştiinţa şi ŢARA", "Știința și ȚARA"),
    ("fa", "علي كتاب ٤", "علی کتاب ۴"),
    ("pes_Arab", "كتاب", "کتاب"),
    ("ur", "يه كتاب هے", "یہ کتاب ہے"),
    ("ar", "کتاب فی البیت", "كتاب فی البيت"),  # at a word's end nobody can tell
    ("ckb", "ئه\u200cم كوردي", "ئەم کوردی"),
    ("az", "Әhmәd gözәl әл", "Əhməd gözəl әл"),
    ("uk", "п’ять iнший Київ, м`який", "п'ять інший Київ, м'який"),
    ("ru", "Mосква и рaбота, iPhone, TCP", "Москва и работа, iPhone, TCP"),
    ("fr", "l’homme a dit ‘a’", "l'homme a dit ‘a’"),
    ("oc", "l’òme", "l'òme"),
    ("ca", "coŀlegi", "col·legi"),
    ("nl", "ĳsland", "ijsland"),
    ("haw", "Hawai'i, ka 'āina o ‘Oahu", "Hawaiʻi, ka ʻāina o ʻOahu"),
    ("haw", "'aloha' ka", "'aloha' ka"),  # a quotation
    ("uz", "o'zbek g‘oya san'at", "oʻzbek gʻoya sanʼat"),
    ("yi", "װאָס ייִדיש", "וואָס ייִדיש"),
    ("he", "צה״ל", 'צה"ל'),
    ("vi", "hoà bình, uỷ ban, Thuý, KHOẺ, quý, hoàn", "hòa bình, ủy ban, Thúy, KHỎE, quý, hoàn"),
    ("zh", '他说:"你好,李明!" 我有2.5个(大的).', "他说：“你好，李明！” 我有2.5个（大的）。"),
    ("zh", "在10:30, a,b 3.5 ＡＢＣ１ http://x.y/a,b", "在10:30, a,b 3.5 ABC1 http://x.y/a,b"),
    ("zho_Hans", "你好.", "你好。"),
    ("ja", "はい,そうです. ｱｲｳ", "はい、そうです。アイウ"),
    ("de", "er sagt „ja“, ’s ist so", "er sagt „ja“, ’s ist so"),
    ("tr", "şimdi", "şimdi"),
    ("", "şimdi ي l’a", "şimdi ي l’a"),
    ("x-mine", "şimdi", "şimdi"),
]


@each_row(("code", "text", "expected"), USUAL)
def test_the_usual_spelling_of_a_language(code: str, text: str, expected: str) -> None:
    assert standard(text, code) == expected
    assert standard(expected, code) == expected


def test_a_spelling_is_other_usual_or_neither() -> None:
    (cedilla,) = own_spellings("ro")
    assert [cedilla.is_other(text) for text in ("şi", "și", "şi și", "da")] == [True, False, True, None]
    assert own_spellings("de") == own_spellings("") == own_spellings("und") == ()
    assert {each.name for each in own_spellings("ru")} < {each.name for each in spellings("ru")}
    assert "ё for е" in {each.name for each in spellings("ru")} - {each.name for each in spellings("uk")}
    # Of an unknown language all may be meant.
    assert {"ş, ţ for ș, ț", "ي, ك for ی, ک", "hoà for hòa"} < {each.name for each in spellings("")}


@pytest.mark.parametrize("code", ["", "ro", "zh", "vi", "de"])
def test_no_text_is_lost(code: str) -> None:
    for text in ("", " ", "a", "(好", '"好', "''", "\u0301", "!" * 50, "好,"):
        for spelling in spellings(code):
            assert isinstance(spelling.rewrite(text), str)
            assert spelling.rewrite(spelling.rewrite(text)) == spelling.rewrite(text), (spelling.name, text)
