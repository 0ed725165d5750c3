"""What a reader does not see changes nothing: the same for training text and input."""

import runpy
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows import each_row

from tolka.model_directory.settings import character_form
from tolka.text.characters import KEEP, CharacterForm
from tolka.text.cleaning.steps import CleaningConfig, apply_changes, changes_of
from tolka.text.direction import Direction
from tolka.text.pairs import Pair

STANDARD = CharacterForm("nfc", "strip", "space")


@each_row(
    ("text", "seen"),
    [
        *((f"a{blank}b", "a b") for blank in "\xa0\u2007\u2009\u202f\u205f\u3000"),
        *((f"a{end}b", "a b") for end in "\t\v\f\r\x1c\x1d\x1e\x1f\x85\u2028\u2029"),  # sacreBLEU: a blank for \r
        *((f"\ufeffa{unseen}b", "ab") for unseen in "\0\x07\x7f\xad\u200b\u2060\u2061\ufeff"),
        ("กา\u200bกา ກາ\u200bກາ ကာ\u200bကာ កា\u200bកា", "กา กา ກາ ກາ ကာ ကာ កា កា"),
        ("กา\u200b100\u200bกา", "กา 100 กา"),
        ("中\u200b文", "中文"),  # no blanks between words either, but no U+200B in their place
        ("\u200ea\u202ab\u202c \u2068{0}\u2069 \u061cc", "ab {0} c"),
        ("אמר \u200f(שלום)\u200e x", "אמר \u200f(שלום)\u200e x"),  # between neutral signs they decide the order
        ("می\u200cخواهم क्\u200dष 👨\u200d👩 ❤\ufe0f", "می\u200cخواهم क्\u200dष 👨\u200d👩 ❤\ufe0f"),  # all seen
        ("\x84nein\x93 5 \x80 \x96 l\x92\x8cuvre", "„nein“ 5 € – l’Œuvre"),  # WHATWG reads ISO-8859-1 so, too
        ("a\x81\x8d\x8f\x90\x9db", "ab"),  # not in Windows-1252
        ("e\u200b\u0301", "é"),  # composed once nothing stands between
        ("\u180eᠠ\u180eᠠ \ufffc \ufffd", "\u180eᠠ\u180eᠠ \ufffc \ufffd"),
    ],
)
def test_what_is_made_of_a_text(text: str, seen: str) -> None:
    assert STANDARD.source(text) == STANDARD.target(text) == seen
    assert KEEP.source(text) == text.strip()


def test_the_ends_of_lines_stay() -> None:
    assert STANDARD.source_lines("a\r\n\r\nb\xa0c\rd\n e") == "a\n\nb c d\n e"
    assert KEEP.source_lines("a\r\nb") == "a\r\nb"


@pytest.mark.parametrize(
    ("config", "source", "target"),
    [
        (CleaningConfig(), "a\xa0\x07b", "a\xa0\x07b"),
        (CleaningConfig(control="strip"), "a\xa0b", "a\xa0b"),
        (CleaningConfig(control="drop"), "a\xa0b", "a\xa0b"),  # training has no such pair, so that the model knows none
        (CleaningConfig(blanks="source"), "a \x07b", "a\xa0\x07b"),
        (CleaningConfig(blanks="space"), "a \x07b", "a \x07b"),
    ],
)
def test_each_setting_by_itself(config: CleaningConfig, source: str, target: str) -> None:
    assert config.characters.pair(Pair("a\xa0\x07b", "a\xa0\x07b")) == Pair(source, target)


MANY = st.text(
    st.sampled_from("şي’'oà,(好aé\u0301 กאمन\u200b\u200c\u200f\u2068\xa0\u3000\r\x1f\x85\x93\x81\xad\ufeff.")
)


@given(
    source=MANY,
    target=MANY,
    control=st.sampled_from(["keep", "strip"]),
    blanks=st.sampled_from(["keep", "space"]),
    codes=st.builds(Direction, *[st.sampled_from(["ro", "fa", "zh", "vi", "haw", "uz", "x"])] * 2),
)
def test_cleaning_makes_of_a_pair_what_is_made_of_input(
    source: str, target: str, control: str, blanks: str, codes: Direction
) -> None:
    config = CleaningConfig(unicode="nfc", control=control, blanks=blanks, typography="standard")
    form, cleaned = config.characters.of(codes), apply_changes(Pair(source, target), changes_of(config, codes))
    assert cleaned == form.pair(Pair(source, target)) == form.pair(cleaned)
    assert unicodedata.is_normalized("NFC", cleaned.source)


def test_a_model_says_which_characters_it_knows() -> None:
    assert character_form({}) == KEEP
    settings = {"unicode": "nfc", "control": "strip", "blanks": "source", "typography": "standard"}
    form = character_form({"cleaning": settings, "corpus": {"source": "ro", "target": "de"}})
    assert form == CharacterForm("nfc", "strip", "source", "standard", Direction("ro", "de"))
    assert form.pair(Pair("şi", "şi")) == Pair("și", "şi")


def test_the_table_in_the_docs_is_made_from_the_code() -> None:
    root = Path(__file__).resolve().parents[2]
    script = runpy.run_path(str(root / "scripts" / "write_character_table.py"))
    assert script["table"]() in (root / "docs" / "data.md").read_text(encoding="utf-8")
