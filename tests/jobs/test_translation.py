"""Jobs: documents of a format of one's own, and who calls whom."""

import sys
from collections import Counter
from inspect import CO_GENERATOR
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import tolka
from conftest import Command
from test_layers import RANKS

QUICK = ["search.max_length_factor=0", "search.max_length_extra=4"]  # whatever an untrained model says

CHAPTERS = """
import re
from collections.abc import Iterator

from tolka.documents.base import DOCUMENTS
from tolka.documents.spliced import SplicedDocument
from tolka.documents.text import Text


@DOCUMENTS.register("chapters")
class Chapters(SplicedDocument):
    endings = (".chapters",)

    def find(self, content: str) -> Iterator[Text]:
        for match in re.finditer("^[^#].*$", content, re.MULTILINE):
            yield Text([match[0]], *match.span(), match[0])
"""


def test_a_document_format_is_one_new_file(
    command: Command, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "chapter_files.py").write_text(CHAPTERS)
    monkeypatch.syspath_prepend(str(tmp_path))
    one, two, empty = (tmp_path / f"{name}.chapters" for name in ("one", "two", "empty"))
    one.write_text("# 1\nferry\nlantern\n# 2\n# 3\nkettle\n# end\n")
    empty.write_text("# nothing\n")
    two.write_text("saddle\n")
    words = ["ferry", "lantern", "kettle", "saddle"]
    plain = command("mt-translate", trained, *QUICK, stdin="\n".join(words).encode()).out.splitlines()
    # A text whose translation is blank stays as it is.
    ferry, lantern, kettle, saddle = (line or word for line, word in zip(plain, words, strict=True))
    plugin = "plugins=[chapter_files]"
    expected = "".join(f"{line}\n" for line in ("# 1", ferry, lantern, "# 2", "# 3", kettle, "# end"))
    for settings in ([], ["decoding.window=2"], ["decoding.window=1"]):
        found = command("mt-translate", trained, *QUICK, plugin, *settings, one)
        assert found.out == expected, found.err
    all_of = command("mt-translate", trained, *QUICK, plugin, one, empty, two, "-o", tmp_path / "out")
    assert [(tmp_path / "out" / path.name).read_text() for path in (one, empty, two)] == [
        *(expected, "# nothing\n", f"{saddle}\n")
    ], all_of.err
    unknown = command("mt-translate", trained, "input.format=chapter", one)
    assert "input.format ('chapter') is unknown. Did you mean 'chapters'?" in unknown.error


def test_files_are_translated_from_python_as_by_the_command(command: Command, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("ferry\n\nlantern\n")
    notes = list[str]()
    tolka.translate_files(trained, [tmp_path / "text"], output=tmp_path / "out", say=notes.append, search="greedy")
    expected = command("mt-translate", trained, tmp_path / "text", "search=greedy")
    assert (tmp_path / "out").read_text() == expected.out
    assert notes == expected.err.splitlines()


def rank_of(frame: FrameType) -> tuple[str, int] | None:
    """The package of a frame and its rank; None outside tolka and for what was handed down: closures, generators."""
    name = str(frame.f_globals.get("__name__"))
    package = name.split(".")[1] if name.startswith("tolka.") else ""
    is_handed_down = frame.f_code.co_flags & CO_GENERATOR or "<locals>" in frame.f_code.co_qualname
    return (package, RANKS[package]) if package in RANKS and not is_handed_down else None


def test_one_sentence_goes_down_and_never_up(command: Command, trained: Path, tmp_path: Path) -> None:
    """The command calls the API once, the API the job once, and no package calls one above it."""
    (tmp_path / "text").write_text("ferry\n")
    arguments = [trained, *QUICK, "decoding.backend=torch", tmp_path / "text"]
    command("mt-translate", *arguments)  # everything is imported
    found: Counter[tuple[str, str]] = Counter()

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or frame.f_code.co_name == "<module>" or not (called := rank_of(frame)):
            return
        above = frame.f_back
        while above is not None and not str(above.f_globals.get("__name__")).startswith("tolka."):
            above = above.f_back
        is_executor = above is not None and above.f_code.co_name == "submit"  # which runs what it is given
        if above is not None and not is_executor and (caller := rank_of(above)) and caller[0] != called[0]:
            found[caller[0], called[0]] += 1

    sys.setprofile(profile)
    try:
        outcome = command("mt-translate", *arguments)
    finally:
        sys.setprofile(None)
    assert outcome.code == 0
    assert found["cli", "api"] == 1
    assert [pair for pair in found if pair[1] == "jobs"] == [("api", "jobs")]
    upward = {pair: count for pair, count in found.items() if RANKS[pair[0]] < RANKS[pair[1]]}
    assert not upward
    assert found["search", "models"] > 3
