"""Names from outside, as messages show them: nothing in them can change what a terminal shows."""

import io
import os
import sys

import pytest
from rows import each_row

from tolka.errors import DataError
from tolka.system import interrupts
from tolka.system.progress import say
from tolka.system.surrogates import is_utf8, printable


@each_row(
    ("name", "shown"),
    [
        ("a\x1b[2Jb", r"a\x1b[2Jb"),
        ("a\rb", r"a\rb"),
        ("a\nb", r"a\nb"),
        ("txt.\u202eexe", r"txt.\u202eexe"),  # RIGHT-TO-LEFT OVERRIDE
        ("\u2066a\u2069", r"\u2066a\u2069"),  # isolates
        ("a\u200bb\ufeff", r"a\u200bb\ufeff"),
        ("\x9b31m", r"\x9b31m"),  # CSI as one character
        ("a\u2028b\x85", r"a\u2028b\x85"),
        ("\U000e0041", r"\U000e0041"),  # a tag character, which nobody sees
        (os.fsdecode(b"caf\xe9"), r"caf\udce9"),
    ],
)
def test_what_is_escaped(name: str, shown: str) -> None:
    assert printable(name) == shown


@each_row("name", ["Größe 말뭉치 \u3000\u00a0", "می\u200cخواهم", "क्\u200dष", "👩\u200d💻", "e\u0301", r"a\b"])
def test_ordinary_text_stays(name: str) -> None:
    assert (printable(name), is_utf8(name)) == (name, True)


def test_every_message(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    say("note: a\x1b[2J\u202e\nnext\tline")
    interrupts.print_last_line("error: b\r\x1b]0;title\x07")
    assert stderr.getvalue() == "note: a\\x1b[2J\\u202e\nnext\tline\nerror: b\\r\\x1b]0;title\\x07\n"


def test_an_error_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    from guarded_command import guarded

    def fails(arguments: object) -> int:
        raise DataError("a\x1bb\nc\x85d: there is no such file")

    assert guarded(fails, []) == 1
    assert capsys.readouterr().err == "error: a\\x1bb c\\x85d: there is no such file\n"
