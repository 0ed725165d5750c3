"""Term bases as programs write them: nested groups of terms, namespaces, regions, and terms that are out of use."""

from pathlib import Path

import pytest
from rows import each_row

from tolka.errors import DataError
from tolka.terminology import tbx
from tolka.terminology.tbx import Concept, read_tbx
from tolka.text.direction import Direction
from tolka.text.lines import LINE_LIMIT

EN_DE = Direction("en", "de")
V2 = """<?xml version="1.0"?>
<martif type="TBX-Basic" xml:lang="en"><martifHeader/><text><body>{}</body></text></martif>"""
V3 = """<tbx style="dct" type="TBX-Basic" xml:lang="en" xmlns="urn:iso:std:iso:30042:ed-2">
<text><body>{}</body></text></tbx>"""
DOG = '<langSet xml:lang="en"><tig><term>dog</term></tig></langSet>'


def concepts(folder: Path, content: str, direction: Direction = EN_DE) -> list[Concept]:
    path = folder / "terms.tbx"
    path.write_text(content)
    return read_tbx(path, direction, LINE_LIMIT)


def german(*terms: str) -> str:
    """A concept of version 2: dog, and these in German."""
    return f'<termEntry>{DOG}<langSet xml:lang="de">{"".join(terms)}</langSet></termEntry>'


@each_row(
    ("terms", "expected"),
    [
        ("<tig><term>Hund</term></tig>", ["Hund"]),
        ("<ntig><termGrp><term>Hund</term></termGrp></ntig>", ["Hund"]),
        ("<tig><term>Hund</term></tig><tig><term>Köter</term></tig>", ["Hund", "Köter"]),
        ("<tig><term> der\n  Hund </term></tig>", ["der Hund"]),
        ("<tig><term>Hund &amp; Co. &eacute;</term></tig>", ["Hund & Co. é"]),
        ("<tig><term><hi>Hu</hi>nd</term></tig>", ["Hund"]),
        ("<tig><!-- a comment --><term><![CDATA[<Hund>]]></term></tig>", ["<Hund>"]),
        ("<descrip>Hund</descrip><tig><term>Hund</term><note>Tier</note></tig>", ["Hund"]),
    ],
)
def test_terms_of_version_2(tmp_path: Path, terms: str, expected: list[str]) -> None:
    assert concepts(tmp_path, V2.format(german(terms))) == [(["dog"], expected)]


@each_row(
    "status", ["deprecatedTerm-admn-sts", "supersededTerm-admn-sts", "deprecatedTerm", "deprecated", "superseded"]
)
def test_terms_that_are_out_of_use(tmp_path: Path, status: str) -> None:
    notes = [
        f'<tig><term>Köter</term><termNote type="{kind}">{status}</termNote></tig>'
        for kind in ("administrativeStatus", "normativeAuthorization")
    ]
    used = "<tig><term>Hund</term><termNote type='administrativeStatus'>preferredTerm-admn-sts</termNote></tig>"
    assert concepts(tmp_path, V2.format(german(*notes, used))) == [(["dog"], ["Hund"])]
    assert concepts(tmp_path, V2.format(german(*notes))) == []


def test_a_note_of_another_kind_is_not_read_as_a_status(tmp_path: Path) -> None:
    note = '<tig><term>Hund</term><termNote type="usageNote">deprecated in poems</termNote></tig>'
    assert concepts(tmp_path, V2.format(german(note))) == [(["dog"], ["Hund"])]


V3_CONCEPT = """<conceptEntry id="c1"><min:subjectField xmlns:min="urn:m">animals</min:subjectField>
<langSec xml:lang="en"><termSec><term>dog</term></termSec></langSec>
<langSec xml:lang="de"><termSec><term>Hund</term>{}</termSec></langSec></conceptEntry>"""


@each_row(
    ("note", "is_used"),
    [
        ("", True),
        ("<min:administrativeStatus xmlns:min='urn:m'>preferredTerm-admn-sts</min:administrativeStatus>", True),
        ("<min:administrativeStatus xmlns:min='urn:m'>deprecatedTerm-admn-sts</min:administrativeStatus>", False),
        ("<termNote type='administrativeStatus'>supersededTerm-admn-sts</termNote>", False),
        ("<termNoteGrp><termNote type='administrativeStatus'>deprecatedTerm</termNote></termNoteGrp>", False),
    ],
)
def test_both_styles_of_version_3(tmp_path: Path, note: str, is_used: bool) -> None:
    expected = [(["dog"], ["Hund"])] if is_used else []
    assert concepts(tmp_path, V3.format(V3_CONCEPT.format(note))) == expected


def test_a_file_whose_elements_all_have_a_prefix(tmp_path: Path) -> None:
    content = V2.format(german("<tig><term>Hund</term></tig>")).replace('<?xml version="1.0"?>\n', "")
    prefixed = content.replace("</", "</t:").replace("<", "<t:").replace("<t:/t:", "</t:")
    assert concepts(tmp_path, prefixed.replace("<t:martif", "<t:martif xmlns:t='urn:t'", 1)) == [(["dog"], ["Hund"])]


def of_languages(*codes: str) -> str:
    sections = (f'<langSet xml:lang="{code}"><tig><term>in {code}</term></tig></langSet>' for code in codes)
    return V2.format(f"<termEntry>{''.join(sections)}</termEntry>")


@each_row(
    ("codes", "direction", "expected"),
    [
        ("en de", ("en", "de"), ("en", "de")),
        ("en de", ("de", "en"), ("de", "en")),
        ("en-US de-AT", ("en", "de"), ("en-US", "de-AT")),
        ("en_US DE", ("en", "de"), ("en_US", "DE")),
        ("en-US en de", ("en", "de"), ("en", "de")),  # the exact code alone
        ("en de", ("eng_Latn", "deu_Latn"), ("en", "de")),
        ("en de", ("en-GB", "de"), ("en", "de")),
        ("en-GB de", ("eng", "de"), ("en-GB", "de")),
        ("eng de", ("en", "de"), ("eng", "de")),
        ("eng_Latn de_AT", ("en_US", "deu_Latn"), ("eng_Latn", "de_AT")),
        ("en-US en de", ("en-us", "de"), ("en-US", "de")),
    ],
)
def test_codes_of_languages(tmp_path: Path, codes: str, direction: tuple[str, str], expected: tuple[str, str]) -> None:
    first, second = expected
    found = concepts(tmp_path, of_languages(*codes.split()), Direction(*direction))
    assert found == [([f"in {first}"], [f"in {second}"])]
    assert concepts(tmp_path, of_languages(*codes.split()), Direction("fr", "de")) == []


def test_all_regions_of_a_language_where_it_has_no_terms_itself(tmp_path: Path) -> None:
    found = concepts(tmp_path, of_languages("en-US", "en-GB", "de"))
    assert found == [(["in en-US", "in en-GB"], ["in de"])]


def test_concepts_without_a_term_in_both_languages_are_left_out(tmp_path: Path) -> None:
    whole = german("<tig><term>Hund</term></tig>")
    alone = f"<termEntry>{DOG}</termEntry>"
    empty = german("<tig><term/></tig>")
    assert concepts(tmp_path, V2.format(alone + whole + empty)) == [(["dog"], ["Hund"])]
    assert concepts(tmp_path, V2.format(alone)) == []


def test_a_language_that_comes_twice_in_a_concept(tmp_path: Path) -> None:
    sections = f'{DOG}{DOG.replace("dog", "hound")}<langSet xml:lang="de"><tig><term>Hund</term></tig></langSet>'
    twice = V2.format(f"<termEntry>{sections}</termEntry>")
    assert concepts(tmp_path, twice) == [(["dog", "hound"], ["Hund"])]


def test_a_broken_concept_is_an_error_with_its_line(tmp_path: Path) -> None:
    """Where a pair of a corpus may be left out, a term that is wanted may not."""
    broken = V2.format(german("<tig><term>Hund</term></tig>") + "\n" + german("<tig><term>A & B</term></tig>"))
    with pytest.raises(DataError, match=r"terms\.tbx:3: not XML \(not well-formed"):
        concepts(tmp_path, broken)


def test_a_file_that_is_too_large_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = V2.format(german("<tig><term>Hund</term></tig>"))
    monkeypatch.setattr(tbx, "MOST_BYTES", len(content))
    assert len(concepts(tmp_path, content)) == 1
    with pytest.raises(DataError, match=rf"terms\.tbx: at most {len(content)} bytes are read"):
        concepts(tmp_path, f"{content}\n")
