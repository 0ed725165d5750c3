"""XML is cut into units, each of which is parsed by itself and decoded from what the file declares."""

from pathlib import Path

import pytest

from tolka.errors import DataError
from tolka.text import lines
from tolka.text.readers.xml_file import segment_text
from tolka.text.readers.xml_units import read_units


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.xml"


def parsed(path: Path, content: str | bytes) -> list[str]:
    """Return each unit as the texts of its parts joined by a bar, and a broken one as its line and reason."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return [
        f"line {unit.line}: {unit.reason}"
        if unit.element is None
        else "|".join(segment_text(part, ()) for part in unit.element.iter("part"))
        for unit in read_units(path, ["unit"], ["root", "group"])
    ]


GOOD = "<unit><part>{}</part></unit>\n"


@pytest.mark.parametrize(
    ("broken", "record"),
    [
        ("<unit><x></unit>", "line 2: mismatched tag"),
        ("<unit>\n<</unit>", "line 3: not well-formed (invalid token)"),
        ("<unit><part>b", "line 3: a unit that is not closed"),  # found where the next unit begins
        ("<unit><part>a & b</part><part>c</part></unit>", "line 2: not well-formed (invalid token)"),
        ("<unit><part>b</part><part></x></part></unit>", "line 2: mismatched tag"),
    ],
)
def test_a_broken_unit_is_left_out_alone(path: Path, broken: str, record: str) -> None:
    units = parsed(path, f"<root><group>{GOOD.format('a')}{broken}\n{GOOD.format('c')}</group></root>")
    assert units == ["a", record, "c"]


@pytest.mark.parametrize(
    "hidden", ["<!-- <unit><part>b</part></unit> -->", "<x><![CDATA[<unit>]]></x>", "<note>a & b</note>"]
)
def test_what_is_between_units_is_none(path: Path, hidden: str) -> None:
    assert parsed(path, f"<root>{GOOD.format('a')}{hidden}{GOOD.format('c')}</root>") == ["a", "c"]


def test_lines_are_counted_across_broken_units(path: Path) -> None:
    content = "<root>\n" + "<unit>&</unit>\n" * 3 + "\n<unit\n>&</unit></root>"
    found = [each.partition(":")[0] for each in parsed(path, content)]
    assert found == ["line 2", "line 3", "line 4", "line 7"]


def test_a_broken_unit_may_be_the_last(path: Path) -> None:
    assert parsed(path, "<root><unit><x></unit></root>") == ["line 1: mismatched tag"]


def test_the_size_of_the_blocks_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = "<unit><part>é & ü\n\n</part><part>d</part></unit>\n<unit><y></unit>\n<p:unit><part>e</part></p:unit>"
    content = f"<root x='a>b'>{GOOD.format('é')}<!-- <unit> -->{broken}{GOOD.format('f')}</root>"
    records = parsed(path, content)
    assert len(records) == 5
    for size in range(1, 60):
        monkeypatch.setattr(lines, "_BLOCK_BYTES", size)
        assert parsed(path, content) == records, size


def test_undeclared_entities_are_html_s_or_cost_their_unit(path: Path) -> None:
    units = parsed(path, "<root>" + GOOD.format("&amp;&eacute;&#x41;") + GOOD.format("&mine;") + "</root>")
    assert units == ["&éA", "line 2: undeclared entity &mine;"]


def test_what_a_document_type_declares_is_never_read(path: Path) -> None:
    declared = '<!DOCTYPE root [<!ENTITY a "b"><!ENTITY c SYSTEM "file:///etc/passwd">]>'
    units = parsed(path, f"{declared}<root>{GOOD.format('&a;')}{GOOD.format('&c;')}</root>")
    assert units == ["line 1: undeclared entity &a;", "line 2: undeclared entity &c;"]


@pytest.mark.parametrize(
    ("declared", "codec", "text"),
    [
        ("ISO-8859-1", "iso-8859-1", "é"),
        ("UTF-16", "utf-16", "漢字"),
        ("windows-31j", "cp932", "漢字"),
        ("GB2312", "gb18030", "漢字"),  # the superset, as browsers read it: GB2312 itself has no 漢
        ("UTF-16", "utf-8", "漢字"),  # a declaration in ASCII that says UTF-16 is wrong
    ],
)
def test_the_declared_encoding_is_decoded(path: Path, declared: str, codec: str, text: str) -> None:
    content = f'<?xml version="1.0" encoding="{declared}"?><root>{GOOD.format(text)}</root>'
    assert parsed(path, content.encode(codec)) == [text]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<root>\n</group>", r"a\.xml:2: not XML \(</group> ends what has not begun\)"),
        ("<root>\n<unit>", r"a\.xml:2: not XML \(<root> has no end\); is the file complete\?"),
        ("<other/>", "no <root> is in it"),
        ("<root><unit>" + "x" * 2**24, r"a\.xml:1: a unit or a comment is longer than 16777216 bytes"),
    ],
)
def test_an_error_outside_of_units_names_its_line(path: Path, content: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parsed(path, content)


def test_elements_that_are_too_deep_cost_their_unit(path: Path) -> None:
    deep = GOOD.format("<x>" * 200 + "</x>" * 200)
    assert parsed(path, f"<root>{deep}{GOOD.format('a')}</root>") == [
        "line 1: more than 100 elements in each other",
        "a",
    ]
