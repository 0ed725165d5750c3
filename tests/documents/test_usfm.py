"""Scripture keeps its markers; verses, headings and footnotes are translated."""

from pathlib import Path

import pytest
from made_translations import word_alignment

from tolka.documents.placing import place
from tolka.documents.usfm import Usfm
from tolka.errors import DataError

BOOK = r"""Words before the first marker

\id MRK An example
\ide UTF-8
\rem Not a text
\h Mark
\toc1 The Gospel
\c 1
\s1 John prepares
\p
\v 1 The beginning\f + \fr 1:1 \ft Or \fqa start\f* of the \nd Lord\nd*.
\v 2-3 As \w written|strong="G1125"\w* there:\x - \xo 1:2 \xt Mal 3:1\x*
\q1 See, I send
\q2 my servant.
\b
\q1
\v 4 John \va 5\va* came.
\p He ate \zword-s |x="1"\*honey\zword-e\*.
"""


def translated(tmp_path: Path, content: str) -> tuple[list[str], str]:
    path = tmp_path / "book.usfm"
    path.write_bytes(content.encode())
    document, sources, output = Usfm(path), list[str](), b""
    for text in document.texts():
        if not text.reason:
            sources.append(text.source)
            place(text, text.source.upper(), None)
        output += document.write(text)
    return sources, (output + document.end()).decode()


def test_verses_headings_and_footnotes_are_texts(tmp_path: Path) -> None:
    assert translated(tmp_path, BOOK)[0] == [
        "Mark",
        "The Gospel",
        "John prepares",
        "Or start",
        "The beginning of the Lord.",
        "As written there: See, I send my servant.",
        "John came.",
        "He ate honey.",
    ]


def test_markers_numbers_attributes_and_references_stay(tmp_path: Path) -> None:
    expected = r"""Words before the first marker

\id MRK An example
\ide UTF-8
\rem Not a text
\h MARK
\toc1 THE GOSPEL
\c 1
\s1 JOHN PREPARES
\p
\v 1 THE BEGINNING\f + \fr 1:1 \ft OR \fqa START\f* OF THE \nd LORD\nd*.
\v 2-3 AS \w WRITTEN|strong="G1125"\w* THERE:\x - \xo 1:2 \xt Mal 3:1\x*
\q1 SEE, I SEND
\q2 MY SERVANT.
\b
\q1
\v 4 JOHN \va 5\va* CAME.
\p HE ATE \zword-s |x="1"\*HONEY\zword-e\*.
"""
    assert translated(tmp_path, BOOK)[1] == expected


def test_what_a_translator_does_not_change_is_the_same_bytes(tmp_path: Path) -> None:
    content = BOOK.upper().replace(r"\V", r"\v").replace("\n", "\r\n")
    path = tmp_path / "book.sfm"
    path.write_bytes(content.encode())
    document = Usfm(path)
    assert b"".join([*map(document.write, document.texts()), document.end()]) == content.encode()


def test_a_cross_reference_is_left_alone_for_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "book.usfm"
    path.write_text(BOOK)
    assert [(text.source, text.reason) for text in Usfm(path).texts() if text.reason] == [
        ("Mal 3:1", "cross reference")
    ]


def test_a_heading_is_not_joined_with_the_poetry_that_follows(tmp_path: Path) -> None:
    assert translated(tmp_path, "\\v 1 Sing\n\\s A song\n\\q1 of joy\n")[0] == ["Sing", "A song", "of joy"]


def test_a_file_without_markers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"book.usfm: no markers"):
        translated(tmp_path, "In the beginning\n")


def test_a_line_of_poetry_begins_at_a_word_where_a_mark_is_aligned_with_the_end_of_the_line(tmp_path: Path) -> None:
    path = tmp_path / "book.usfm"
    path.write_text("\\v 1 See,\n\\q2 come.\n")
    (text,) = Usfm(path).texts()
    place(text, "“Ach, komm, siehe!”", word_alignment("See, come.", "“Ach, komm, siehe!”"))
    assert text.written == "“Ach, komm,\n\\q2 siehe!”"
