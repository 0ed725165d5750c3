"""Capitals as languages have them; the expected ones are those of Unicode's SpecialCasing.txt and CLDR."""

from rows import each_row

from tolka.text.casing import capitalized, folded, upper


@each_row(
    ("code", "text", "expected"),
    [
        ("tr", "istanbul'da güzel bir gün, ışık", "İSTANBUL'DA GÜZEL BİR GÜN, IŞIK"),
        ("tr", "i̇zmir", "İZMİR"),
        ("az", "bir", "BİR"),
        ("tur_Latn", "iki", "İKİ"),
        ("en", "it is", "IT IS"),
        ("", "it is", "IT IS"),
        ("el", "ὀδυσσεύς ἦλθεν", "ΟΔΥΣΣΕΥΣ ΗΛΘΕΝ"),
        ("el", "μάιος, προϊόν, άυλος", "ΜΑΪΟΣ, ΠΡΟΪΟΝ, ΑΫΛΟΣ"),
        ("el", "ναι ή όχι, ήλιος", "ΝΑΙ Ή ΟΧΙ, ΗΛΙΟΣ"),
        ("el", "café", "CAFÉ"),
        ("ka", "გამარჯობა tom", "გამარჯობა TOM"),
        ("de", "straße", "STRASSE"),
    ],
)
def test_capitals(code: str, text: str, expected: str) -> None:
    assert upper(text, code) == expected


@each_row(
    ("code", "text", "expected"),
    [
        ("tr", "izmir", "İzmir"),
        ("tr", "ışık", "Işık"),
        ("nl", "ik", "Ik"),
        ("nl", "ijsland", "IJsland"),
        ("nl", "ik", "Ik"),
        ("en", "ijsland", "Ijsland"),
        ("ka", "ქალაქი", "ქალაქი"),
        ("hr", "ǆep", "ǅep"),
        ("", "", ""),
    ],
)
def test_the_first_letter(code: str, text: str, expected: str) -> None:
    assert capitalized(text, code) == expected


def test_texts_that_differ_in_case_alone() -> None:
    for code, one, other in (
        ("tr", "ISPARTA", "ısparta"),
        ("tr", "İstanbul", "istanbul"),
        ("en", "İstanbul", "istanbul"),
        ("en", "IT", "it"),
        ("el", "ΟΔΟΣ", "οδος"),
        ("de", "STRASSE", "Straße"),
    ):
        assert folded(one, code) == folded(other, code), one
    assert folded("KIR", "tr") != folded("kir", "tr")
