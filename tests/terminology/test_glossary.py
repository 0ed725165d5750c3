"""Glossaries: reading them, and finding their terms in texts."""

import csv
import gzip
import random
import zipfile
from pathlib import Path

import pytest
from rows import each_row

from tolka.errors import DataError
from tolka.terminology.glossary import (
    _WORD,
    Entry,
    Glossary,
    Phrases,
    needs_blank,
    occurs_in,
    read_banned,
    read_glossary,
)
from tolka.text.characters import CharacterForm
from tolka.text.direction import Direction
from tolka.text.lines import LineLimit

EN_DE = Direction("en", "de")


def written(folder: Path, content: str | bytes, name: str = "terms.tsv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_line_is_a_source_and_its_target_forms(tmp_path: Path) -> None:
    text = (
        "\ufeff# a comment\n"
        "engine\tMotor\r\n"
        "\n"
        "gear box | gearbox\tGetriebe\tGetrieben|Getriebes\n"
        "a\\|b\tx\\|y\n"
        "\\#tag\t\\#Marke\n"
        "  wide   space \t  weiter \u00a0 Raum  \n"
        "engine\tMaschine"
    )
    assert read_glossary(written(tmp_path, text), EN_DE) == [
        Entry(("engine",), ("Motor",)),
        Entry(("gear box", "gearbox"), ("Getriebe", "Getrieben", "Getriebes")),
        Entry(("a|b",), ("x|y",)),
        Entry(("#tag",), ("#Marke",)),
        Entry(("wide space",), ("weiter Raum",)),
        Entry(("engine",), ("Maschine",)),
    ]
    compressed = written(tmp_path, gzip.compress(b"engine\tMotor\n"), "terms.tsv.gz")
    assert read_glossary(compressed, EN_DE) == [Entry(("engine",), ("Motor",))]


@each_row(
    ("content", "complaint"),
    [
        ("engine\tMotor\ngear\n", r"terms\.tsv:2: no tab; a line is: source TAB target"),
        ("\tMotor\n", r"terms\.tsv:1: the source term is empty"),
        (" | \tMotor\n", r"terms\.tsv:1: the source term is empty"),
        ("# one\n\nengine\t \t|\n", r"terms\.tsv:3: 'engine' has no target term"),
        ("# nothing\n\n", r"terms\.tsv: the glossary has no terms; a line is: source TAB target"),
        ("", r"terms\.tsv: the glossary has no terms"),
        (b"engine\tMotor\ncaf\xe9\tCaf\xe9\n", r"terms\.tsv:2: not UTF-8"),
        (b"engine\tMo\0tor\n", r"terms\.tsv:1: a NUL byte"),
        ("engine\t" + "M" * 200, r"terms\.tsv:1: the line is longer than 100 bytes \(decoding\.max_line_bytes\)"),
    ],
)
def test_what_is_no_glossary_is_one_clear_line(tmp_path: Path, content: str | bytes, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint) as error:
        read_glossary(written(tmp_path, content), EN_DE, LineLimit(100, "decoding.max_line_bytes"))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("path", [".", "/"])
def test_a_folder_without_a_name_is_no_glossary(path: str) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_glossary(Path(path), Direction("en", "de"))


def test_a_glossary_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.tsv: there is no such file"):
        read_glossary(tmp_path / "none.tsv", EN_DE)
    with pytest.raises(DataError, match=r"none\.tbx: there is no such file"):
        read_glossary(tmp_path / "none.tbx", EN_DE)


TBX_2 = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE martif SYSTEM "TBXcoreStructV02.dtd">
<martif type="TBX" xml:lang="en"><text><body>
 <termEntry id="1"><descrip type="definition">what drives it &mdash; a term is not here</descrip>
  <langSet xml:lang="en-US"><tig><term>engine</term></tig><tig><term> motor
    unit</term><termNote type="administrativeStatus">admittedTerm-admn-sts</termNote></tig></langSet>
  <langSet xml:lang="de"><ntig><termGrp><term>Motor &amp; Getriebe</term></termGrp></ntig>
   <tig><term>Maschine</term><termNote type="administrativeStatus">deprecatedTerm-admn-sts</termNote></tig>
   <tig><term>Antrieb</term><termNote type="partOfSpeech">deprecated</termNote></tig></langSet>
  <langSet xml:lang="fr"><tig><term>moteur</term></tig></langSet>
 </termEntry>
 <termEntry id="2"><langSet xml:lang="en"><tig><term>gear</term></tig></langSet></termEntry>
 <termEntry id="3"><langSet xml:lang="en"><tig><term>old</term>
   <termNote type="administrativeStatus">supersededTerm</termNote></tig></langSet>
  <langSet xml:lang="de"><tig><term>alt</term></tig></langSet></termEntry>
</body></text></martif>"""
TBX_3 = """<tbx style="dca" type="TBX-Basic" xmlns="urn:iso:std:iso:30042:ed-2" xmlns:b="urn:x"><text><body>
 <conceptEntry id="1"><langSec xml:lang="en"><termSec><term>dog</term></termSec></langSec>
  <langSec xml:lang="de_AT"><termSec><term>Hund</term></termSec>
   <termSec><term>Köter</term><b:administrativeStatus>deprecatedTerm-admn-sts</b:administrativeStatus></termSec></langSec>
 </conceptEntry></body></text></tbx>"""


def test_tbx_of_both_versions(tmp_path: Path) -> None:
    """A language's terms; those of its regions where it has none itself; none that is deprecated or superseded."""
    assert read_glossary(written(tmp_path, TBX_2, "terms.tbx"), EN_DE) == [
        Entry(("engine", "motor unit"), ("Motor & Getriebe", "Antrieb"))
    ]
    assert read_glossary(written(tmp_path, TBX_2, "terms.tbx"), Direction("fr", "en-us")) == [
        Entry(("moteur",), ("engine", "motor unit"))
    ]
    assert read_glossary(written(tmp_path, TBX_3, "terms.xml"), EN_DE) == [Entry(("dog",), ("Hund",))]
    utf_16 = TBX_3.encode("utf-16")
    assert read_glossary(written(tmp_path, utf_16, "wide.tbx"), EN_DE) == [Entry(("dog",), ("Hund",))]
    packed = written(tmp_path, gzip.compress(TBX_3.encode()), "terms.tbx.gz")
    assert read_glossary(packed, EN_DE) == [Entry(("dog",), ("Hund",))]


BOMB = '<!DOCTYPE tbx [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>' + TBX_3.replace("dog", "&b;")
STEALING = '<!DOCTYPE tbx [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + TBX_3.replace("dog", "&a;")


@each_row(
    ("content", "direction", "complaint"),
    [
        (TBX_3[:-20], EN_DE, r"terms\.tbx:5: not XML \(<tbx> has no end\); is the file complete\?"),
        ("engine\tMotor\n", EN_DE, r"terms\.tbx: no <tbx> is in it"),
        ("<tmx><body/></tmx>", EN_DE, r"terms\.tbx: no <tbx> is in it; this is another kind of XML"),
        (TBX_3, ("en", "ko"), r"terms\.tbx: no concept has terms in both en and ko"),
        (TBX_3, ("", ""), r"terms\.tbx: the model does not say its languages, which TBX needs"),
        (BOMB, EN_DE, r"terms\.tbx:2: not XML \(undeclared entity &b;\)"),
        (STEALING, EN_DE, r"terms\.tbx:2: not XML \(undeclared entity &a;\)"),
        (TBX_2.replace("Antrieb", "&Antrieb;"), EN_DE, r"not XML \(undeclared entity &Antrieb;\)"),
        (TBX_3.replace("dog", "d" * 3000), EN_DE, r"terms\.tbx:2: a term is longer than 1000 bytes"),
        (TBX_3.encode("latin-1"), EN_DE, r"terms\.tbx:4: not XML \(not UTF-8, perhaps WINDOWS-1252; "),
    ],
)
def test_tbx_that_cannot_be_read_is_one_clear_line(
    tmp_path: Path, content: str | bytes, direction: Direction, complaint: str
) -> None:
    with pytest.raises(DataError, match=complaint) as error:
        read_glossary(written(tmp_path, content, "terms.tbx"), direction, LineLimit(1000))
    assert "\n" not in str(error.value)


def test_a_truncated_compressed_tbx(tmp_path: Path) -> None:
    path = written(tmp_path, gzip.compress(TBX_3.encode())[:-30], "terms.tbx.gz")
    with pytest.raises(DataError, match="cannot be read to its end"):
        read_glossary(path, EN_DE)


def found(terms: dict[str, str], text: str) -> list[str]:
    """The translations of the terms in a text."""
    glossary = Glossary([Entry((source,), (target,)) for source, target in terms.items()])
    return [target for match in glossary.matches(text) for target in match.targets]


@each_row(
    ("terms", "text", "targets"),
    [
        ({"cat": "Katze"}, "a cat.", ["Katze"]),
        ({"cat": "Katze"}, "concatenate cats, catty scat", []),
        ({"cat": "Katze"}, "(cat), 'cat' cat's cat-like", ["Katze"]),
        ({"gear box": "Getriebe", "gear": "Gang", "box": "Kiste"}, "the gear  box and a box", ["Getriebe", "Kiste"]),
        ({"gear box": "Getriebe"}, "gear, box", []),
        ({"a b": "1", "b c d": "2", "c": "3"}, "a b c d", ["1", "3"]),
        ({"US": "USA", "us": "uns"}, "the US told us", ["USA", "uns"]),
        ({"US": "USA", "us": "uns"}, "Us", ["USA", "uns"]),
        ({"Polish": "polnisch"}, "polish and POLISH", ["polnisch"]),
        ({"straße": "street"}, "STRASSE", ["street"]),
        ({"naïve": "naiv"}, "nai\u0308ve", []),
        ({"C++": "C-plus-plus"}, "in C++, not C+ or C", ["C-plus-plus"]),
        ({"3.5 mm": "3,5 mm"}, "a 3.5 mm plug", ["3,5 mm"]),
        ({"鲸": "whale", "鲸鱼": "big whale"}, "一头鲸鱼和鲸", ["big whale", "whale"]),
        ({"データ": "data"}, "データベース", ["data"]),
        ({"ช้าง": "elephant"}, "ฉันเห็นช้างใหญ่", ["elephant"]),
        ({"고래": "whale"}, "고래 고래가", ["whale"]),
        ({"고래가": "whale"}, "고래 고래가", ["whale"]),
        ({"हिंदी": "Hindi"}, "वह हिंदी बोलता", ["Hindi"]),
        ({"हिं": "x"}, "हिंदी", []),
        ({"cat": "Katze"}, "", []),
    ],
)
def test_terms_stand_in_a_text_as_whole_words(terms: dict[str, str], text: str, targets: list[str]) -> None:
    assert found(terms, text) == targets


def test_terms_of_several_forms_and_lines_have_their_targets_together() -> None:
    glossary = Glossary(
        [Entry(("dog", "dogs"), ("Hund",)), Entry(("dog",), ("Köter", "Hund")), Entry(("hound",), ("Hund",))]
    )
    [dog] = glossary.matches("Dog after dog")
    assert (dog.source, dog.targets) == ("Dog", ("Hund", "Köter"))
    assert [match.source for match in glossary.matches("hounds, a hound, dogs")] == ["hound"], "both want 'Hund'"


@each_row(
    ("phrase", "text", "is_there", "is_whole"),
    [
        ("Hund", "Ein Hund.", True, True),
        ("Hund", "Zwei Hunde.", True, False),
        ("Hund", "Kettenhund Hund", True, True),
        ("hund", "Kettenhund", False, False),
        ("Hund", "„Hund“", True, True),
        ("New York", "in New Yorks", True, False),
        ("aa", "xaa aaa", True, False),
        ("鱼", "一头鲸鱼和", True, True),
        ("%", "100% mehr", True, True),
        ("ass", "class asset", True, False),
        ("ass", "class", False, False),
    ],
)
def test_where_a_phrase_stands_in_a_translation(phrase: str, text: str, is_there: bool, is_whole: bool) -> None:
    assert occurs_in(phrase, text) == is_there
    assert Phrases([phrase]).occurrences(text) == ({phrase} if is_whole else set())
    assert not occurs_in(phrase, f"x {text}", only_at_start=True)
    assert occurs_in(phrase, f"{phrase} {text}", only_at_start=True)


def test_scripts_with_blanks() -> None:
    assert [needs_blank(phrase) for phrase in ("Hund", "고래", "9", "鲸", "く", "ช้าง", "(x)", "%")] == [True] * 3 + [
        False
    ] * 5


def test_banned_phrases(tmp_path: Path) -> None:
    assert read_banned(written(tmp_path, "# no\nso  to\tspeak\r\n\n\\#tag\nso to speak\n")) == ["so to speak", "#tag"]
    with pytest.raises(DataError, match=r"terms\.tsv: no phrase is in it; write one a line"):
        read_banned(written(tmp_path, "# no\n \n"))


def test_many_targets_of_one_source_are_each_kept_once() -> None:
    class Compared(str):
        compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            Compared.compared += 1
            return str.__eq__(self, other)

    entries = [Entry(("dog",), (Compared(number % 1500),)) for number in range(3000)]
    [match] = Glossary(entries).matches("dog")
    assert match.targets == tuple(map(str, range(1500)))
    assert Compared.compared < 20_000


def test_phrases_are_found_where_they_stand() -> None:
    """From the beginning of a word to the end of one, in random texts."""
    chance = random.Random(2)
    signs = ["a", "b", "ab", " ", "  ", "鱼", "-", "+", "\u0301", "9", "x"]
    for _ in range(300):
        phrases = ["".join(chance.choices(signs, k=chance.randint(1, 4))) for _ in range(8)]
        text = "".join(chance.choices(signs, k=chance.randint(0, 25)))
        spans = [match.span() for match in _WORD.finditer(text)]
        whole = {text[start:end] for start, _ in spans for _, end in spans}
        expected = {phrase for phrase in phrases if phrase in whole}
        assert Phrases(phrases).occurrences(text) == expected, (phrases, text)


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_two_columns_of_a_table(tmp_path: Path, ending: str) -> None:
    def table(*rows: tuple[str, ...]) -> Path:
        path = tmp_path / f"terms.{ending}"
        if ending == "csv":
            with path.open("w", encoding="utf-8-sig", newline="") as stream:
                csv.writer(stream, delimiter=";").writerows(rows)
        else:
            book = pytest.importorskip("openpyxl").Workbook()
            for row in rows:
                book.active.append(row)
            book.save(path)
        return path

    two = [Entry(("engine", "motor"), ("Motor",)), Entry(("a, b",), ("c",))]
    rows = [("engine|motor", "Motor"), ("", ""), ("# gear", "x"), ("a, b", "c")]
    assert read_glossary(table(*rows), EN_DE) == two
    languages = [("de", "notes", "en"), *((target, "a note", source) for source, target in rows)]
    assert read_glossary(table(*languages), EN_DE) == two
    assert read_glossary(table(*((*row, "en", "de") for row in rows)), EN_DE) == two  # as DeepL writes it
    with pytest.raises(DataError, match=rf"terms\.{ending}:2: 'b' has no target term"):
        read_glossary(table(("a", "x"), ("b", "")), EN_DE)
    with pytest.raises(DataError, match=rf"terms\.{ending}: the glossary has no terms"):
        read_glossary(table(("en", "de")), EN_DE)


SHEET = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>%s</sheetData></worksheet>'
# Two cells, of which the second is the last that Excel can have: what is between them would fill 500 GB.
FAR = b'<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'


@pytest.mark.parametrize(
    ("member", "content", "complaint"),
    [
        (None, b"no archive", "cannot be read as a workbook"),
        ("xl/workbook.xml", b"<a/>", "cannot be read as a workbook"),
        ("xl/worksheets/sheet1.xml", SHEET % FAR, "it needs more than 2 GB of memory or 60 s"),
    ],
)
def test_a_workbook_from_a_stranger(tmp_path: Path, member: str | None, content: bytes, complaint: str) -> None:
    book, path = pytest.importorskip("openpyxl").Workbook(), tmp_path / "terms.xlsx"
    book.active.append(("a", "b"))
    book.save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    if member is None:
        path.write_bytes(content)
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, old in members.items():
                archive.writestr(name, content if name == member else old)
    with pytest.raises(DataError, match=complaint) as error:
        read_glossary(path, EN_DE)
    assert "\n" not in str(error.value)


def test_case_is_that_of_the_source_language() -> None:
    """In Turkish, I is the capital of ı, and İ that of i."""
    entries = [Entry(("ısı",), ("heat",)), Entry(("iz",), ("trace",))]
    turkish = Glossary(entries, CharacterForm(direction=Direction("tr", "en")))
    assert [match.source for match in turkish.matches("ISI ve İZ, isi ve IZ")] == ["ISI", "İZ"]
    assert [match.source for match in Glossary(entries).matches("ISI ve İZ, IZ")] == ["İZ"]
