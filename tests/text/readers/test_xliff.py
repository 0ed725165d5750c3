"""XLIFF 1.2 and 2 as tools for translators write it: states, inline codes, and what nobody stands for."""

from pathlib import Path

from rows import each_row

from tolka.text.direction import Direction
from tolka.text.pairs import Pair
from tolka.text.readers.xml_file import XliffFile

EN_DE = Direction("en", "de")
V1 = '<xliff version="1.2"><file source-language="en" target-language="de-DE"><body>{}</body></file></xliff>'
V2 = '<xliff version="2.0" srcLang="en" trgLang="de"><file id="f">{}</file></xliff>'
UNIT = "<trans-unit {}><source>a</source><target>b</target></trans-unit>"


def read(folder: Path, content: str, direction: Direction = EN_DE) -> list[Pair]:
    path = folder / "a.xlf"
    path.write_text(content)
    return list(XliffFile(path, "a", direction, ()).read())


@each_row(
    ("version", "unit", "pair"),
    [
        ("1.2", '<source>a</source><target state="translated">b</target>', Pair("a", "b")),
        ("1.2", "<source>a</source>", Pair("a", "", "untranslated")),
        ("1.2", "<source>a</source><target/>", Pair("a", "", "untranslated")),
        *(
            ("1.2", f"<source>a</source><target {attributes}>b</target>", Pair("a", "b", flaw))
            for attributes, flaw in (
                ('state="new"', "untranslated"),
                ('state="needs-translation"', "untranslated"),
                ('state="needs-review-translation"', "not approved"),
                ('state="needs-l10n"', "not approved"),
                ('state-qualifier="fuzzy-match"', "not approved"),
                ('state-qualifier="tm-suggestion"', "not approved"),
                ('state="signed-off" state-qualifier="rejected-grammar"', "not approved"),
                ('state-qualifier="rejected-length"', "not approved"),
                ('state="translated" state-qualifier="leveraged-mt"', "not approved"),
                ('state-qualifier="mt-suggestion"', "not approved"),
                ('state="final" state-qualifier="leveraged-mt"', ""),
                ('state="translated" state-qualifier="exact-match"', ""),
            )
        ),
        ("1.2", "<source>a</source><seg-source>x</seg-source><target>b</target>", Pair("a", "b")),
        (
            "1.2",  # as Trados and memoQ mark segments
            '<source>a</source><seg-source><mrk mtype="seg" mid="1">a</mrk></seg-source>'
            '<target><mrk mtype="seg" mid="1">b</mrk></target>',
            Pair("a", "b"),
        ),
        (
            "1.2",
            "<source>a</source><target>b</target><alt-trans><source>x</source><target>y</target></alt-trans>",
            Pair("a", "b"),
        ),
        ("1.2", "<source>a</source><target>b</target><note>for translators</note>", Pair("a", "b")),
        ("1.2", "<source>a\n   b</source><target xml:space='preserve'> c </target>", Pair("a b", "c")),
        # The elements of XLIFF 1.2, section 2.4 (inline).
        (
            "1.2",
            '<source>a<x id="1" ctype="lb"/>b</source><target>c<g id="2" ctype="bold">d</g></target>',
            Pair("a b", "cd"),
        ),
        ("1.2", '<source>a<x id="1"/>b <ph id="2">%s</ph></source><target>c</target>', Pair("a b %s", "c")),
        ("1.2", '<source>a <x id="1" equiv-text="{{name}}"/></source><target>c</target>', Pair("a {{name}}", "c")),
        (
            "1.2",
            '<source><bpt id="1">&lt;b&gt;</bpt>a<ept id="1">&lt;/b&gt;</ept>b</source><target>c</target>',
            Pair("ab", "c"),
        ),
        (
            "1.2",  # as Angular writes it
            '<source>a<x id="START_BOLD_TEXT" ctype="x-b" equiv-text="&lt;b&gt;"/>b</source><target>c</target>',
            Pair("ab", "c"),
        ),
        ("2.0", "<source>a</source><target>b</target>", Pair("a", "b")),
        ("2.0", '<source>a <ph id="1" equiv="{0}"/></source><target>c</target>', Pair("a {0}", "c")),
        ("2.0", '<source>a<ph id="1" type="fmt" subType="xlf:lb"/>b</source><target>c</target>', Pair("a b", "c")),
        ("2.0", '<source>a<pc id="1" type="fmt" subType="xlf:b">b</pc></source><target>c</target>', Pair("ab", "c")),
        ("2.0", "<source>a</source>", Pair("a", "", "untranslated")),
    ],
)
def test_units(tmp_path: Path, version: str, unit: str, pair: Pair) -> None:
    if version == "1.2":
        content = V1.format(f'<group><trans-unit id="1">{unit}</trans-unit></group>')
    else:
        ignorable = "<ignorable><source> </source></ignorable>"
        content = V2.format(f'<unit id="1"><segment>{unit}</segment>{ignorable}</unit>')
    assert read(tmp_path, content) == [pair]
    assert [p.flaw for p in read(tmp_path, content.replace("<source>", "<source>& ", 1))] == [
        "not XML (not well-formed (invalid token); first in line 1)"
    ]


@each_row(
    ("state", "flaw"),
    [("initial", "untranslated"), ("translated", ""), ("reviewed", ""), ("final", "")],
)
def test_states_of_segments_in_version_2(tmp_path: Path, state: str, flaw: str) -> None:
    """A unit's segments are pairs, each with a state of its own."""
    segments = f'<segment state="{state}"><source>a</source><target>b</target></segment>'
    segments += "<segment><source>c</source><target>d</target></segment>"
    notes = "<notes><note>for translators</note></notes>"
    assert read(tmp_path, V2.format(f"<group><unit id='1'>{notes}{segments}</unit></group>")) == [
        Pair("a", "b", flaw),
        Pair("c", "d"),
    ]


@each_row(
    ("outside", "inside", "flaw"),
    [
        ("", "", ""),
        ("", 'approved="no"', "not approved"),
        ("", 'approved="yes"', ""),
        ("", 'translate="no"', "not to be translated"),
        ('translate="no"', "", "not to be translated"),
        ('translate="no"', 'translate="yes"', ""),
    ],
)
def test_units_that_nobody_stands_for(tmp_path: Path, outside: str, inside: str, flaw: str) -> None:
    units = f"<group {outside}>{UNIT.format(inside)}</group>{UNIT.format('')}"
    assert read(tmp_path, V1.format(units)) == [Pair("a", "b", flaw), Pair("a", "b")]
    # A broken unit says nothing of the next.
    assert read(tmp_path, V1.format(units.replace("<source>a", "<source>a & b", 1)))[1:] == [Pair("a", "b")]


NO_PAIR = "no pair in {} and {} (the first such unit is from {} to {})"


@each_row(
    ("languages", "direction", "pair"),
    [
        ('source-language="en" target-language="de-DE"', ("en", "de"), Pair("a", "b")),
        ('source-language="EN-us" target-language="de_DE"', ("en", "de"), Pair("a", "b")),
        ('source-language="en" target-language="de-DE"', ("de", "en-GB"), Pair("b", "a")),
        ('source-language="en"', ("en", "de"), Pair("a", "b")),  # a file that was just made
        ('source-language="en"', ("de", "en"), Pair("b", "a")),
        ("", ("en", "de"), Pair("a", "b")),
        (
            'source-language="en" target-language="de-DE"',
            ("en", "ko"),
            Pair("a", "b", NO_PAIR.format("en", "ko", "en", "de-DE")),
        ),
        (
            'source-language="fr" target-language="de"',
            ("en", "de"),
            Pair("a", "b", NO_PAIR.format("en", "de", "fr", "de")),
        ),
    ],
)
def test_languages(tmp_path: Path, languages: str, direction: tuple[str, str], pair: Pair) -> None:
    content = f'<xliff version="1.2"><file {languages}><body>{UNIT.format("")}</body></file></xliff>'
    assert read(tmp_path, content, Direction(*direction)) == [pair]


def test_files_of_several_languages_in_one(tmp_path: Path) -> None:
    files = (
        f'<file source-language="en" target-language="{code}"><body>{UNIT.format("")}</body></file>'
        for code in ("de", "fr", "de-AT")
    )
    flaw = NO_PAIR.format("en", "de", "en", "fr")
    found = read(tmp_path, f'<xliff version="1.2">{"".join(files)}</xliff>')
    assert found == [Pair("a", "b"), Pair("a", "b", flaw), Pair("a", "b")]


def test_elements_with_a_prefix(tmp_path: Path) -> None:
    content = """<x:xliff version="1.2" xmlns:x="urn:oasis:names:tc:xliff:document:1.2"><x:file source-language="en"
        target-language="de"><x:body><x:trans-unit id="1"><x:source>a</x:source><x:target>b</x:target></x:trans-unit>
        </x:body></x:file></x:xliff>"""
    assert read(tmp_path, content) == [Pair("a", "b")]


def test_what_is_counted_for_a_progress_bar(tmp_path: Path) -> None:
    path = tmp_path / "a.xlf"
    path.write_text(V1.format(UNIT.format('id="1"') * 3))
    assert XliffFile(path, "a", EN_DE, ()).count() == 3
