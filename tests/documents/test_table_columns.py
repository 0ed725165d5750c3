"""Tables and lines as documents: one column is translated, and everything else stays."""

from pathlib import Path

import pytest
from made_translations import identity, translated

from tolka.documents.base import DOCUMENTS, Document, Layout, LineFile
from tolka.errors import DataError


def opened(kind: str, content: str, folder: Path, column: str = "text") -> Document:
    path = folder / f"a.{kind}"
    path.write_text(content, encoding="utf-8", newline="")
    of_lines = DOCUMENTS.get(kind)
    assert issubclass(of_lines, LineFile)
    assert of_lines.document
    return of_lines.document(path, Layout(column))


MADE = {"a word": 'ein "Wort"', "two words": "zwei; Wörter", "a, b": "c"}

CASES = [
    (
        "csv",
        'id,text\r\n1,a word\r\n\r\n2,"a, b"\r\n3,"say ""no"""',
        'id,text\r\n1,"ein ""Wort"""\r\n\r\n2,"c"\r\n3,"say ""no"""',
    ),
    ("csv", "sep=|\ntext|id\na word|x\ntwo words|\n", 'sep=|\ntext|id\n"ein ""Wort"""|x\n"zwei; Wörter"|\n'),
    ("csv", "\ufefftext;n\ntwo words;a word\n", '\ufefftext;n\n"zwei; Wörter";a word\n'),
    ("csv", 'n,text\n"a\nb","a word\n\n two words"\n', 'n,text\n"a\nb","ein ""Wort""\n\n zwei; Wörter"\n'),
    ("tsv", 'text\tid\na word\t "x\n\ntwo words\t\n', 'text\tid\nein "Wort"\t "x\n\nzwei; Wörter\t\n'),
    (
        "jsonl",
        '{"id": {"text": "a word"}, "text":  "a word"}\n\n{"translation": {"text": "two words"}}\n{"text": null}\n',
        '{"id": {"text": "a word"}, "text":  "ein \\"Wort\\""}\n\n'
        '{"translation": {"text": "zwei; Wörter"}}\n{"text": null}\n',
    ),
    ("text", "a word\r\n\r\n  two words\ta word", 'ein "Wort"\r\n\r\n  zwei; Wörter\tein "Wort"'),
]


@pytest.mark.parametrize(("kind", "content", "expected"), CASES)
def test_only_the_column_is_translated(kind: str, content: str, expected: str, tmp_path: Path) -> None:
    assert identity(opened(kind, content, tmp_path)) == content.encode()
    assert translated(opened(kind, content, tmp_path), MADE) == expected


def test_a_column_by_its_number_has_no_header(tmp_path: Path) -> None:
    assert translated(opened("tsv", "a word\tx\n", tmp_path, "1"), MADE) == 'ein "Wort"\tx\n'
    assert translated(opened("csv", "x,a word\n", tmp_path, "2"), MADE) == 'x,"ein ""Wort"""\n'


@pytest.mark.parametrize(
    ("kind", "content", "complaint"),
    [
        (
            "csv",
            "id,txt\n1,a\n",
            r"a\.csv:1: no column is called 'text'. Did you mean 'txt'\? Name one .* input.column",
        ),
        ("csv", 'text\na\n"b\n', r"a\.csv:3: not CSV"),
        ("tsv", "id\ttext\n1\n", r"a\.tsv:2: 1 column, and column 2 is wanted"),
        ("jsonl", '{"text": "a"}\n{"text"}\n', r"a\.jsonl:2: not JSON"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(kind: str, content: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=complaint):
        list(opened(kind, content, tmp_path).texts())
