"""Sides that were exchanged, or named twice, are found in a sample, by letters or by py3langid."""

from pathlib import Path

import pytest
from rows import each_row

from tolka.text.check.sides import fault_of_sides
from tolka.text.corpora.files import FilesConfig
from tolka.text.direction import Direction
from tolka.text.pairs import Pair

ENGLISH = [
    "The cat sleeps under the old table.",
    "We will meet again in the evening.",
    "He reads a book.",
]
KOREAN = ["고양이가 낡은 탁자 밑에서 잔다.", "저녁에 다시 만나기를 바랍니다.", "그는 그것에 관한 책을 읽는다."]
GERMAN = [
    "Die Katze schläft unter dem alten Tisch.",
    "Wir sehen uns am Abend wieder.",
    "Er liest ein gutes Buch.",
]
RUSSIAN = ["Кошка спит под старым столом.", "Надеюсь, мы увидимся вечером.", "Он читает книгу об этом."]


def pairs(source: list[str], target: list[str]) -> list[Pair]:
    return [Pair(*texts) for texts in zip(source, target, strict=True)] * 10


@each_row(
    ("direction", "source", "target", "expected"),
    [
        (("en", "ko"), ENGLISH, KOREAN, ""),
        (("en", "ko"), KOREAN, ENGLISH, "the target en in 30; exchange them"),
        (("en", "ru"), RUSSIAN, ENGLISH, "the target en in 30; exchange them"),
        (("eng", "rus"), RUSSIAN, ENGLISH, "the target eng in 30; exchange them"),
        (("en", "ko"), KOREAN, KOREAN, "both sides are the same text in 30 of 30"),
        (("en", "ko"), KOREAN[::-1], KOREAN, "both sides are ko: so is the source in "),
        (("en", "ko"), ENGLISH, ENGLISH[::-1], "both sides are en: so is the target in "),
        (("xa", "xb"), KOREAN, ENGLISH, ""),
        (("en", "ko"), ["1 2", "3.5", "-"], ["1 2", "3.6", "_"], "both sides are the same text in 10 of 30"),
    ],
)
def test_by_letters(direction: Direction, source: list[str], target: list[str], expected: str) -> None:
    fault = fault_of_sides(pairs(source, target), direction, "exchange them")
    if "10 of 30" in expected:
        assert fault == ""
    else:
        assert fault.startswith("the sides are swapped") == ("exchange them" in expected)
        assert expected in fault
        assert bool(fault) == bool(expected)


@pytest.mark.parametrize(
    ("direction", "source", "target", "expected"),
    [
        (("en", "de"), ENGLISH, GERMAN, ""),
        (("en", "de"), GERMAN, ENGLISH, "; exchange them"),
        (("de-AT", "en"), ENGLISH, GERMAN, "; exchange them"),
        (("en", "de"), GERMAN, [ENGLISH[0], "Yes.", "No."], "; exchange them"),
        (("en", "de"), GERMAN, GERMAN[::-1], "both sides are de: so is the source in "),
        (("nb", "nn"), ENGLISH, GERMAN, ""),
    ],
)
def test_by_langid(direction: Direction, source: list[str], target: list[str], expected: str) -> None:
    pytest.importorskip("py3langid")
    fault = fault_of_sides(pairs(source, target), direction, "exchange them")
    assert expected in fault
    assert bool(fault) == bool(expected)


def test_a_minority_is_no_fault() -> None:
    assert fault_of_sides(pairs(ENGLISH, KOREAN) + pairs(KOREAN, ENGLISH)[:29], Direction("en", "ko"), "") == ""


GETTEXT = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "a"\nmsgstr "b"\n'


OR_CODES = ", or exchange corpus.source and corpus.target"


@pytest.mark.parametrize(
    ("train", "columns", "advice"),
    [
        ("{}/p", [], "exchange the names of {0}/p.en and {0}/p.de, or type 'corpus.train=[[{0}/p.de,{0}/p.en]]'"),
        (["{}/p.en", "{}/p.de"], [], "type 'corpus.train=[[{0}/p.de,{0}/p.en]]'" + OR_CODES),
        (["{}/t.txt", "1", "2"], [], "type 'corpus.train=[[{0}/t.txt,2,1]]'" + OR_CODES),
        ("{}/t.tsv", [], "type 'corpus.columns=[de,en]'"),
        ("{}/t.tsv", ["1", "2"], "type 'corpus.columns=[2,1]'" + OR_CODES),
        ("{}/t.po", [], "exchange corpus.source and corpus.target"),
        ("{}/t.tmx", [], "its sides are named after the languages: exchange these names"),
    ],
)
def test_the_advice_exchanges_what_names_the_sides(
    tmp_path: Path, train: str | list[str], columns: list[str], advice: str
) -> None:
    for name in ("p.en", "p.de", "t.txt", "t.tsv", "t.po", "t.tmx"):
        (tmp_path / name).write_text(GETTEXT)
    entry = train.format(tmp_path) if isinstance(train, str) else [each.format(tmp_path) for each in train]
    corpus = FilesConfig(source="en", target="de", train=[entry], valid=["auto"], columns=columns).open()
    assert corpus.train[0].exchange == advice.format(tmp_path)
