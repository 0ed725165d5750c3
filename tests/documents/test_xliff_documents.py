"""Files of XLIFF: which units get a target, where, and how it is marked."""

from pathlib import Path

import pytest
from made_translations import EN_DE, identity, output_of, translated
from rows import each_row

from tolka.documents.markup import xml_events
from tolka.documents.text import Text
from tolka.documents.units import Xliff
from tolka.errors import DataError
from tolka.text.direction import UNKNOWN

HEAD = '<?xml version="1.0"?>\r\n<!-- <source> --><xliff version="1.2"><file source-language="en" target-language="de">'
MADE = '<target state="needs-review-translation" state-qualifier="leveraged-mt">'


def of(path: Path, content: str) -> Xliff:
    """Return a file with this content."""
    path.write_text(content, newline="")
    return Xliff(path)


def unit(content: str, attributes: str = "") -> str:
    """XLIFF 1.2 with one unit."""
    return f'{HEAD}<body><trans-unit id="1"{attributes}>{content}</trans-unit></body></file></xliff>\r\n'


def texts(document: Xliff) -> list[tuple[str, str]]:
    """Return the texts of a file, and why they are left alone."""
    document.direction = EN_DE
    return [(text.source, text.reason) for text in document.texts() if text.reason != "edit"]


SEG_1, SEG_2 = (f'<mrk mtype="seg" mid="{number}">' for number in "12")
CODES = '<bpt id="1">&lt;b></bpt>{}<ept id="1">b</ept><ph id="2">alt="<sub>An ox</sub>"</ph>'
SEGMENTS = f"{SEG_1}{{}}</mrk> {SEG_2}{{}}</mrk>"


@each_row(
    ("before", "old", "new", "after"),
    [
        ("<source>Yes &amp; no</source>", "", f"{MADE}YES &amp; NO</target>", ""),
        # Behind the source, before what follows, and on a line of its own if the source is.
        (
            "\n  <source>Yes</source>",
            "",
            f"\n  {MADE}YES</target>",
            "\n  <note>a</note><alt-trans><target/></alt-trans>",
        ),
        ("<source>Yes</source>", "<target />", f"{MADE}YES</target>", ""),
        (
            "<source>Yes</source>",
            '<target state="new" xml:lang="de">Yes</target>',
            MADE.replace("t s", 't xml:lang="de" s', 1) + "YES</target>",
            "",
        ),
        (
            '<source>A <g id="1">red <g id="2">big</g></g> cat<x id="3"/> &#x2014; here</source>',
            "",
            f'{MADE}A <g id="1">RED <g id="2">BIG</g></g> CAT<x id="3"/> &#x2014; HERE</target>',
            "",
        ),
        # Native code is no text.
        (f"<source>A {CODES.format('cat')} ran</source>", "", f"{MADE}A {CODES.format('CAT')} RAN</target>", ""),
        # Segments stay.
        (
            f"<source>A. B.</source><seg-source>{SEGMENTS.format('A cat.', 'An ox.')}</seg-source>",
            f"<target>{SEGMENTS.format('', '')}</target>",
            f"{MADE}{SEGMENTS.format('A CAT.', 'AN OX.')}</target>",
            "",
        ),
        ("<source><![CDATA[Yes & no]]></source>", "", f"{MADE}YES &amp; NO</target>", ""),
        ("<source>\n two\n</source>", "", f"{MADE}\n TWO\n</target>", ""),
    ],
)
def test_a_unit_gets_a_target(tmp_path: Path, before: str, old: str, new: str, after: str) -> None:
    document = of(tmp_path / "a.xlf", unit(before + old + after))
    assert translated(document, str.upper) == unit(before + new + after)
    assert identity(document) == unit(before + old + after).encode()


def test_codes_that_overlap_an_element_leave_it_whole(tmp_path: Path) -> None:
    document = of(tmp_path / "a.xlf", unit('<source>a <bx id="1"/>b <g id="2">c<ex id="1"/> d</g> e</source>'))
    made = translated(document, lambda text: " ".join(reversed(text.split())))
    assert [event.kind for event in xml_events(made, "a") if event.name == "target"] == ["start", "end"]
    assert made.count("<bx") == made.count("<ex") == 2


@each_row(
    ("content", "attributes", "left"),
    [
        ("<source>Yes</source><target>Ja</target>", "", [("Yes", "translated already")]),
        (
            f"<source>{SEGMENTS.format('Cat.', 'Ox.')}</source><target>{SEGMENTS.format('Katze.', '')}</target>",
            "",
            [("Cat.", "translated already"), ("Ox.", "translated already")],
        ),
        ('<source>Yes</source><target state="new">Yes</target>', ' approved="yes"', [("Yes", "translated already")]),
        ("<source>Yes</source>", ' translate="no"', [("Yes", "not to be translated")]),
        ("<source>12</source>", "", [("12", "without words")]),
        ("<source/>", "", []),
    ],
)
def test_a_unit_that_stays(tmp_path: Path, content: str, attributes: str, left: list[tuple[str, str]]) -> None:
    document = of(tmp_path / "a.xlf", unit(content, attributes))
    assert texts(document) == left
    assert translated(document, str.upper) == unit(content, attributes)


def test_names_stay(tmp_path: Path) -> None:
    document = of(tmp_path / "a.xlf", unit('<source>Use <mrk mtype="protected">GNU Make</mrk> here</source>'))
    made = translated(document, lambda text: text.replace("Use", "Nimm").replace("here", "hier"))
    assert f'{MADE}Nimm <mrk mtype="protected">GNU Make</mrk> hier</target>' in made


def test_texts_of_a_group_that_is_not_to_be_translated(tmp_path: Path) -> None:
    content = unit("<source>Yes</source>").replace("<body>", '<group translate="no">').replace("</body>", "</group>")
    assert texts(of(tmp_path / "a.xlf", content)) == [("Yes", "not to be translated")]


XLIFF_2 = """<xliff version="2.0" srcLang="en"><file id="f"><unit id="u"><segment id="1">
<source>A <pc id="1">red</pc> cat<ph id="2"/></source></segment><ignorable><source> </source></ignorable>
<segment state="initial" subState="a:b"><source>Two</source><target>Two</target></segment>
<segment><source>Three</source><target>Drei</target></segment>
</unit><unit id="v" translate="no"><segment><source>Four</source></segment></unit></file></xliff>"""


def test_segments_of_xliff_2(tmp_path: Path) -> None:
    expected = XLIFF_2.replace("<xliff", '<xliff trgLang="de"')
    expected = expected.replace('<segment id="1">', '<segment id="1" state="translated">')
    expected = expected.replace("</segment><i", '\n<target>A <pc id="1">RED</pc> CAT<ph id="2"/></target></segment><i')
    expected = expected.replace('state="initial" subState="a:b"', 'state="translated"').replace(">Two</t", ">TWO</t")
    assert translated(of(tmp_path / "a.xliff", XLIFF_2), str.upper) == expected


@each_row(
    ("content", "words"),
    [
        (unit("").replace('"en"', '"fr"'), r"a\.xlf:2: source-language is fr, and the model translates from en to de"),
        (unit("").replace('"de"', '"fr"'), r"a\.xlf:2: target-language is fr"),
        ("<html></html>", "no <xliff> is in it"),
        ("<xliff>\n<file></xliff>", r"a\.xlf:2: this is not XML"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        texts(of(tmp_path / "a.xlf", content))


def test_languages_are_not_asked_where_the_models_are_unknown(tmp_path: Path) -> None:
    content = unit("<source>Oui</source>").replace('"en" target-language="de"', '"fr"')
    document = of(tmp_path / "a.xlf", content)
    assert translated(document, str.upper, UNKNOWN) == content.replace("</source>", f"</source>{MADE}OUI</target>")


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1", "utf-8-sig"])
def test_the_encoding_stays(tmp_path: Path, encoding: str) -> None:
    declared = unit("<source>Öl</source>").replace('"1.0"', f'"1.0" encoding="{encoding.removesuffix("-sig")}"')
    (tmp_path / "a.xlf").write_bytes(declared.encode(encoding))
    made = output_of(Xliff(tmp_path / "a.xlf"), lambda text: text + " 油")
    expected = declared.replace("</source>", f"</source>{MADE}Öl 油</target>")
    assert made == expected.encode(encoding, "xmlcharrefreplace")


def test_a_text_written_again_from_what_is_kept_makes_its_target(tmp_path: Path) -> None:
    """A job that is resumed sets what is written of each text, without placing it."""
    document = of(tmp_path / "a.xlf", unit("<source>Yes</source>"))

    def written(text: Text) -> bytes:
        text.written = "JA" if not text.reason else text.written
        return document.write(text)

    assert f"{MADE}JA</target>".encode() in b"".join(map(written, document.texts()))
