"""Sides that were exchanged, or named twice, are found in a sample, by letters or by py3langid."""

from pathlib import Path

import pytest
from rows import each_row

from tolka.text.check.sides import fault_of_sides, spread_sample, varieties
from tolka.text.cleaning.steps import CleaningConfig, steps_of
from tolka.text.corpora.files import FilesConfig
from tolka.text.direction import Direction
from tolka.text.pairs import Pair, ParallelFiles

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
        (("en", "ko"), KOREAN, ENGLISH, "the target en in 30; exchange corpus.source and"),
        (("en", "ru"), RUSSIAN, ENGLISH, "the target en in 30; exchange corpus.source and"),
        (("eng", "rus"), RUSSIAN, ENGLISH, "the target eng in 30; exchange corpus.source and"),
        (("en", "ko"), KOREAN, KOREAN, "both sides are the same text in 30 of 30"),
        (("en", "ko"), KOREAN[::-1], KOREAN, "both sides are ko: so is the source in "),
        (("en", "ko"), ENGLISH, ENGLISH[::-1], "both sides are en: so is the target in "),
        (("xa", "xb"), KOREAN, ENGLISH, ""),
        (("en", "ko"), ["1 2", "3.5", "-"], ["1 2", "3.6", "_"], "both sides are the same text in 10 of 30"),
    ],
)
def test_by_letters(direction: Direction, source: list[str], target: list[str], expected: str) -> None:
    fault = fault_of_sides(pairs(source, target), direction)
    if "10 of 30" in expected:
        assert fault == ""
    else:
        assert fault.startswith("the sides are swapped") == ("exchange corpus" in expected)
        assert expected in fault
        assert bool(fault) == bool(expected)


@each_row(
    ("direction", "source", "target", "expected"),
    [
        (("en", "de"), ENGLISH, GERMAN, ""),
        (("en", "de"), GERMAN, ENGLISH, "; exchange corpus.source and"),
        (("de-AT", "en"), ENGLISH, GERMAN, "; exchange corpus.source and"),
        (("en", "de"), GERMAN, [ENGLISH[0], "Yes.", "No."], "; exchange corpus.source and"),
        (("en", "de"), GERMAN, GERMAN[::-1], "both sides are de: so is the source in "),
        (("nb", "nn"), ENGLISH, GERMAN, ""),
    ],
)
def test_by_langid(direction: Direction, source: list[str], target: list[str], expected: str) -> None:
    pytest.importorskip("py3langid")
    fault = fault_of_sides(pairs(source, target), direction)
    assert expected in fault
    assert bool(fault) == bool(expected)


def test_a_minority_is_no_fault() -> None:
    assert fault_of_sides(pairs(ENGLISH, KOREAN) + pairs(KOREAN, ENGLISH)[:29], Direction("en", "ko")) == ""


SIMPLIFIED, TRADITIONAL, EITHER = "\u4ed6\u79bb\u5f00\u4e86", "\u4ed6\u96e2\u958b\u4e86", "\u4eca\u5929\u4e0b\u96e8"


@each_row(
    ("target", "lines", "said"),
    [
        (
            "zh",
            [SIMPLIFIED, SIMPLIFIED, EITHER, TRADITIONAL],
            "1 of 4 targets looked at are in Traditional",
        ),
        ("zh", [SIMPLIFIED, TRADITIONAL, TRADITIONAL], "corpus.target=zh-Hant cleaning.script=true leaves these out"),
        (
            "zho_Hans",
            [SIMPLIFIED, TRADITIONAL, TRADITIONAL],
            "in Simplified ones; cleaning.script=true",
        ),
        ("zh-TW", [SIMPLIFIED], "1 of 1 target looked at are in Simplified characters, 0 in Traditional ones"),
        ("zh", [TRADITIONAL, EITHER], ""),
        ("zh", [SIMPLIFIED, EITHER], ""),
        ("zh-HK", [TRADITIONAL, EITHER], ""),
        ("ja", [SIMPLIFIED, TRADITIONAL], ""),
    ],
)
def test_traditional_and_simplified_characters_are_told_apart(
    tmp_path: Path, target: str, lines: list[str], said: str
) -> None:
    for code, texts in (("en", ["a"] * len(lines)), ("zh", lines)):
        (tmp_path / f"t.{code}").write_text("".join(f"{line}\n" for line in texts), encoding="utf-8")
    source = ParallelFiles(tmp_path / "t.en", tmp_path / "t.zh", "t")
    source.direction = Direction("en", target)
    notes = list(varieties(source, list(spread_sample(source))))
    assert len(notes) == bool(said)
    assert said in "".join(notes)


def test_the_advice_leaves_out_what_it_says(tmp_path: Path) -> None:
    """The files keep their names, and the step of the cleaning drops the other script."""
    for code, texts in (("en", ["a", "b", "c"]), ("zh", [SIMPLIFIED, TRADITIONAL, EITHER])):
        (tmp_path / f"t.{code}").write_text("".join(f"{line}\n" for line in texts), encoding="utf-8")
    (source,) = FilesConfig(source="en", target="zh-Hans", root=str(tmp_path), train=["t"], valid=["t"]).open().train
    (step,) = [step for _, step in steps_of(CleaningConfig(script=True, max_characters=0), source.direction)][-1:]
    assert [pair.target for pair in source.read() if isinstance(step(pair), Pair)] == [SIMPLIFIED, EITHER]
    assert not [*varieties(source, list(source.read()), drops_scripts=True)]
