"""The XML parser recovers after a broken unit, refuses declared entities, and decodes what the file declares."""

from pathlib import Path

import pytest

from tolka.errors import DataError
from tolka.text.lines import LineLimit
from tolka.text.readers import xml_parser
from tolka.text.readers.xml_parser import XmlHandler, parse
from tolka.text.readers.xml_segment import SegmentText


class Units(XmlHandler):
    """Records each unit as the texts of its parts joined by a bar, and a broken one as its line and reason."""

    roots, units = frozenset({"root"}), frozenset({"unit"})

    def __init__(self) -> None:
        self.records: list[str] = []
        self.flaws: list[str] = []
        self._texts: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "unit":
            self._texts = []
        elif name == "part":
            self.text = SegmentText(LineLimit())

    def end(self, name: str) -> None:
        if name == "part" and self.text is not None:
            self._texts.append(self.text.content())
            self.flaws += [self.text.flaw] if self.text.flaw else []
            self.text = None
        elif name == "unit":
            self.records.append("|".join(self._texts))

    def give_up(self, line: int, reason: str) -> None:
        self.records.append(f"line {line}: {reason}")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.xml"


def parsed(path: Path, content: str | bytes, max_bytes: int = 1000) -> Units:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    handler = Units()
    for _ in parse(path, handler, LineLimit(max_bytes)):
        pass
    return handler


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
    assert units.records == ["a", record, "c"]


def test_lines_are_counted_across_broken_units(path: Path) -> None:
    content = "<root>\n" + "<unit>&</unit>\n" * 3 + "\n<unit\n>&</unit></root>"
    assert [each.partition(":")[0] for each in parsed(path, content).records] == [
        "line 2",
        "line 3",
        "line 4",
        "line 7",
    ]


def test_a_broken_unit_may_be_the_last(path: Path) -> None:
    assert parsed(path, "<root><unit><x></unit></root>").records == ["line 1: mismatched tag"]


def test_the_size_of_the_blocks_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "\n" * 2 * xml_parser.TAG_BYTES  # more than is remembered of what is skipped
    broken = f"<unit><part>é & ü{lines}</part><part>d</part></unit>\n<unit><y></unit>\n<p:unit><part>e</part></p:unit>"
    content = f"<root>{GOOD.format('é')}{broken}{GOOD.format('f')}</root>"
    records = parsed(path, content).records
    assert len(records) == 5
    for size in range(1, 60):
        monkeypatch.setattr(xml_parser, "BLOCK", size)
        assert parsed(path, content).records == records, size


def test_undeclared_entities_are_html_s_or_a_flaw(path: Path) -> None:
    units = parsed(path, "<root>" + GOOD.format("&amp;&eacute;&#x41;") + GOOD.format("&mine;") + "</root>")
    assert units.records == ["&éA", "&mine;"]
    assert units.flaws == ["undeclared entity"]


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
    assert parsed(path, content.encode(codec)).records == [text]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<root>\n<unit>a</unit></x>", r"a\.xml:2: not XML \(mismatched tag\)"),
        ("<root>\n<unit>", r"a\.xml:2: not XML \(no element found\)"),
        ("<other/>", "no <root> is in it"),
        ('<!DOCTYPE root [\n<!ENTITY a "b">]><root/>', r"a\.xml:2: it declares an entity \('a'\)"),
        ("<root>" + "<x>" * 200, "more than 100 elements in each other"),
        ("<root><!-- " + "x" * 2 * xml_parser.BLOCK, "a tag or a comment is longer than 1000 bytes"),
    ],
)
def test_an_error_outside_of_units_names_its_line(path: Path, content: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parsed(path, content)
