"""A damaged file is pairs or one clear line, never another error: 500 cases a reader, the same in each run."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tolka.errors import TolkaError
from tolka.terminology.glossary import read_glossary
from tolka.text.direction import Direction
from tolka.text.lines import LineLimit
from tolka.text.readers import reader_of
from tolka.text.readers.wmt import SgmFiles

LIMIT = LineLimit(2000)
TMX = """<?xml version="1.0" encoding="utf-8"?><!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"><note>x</note></header><body>
<tu a="1"><tuv xml:lang="en-US"><seg>Press <bpt i="1" type="bold">&lt;b&gt;</bpt>Save<ept i="1"/> &amp; go.</seg></tuv>
<tuv xml:lang="de"><seg>Ä<ph type="lb"/>b<ut>{\\b <sub>x</sub></ut></seg></tuv><tuv xml:lang="de-AT"><seg/></tuv></tu>
<tu><tuv xml:lang="en"><seg><![CDATA[a & b]]>&eacute;</seg></tuv><tuv xml:lang="de"><seg>c</seg></tuv></tu>
</body></tmx>"""
PO = r"""msgid ""
msgstr ""
"Content-Type: text/plain; charset=EUC-KR\n"
"Plural-Forms: nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2);\n"

#, fuzzy
#| msgid "x"
msgctxt "m"
msgid "one"
msgid_plural "%d \303\266\x41\n"
msgstr[0] "a" "b"
msgstr[1] ""
#~ msgid "old"
#~ msgstr "alt"
"""
XLIFF = """<xliff version="1.2"><file source-language="en" target-language="de"><body><group>
<trans-unit id="1"><source>a<x id="1" ctype="lb"/>b</source><seg-source><mrk mtype="seg">a</mrk></seg-source>
<target state="new">c<g id="2">d</g></target><alt-trans><source>e</source><target>f</target></alt-trans></trans-unit>
<trans-unit id="2"><source>g &amp; h</source><target>i</target></trans-unit></group></body></file></xliff>"""
WMT = """<dataset id="x"><doc id="1"><src lang="en"><p><seg id="1">a &lt; b</seg><seg id="2">c</seg></p></src>
<ref lang="de"><p><seg id="1">d</seg></p></ref></doc><doc id="2"><src lang="en"><seg>e</seg></src></doc></dataset>"""
SGM = """<srcset setid="x" srclang="en"><DOC docid=d1><p>
<seg id="1">A &amp; B.</seg> <seg id=2>One
two.</seg></p></DOC></srcset>"""
TBX = """<?xml version="1.0"?><martif type="TBX"><text><body><termEntry><langSet xml:lang="en"><tig><term>dog</term>
<termNote type="administrativeStatus">preferred</termNote></tig></langSet><langSet xml:lang="de"><tig><term>Hund &amp;
x</term></tig></langSet></termEntry></body></text></martif>"""
FILES = {
    "a.tmx": TMX,
    "a.po": PO,
    "a.xlf": XLIFF,
    "a.xml": WMT,
    "a.tsv": 'en\tde\na "b"\tc\r\n\t\nd\té\n',
    "a.csv": 'sep=;\r\nen;de\r\n"a; ""b""\n c";d\r\n\r\né;f\r\n',
    "a.jsonl": '{"en": "a\\ud800", "de": null}\n\n{"translation": {"en": "b", "de": "c"}, "id": 1}\n',
    "a.json": '{"version": "1", "data": [{"en": "a", "de": "b"},\n {"translation": {"en": "é", "de": "d"}}]}',
}
GLOSSARIES = {
    "a.tbx": TBX,
    "a.tsv": "# no\ndog|hound\tHund\tKöter\n\n\\#x\ta\\|b\n",
    "a.csv": 'en;de\r\n"dog|hound";Hund\r\né;f\r\n',
}
TOKENS = [
    *(
        b"<",
        b">",
        b"&",
        b"&#0;",
        b"&#x1F;",
        b"&x;",
        b"</tu>",
        b"<tu>",
        b"<seg>",
        b"</seg>",
        b"<![CDATA[",
        b"]]>",
        b"<!--",
    ),
    *(
        b"<!DOCTYPE a [<!ENTITY a 'b'>]>",
        b'<?xml version="1.0" encoding="EUC-KR"?>',
        b"<tuv>",
        b"<ph>",
        b"</trans-unit>",
    ),
    *(b'"', b"\\", b"\\x", b"\\777", b"\n", b"\r", b"\r\n", b"\0", b"\t", b";", b",", b"|", b"#", b"sep=", b"'", b" "),
    *(b"{", b"}", b"[", b"]", b"[" * 2000, b'{"a":' * 500, b"1e999", b"null", b"msgid", b"msgstr[999]", b"plural=n/0;"),
    *(
        b"charset=UTF-16",
        b"charset=punycode",
        b"nplurals=1",
        b"\xff",
        b"\xc3",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
    ),
    *("\u2028".encode(), "\ufffe".encode(), "\x85".encode(), b"x" * 3000, b"a\n" * 300, b"\x1f\x8b", b"PK\x03\x04"),
]
# A damage: where (as a share of the file), how many bytes go, and what comes in their place.
DAMAGE = st.tuples(
    st.floats(0, 1), st.sampled_from([0, 0, 1, 2, 7, 60]), st.sampled_from(TOKENS) | st.binary(max_size=4)
)
DAMAGES = st.lists(DAMAGE, min_size=1, max_size=5)
fuzz = settings(max_examples=500, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


def damaged(content: bytes, damages: list[tuple[float, int, bytes]]) -> bytes:
    for share, gone, token in damages:
        place = int(share * len(content))
        content = content[:place] + token + content[place + gone :]
    return content


def check(read: Callable[[], object]) -> None:
    message = ""
    try:
        read()
    except TolkaError as error:
        message = str(error)
    assert "\n" not in message


def everything(path: Path, *, repaired: bool) -> None:
    """Read a file with both sides, as training does and as `mt-train --check` does."""
    reader = reader_of(path)
    assert reader
    source = reader(path, "t", Direction("en", "de"), (), LIMIT)
    if repaired:
        source.repair = lambda number, line: line.decode("cp1252", "replace")
    for pair in source.read():
        assert "\n" not in pair.source + pair.target
        (pair.source + pair.target + pair.flaw).encode()
    assert source.count() >= -1
    assert source.fingerprint()


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_files_with_both_sides(tmp_path: Path, name: str) -> None:
    @fuzz
    @given(DAMAGES, st.booleans())
    def run(damages: list[tuple[float, int, bytes]], repaired: bool) -> None:
        path = tmp_path / name
        path.write_bytes(damaged(FILES[name].encode("euc_kr" if name == "a.po" else "utf-8"), damages))
        check(lambda: everything(path, repaired=repaired))

    run()


@pytest.mark.slow
def test_sgm(tmp_path: Path) -> None:
    @fuzz
    @given(DAMAGES)
    def run(damages: list[tuple[float, int, bytes]]) -> None:
        paths = [tmp_path / "a.en.sgm", tmp_path / "a.de.sgm"]
        for path in paths:
            path.write_bytes(damaged(SGM.encode(), damages))
        files = SgmFiles(paths[0], paths[1], "a", LIMIT)
        check(lambda: [list(files.read()), files.count(), files.fingerprint()])

    run()


@pytest.mark.slow
@pytest.mark.parametrize("name", GLOSSARIES)
def test_glossaries(tmp_path: Path, name: str) -> None:
    @fuzz
    @given(DAMAGES)
    def run(damages: list[tuple[float, int, bytes]]) -> None:
        path = tmp_path / name
        path.write_bytes(damaged(GLOSSARIES[name].encode(), damages))
        check(lambda: read_glossary(path, Direction("en", "de"), LIMIT))

    run()


@pytest.mark.slow
def test_workbooks(tmp_path: Path) -> None:
    book, stream = pytest.importorskip("openpyxl").Workbook(), io.BytesIO()
    for row in (("en", "de"), ("a", "b"), (1, 2.5), ("", None)):
        book.active.append(row)
    book.save(stream)
    with zipfile.ZipFile(stream) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}

    @settings(fuzz, max_examples=30)  # each is read by processes of its own
    @given(DAMAGES, st.sampled_from(["", *members]))
    def run(damages: list[tuple[float, int, bytes]], member: str) -> None:
        """Damage a member, or the archive."""
        path = tmp_path / "a.xlsx"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name, damaged(content, damages) if name == member else content)
        if not member:
            path.write_bytes(damaged(path.read_bytes(), damages))
        check(lambda: everything(path, repaired=False))
        check(lambda: read_glossary(path, Direction("en", "de"), LIMIT))

    run()
