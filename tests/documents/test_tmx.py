"""Translation memories: which units get a translation, and where."""

from pathlib import Path

from made_translations import EN_DE, identity, translated

from tolka.documents.units import Tmx
from tolka.text.readers.xml_file import TmxFile

MEMORY = """<?xml version="1.0"?>
<tmx version="1.4"><header srclang="en-US"/><body>
<tu>
  <tuv xml:lang="en-US"><seg>A <bpt i="1">&lt;b></bpt>red<ept i="1">b</ept> <hi>cat</hi></seg></tuv>
  <tuv xml:lang="fr"><seg>Un chat</seg></tuv>
</tu>
<tu><tuv xml:lang="EN"><seg>Two</seg></tuv><tuv xml:lang="de-DE"><seg>Zwei</seg></tuv></tu>
<tu><tuv xml:lang="fr"><seg>Trois</seg></tuv></tu>
<tu><tuv xml:lang="de"><seg/></tuv><tuv xml:lang="en"><seg>Four</seg></tuv></tu>
</body></tmx>
"""


def memory(path: Path) -> Tmx:
    path.write_text(MEMORY, newline="")
    document = Tmx(path)
    document.direction = EN_DE
    return document


def test_units_that_lack_the_target_get_it(tmp_path: Path) -> None:
    new = '<tuv xml:lang="de" creationtool="tolka"><seg>'
    new += 'A <bpt i="1">&lt;b></bpt>RED<ept i="1">b</ept> <hi>CAT</hi></seg></tuv>'
    expected = MEMORY.replace('  <tuv xml:lang="fr"><seg>Un', f'  {new}\n  <tuv xml:lang="fr"><seg>Un')
    expected = expected.replace("<seg/>", "<seg>FOUR</seg>")
    assert translated(memory(tmp_path / "a.tmx"), str.upper) == expected
    (tmp_path / "b.tmx").write_text(expected)
    pairs = [pair for pair in TmxFile(tmp_path / "b.tmx", "b", EN_DE, []).read() if not pair.flaw]
    assert [(pair.source, pair.target) for pair in pairs] == [
        ("A red cat", "A RED CAT"),
        ("Two", "Zwei"),
        ("Four", "FOUR"),
    ]


def test_an_identity_translator_gives_the_same_bytes_back(tmp_path: Path) -> None:
    assert identity(memory(tmp_path / "a.tmx")) == MEMORY.encode()


def test_why_units_stay(tmp_path: Path) -> None:
    left = [(text.source, text.reason) for text in memory(tmp_path / "a.tmx").texts()]
    assert [each for each in left if each[1] not in ("", "edit")] == [
        ("Two", "translated already"),
        ("Trois", "in another language"),
    ]


def test_the_source_is_what_the_file_says_where_the_models_is_unknown(tmp_path: Path) -> None:
    memory(tmp_path / "a.tmx")
    assert [text.source for text in Tmx(tmp_path / "a.tmx").texts() if not text.reason] == ["A red cat"]
    (tmp_path / "b.tmx").write_text(MEMORY.replace('srclang="en-US"', 'srclang="*all*"'))
    first = ["A red cat", "Two", "Trois"]  # of the last one, it is empty
    assert [text.source for text in Tmx(tmp_path / "b.tmx").texts() if not text.reason] == first
