"""Files with both sides: every pair arrives, in order, and what is wrong has a file and a line."""

import bz2
import csv
import gzip
import json
import lzma
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_pass_cleaning import clean
from rows import each_row

from tolka.errors import ConfigError, DataError
from tolka.text.cleaning.cleaner import Tally
from tolka.text.cleaning.steps import CleaningConfig
from tolka.text.corpora.files import FilesConfig
from tolka.text.direction import Direction
from tolka.text.lines import LineLimit
from tolka.text.pairs import Pair, ParallelFiles
from tolka.text.readers import FORMATS, reader_of
from tolka.text.readers.xml_file import TmxFile

LANGUAGES = Direction("en", "de")
TMX = """<?xml version="1.0" encoding="{encoding}"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="en-US"><seg>One <bpt i="1">&lt;b&gt;</bpt>bold<ept i="1">&lt;/b&gt;</ept> word
&amp; more.</seg></tuv>
<tuv xml:lang="DE"><seg>Ein <hi>fettes</hi>
Wort.</seg></tuv></tu>
<tu tuid="2"><tuv xml:lang="en"><seg>Alone.</seg></tuv><tuv xml:lang="fr"><seg>Seul.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>First.</seg></tuv><tuv xml:lang="en"><seg>Second.</seg></tuv>
<tuv lang="de_AT"><seg>Erstes.</seg></tuv></tu>
</body></tmx>
"""
PO = r"""# a header
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"

#: a.c:1
msgid "Open"
msgstr "Öffnen"

#, fuzzy, c-format
msgid "Close %d"
msgstr "Schließt %d"

msgctxt "menu"
msgid ""
"Two "
"lines\n"
"and \"quotes\""
msgstr "Zwei\tZeilen"
msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d Datei"
msgstr[1] "%d Dateien"

#~ msgid "gone"
#~ msgstr "weg"
"""


def read(path: Path, columns: tuple[str, ...] = ()) -> list[Pair]:
    reader = reader_of(path)
    assert reader
    return list(reader(path, "t", LANGUAGES, columns).read())


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


PAIRS = [Pair("One.", "Eins."), Pair('"NA"', "zwei"), Pair("Three.", "")]


def as_csv(pairs: list[Pair]) -> str:
    return "id,en,de\n" + "".join(
        f'{n},"{p.source.replace(chr(34), chr(34) * 2)}","{p.target}"\n' for n, p in enumerate(pairs)
    )


def as_parquet(path: Path, pairs: list[Pair]) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"en": [p.source for p in pairs], "de": [p.target for p in pairs]}), path)
    return path


def as_workbook(path: Path, rows: Sequence[Sequence[object]]) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_every_format_gives_the_same_pairs(tmp_path: Path) -> None:
    rows = [(pair.source, pair.target) for pair in PAIRS]
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{s}</seg></tuv><tuv xml:lang="de"><seg>{t}</seg></tuv></tu>' for s, t in rows
    )
    quoted = [json.dumps(text, ensure_ascii=False) for row in rows for text in row]
    files = {
        ".tsv": write(tmp_path / "a.tsv", "en\tde\n" + "".join(f"{s}\t{t}\n" for s, t in rows)),
        ".jsonl": write(
            tmp_path / "a.jsonl", "".join(json.dumps(dict(zip(LANGUAGES, row, strict=True))) + "\n" for row in rows)
        ),
        ".tmx": write(tmp_path / "a.tmx", f"<tmx><body>{units}</body></tmx>"),
        ".po": write(
            tmp_path / "a.po",
            "".join(f"msgid {s}\nmsgstr {t}\n\n" for s, t in zip(quoted[::2], quoted[1::2], strict=True)),
        ),
        ".csv": write(tmp_path / "a.csv", as_csv(PAIRS)),
        ".parquet": as_parquet(tmp_path / "a.parquet", PAIRS),
        ".json": write(tmp_path / "a.json", json.dumps([dict(zip(LANGUAGES, row, strict=True)) for row in rows])),
        ".xlf": write(tmp_path / "a.xlf", XLIFF.format("".join(XLIFF_UNIT.format(s, t) for s, t in rows))),
        ".xlsx": as_workbook(tmp_path / "a.xlsx", [LANGUAGES, *rows]),
        ".xml": write(tmp_path / "a.xml", wmt([s for s, _ in rows], [t for _, t in rows])),
    }
    assert files.keys() == FORMATS.keys() - {".xliff", ".xlsb", ".xls", ".ods"}
    for path in files.values():
        flaw = "untranslated" if path.suffix in (".po", ".xlf") else ""
        assert read(path) == [replace(pair, flaw="" if pair.target else flaw) for pair in PAIRS], path
        reader = reader_of(path)
        assert reader
        source = reader(path, "t", LANGUAGES, ())
        assert (source.count() >= len(PAIRS), len(source.fingerprint())) == (True, 64)


XLIFF = '<xliff version="1.2"><file source-language="en" target-language="de-DE"><body>{}</body></file></xliff>'
XLIFF_UNIT = '<trans-unit id="1"><source>{}</source><target>{}</target></trans-unit>'


def wmt(source: list[str], *references: list[str]) -> str:
    """Return a test set of one document."""
    segments = ("".join(f'<seg id="{n}">{text}</seg>' for n, text in enumerate(side)) for side in (source, *references))
    tags = ['src lang="en"', *['ref lang="de" translator="A"'] * len(references)]
    sides = (f"<{tag}><p>{text}</p></{tag[:3]}>" for tag, text in zip(tags, segments, strict=True))
    return f'<dataset id="x"><doc id="1">{"".join(sides)}</doc></dataset>'


LONG = "x" * 101


@each_row(
    ("name", "content", "complaint"),
    [
        ("a.tsv", f"en\tde\na\tb\n{LONG}\tb\n", ":3: the line is longer"),
        ("a.jsonl", f'{{"en": "a", "de": "b"}}\n{{"en": "{LONG}", "de": "b"}}\n', ":2: the line is longer"),
        ("a.csv", f"en,de\na,b\n{LONG},b\n", ":3: the line is longer"),
        ("a.csv", 'en,de\na,b\n"' + "x\n" * 60, r":3: not CSV \(field larger than field limit \(100\)\)"),
        ("a.po", f'msgid "a"\nmsgstr "b"\n\nmsgid "{LONG}"\n', ":4: the line is longer"),
        ("a.po", 'msgid ""\n' + f'"{LONG[:60]}"\n' * 2, ":3: the msgid is longer"),
        ("a.tmx", f'<tmx>\n<tu><tuv xml:lang="en"><seg>{LONG}</seg></tuv></tu>', ":2: a segment is longer"),
        ("a.parquet", "", ", row 2: 'de' is longer"),
    ],
)
def test_a_text_beyond_the_limit(tmp_path: Path, name: str, content: str, complaint: str) -> None:
    path = write(tmp_path / name, content)
    if not content:
        as_parquet(path, [Pair("a", "b"), Pair("a", LONG)])
    reader = reader_of(path)
    assert reader
    with pytest.raises(DataError, match=f"{name}{complaint}"):
        list(reader(path, "t", LANGUAGES, (), LineLimit(100)).read())


@each_row(("ending", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)])
def test_compressed(tmp_path: Path, ending: str, pack: Any) -> None:
    path = write(tmp_path / f"a.tsv{ending}", pack(b"en\tde\na\tb\n"))
    assert read(path) == [Pair("a", "b")]
    path.write_bytes(path.read_bytes()[:-6])
    with pytest.raises(DataError, match=r"a.tsv.*: cannot be read"):
        read(path)


def test_zstandard(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    with pyarrow.output_stream(str(tmp_path / "a.tmx.zst"), compression="zstd") as stream:
        stream.write(TMX.format(encoding="UTF-8").encode())
    assert len(read(tmp_path / "a.tmx.zst")) == 4
    for ending, content in (("tsv", "en\tde\na\tb\n"), ("csv", "en,de\na,b\n"), ("jsonl", '{"en": "a", "de": "b"}\n')):
        with pyarrow.output_stream(str(tmp_path / f"a.{ending}.zst"), compression="zstd") as stream:
            stream.write(content.encode())
        assert read(tmp_path / f"a.{ending}.zst") == [Pair("a", "b")]
    sides = [tmp_path / f"a.{language}.zst" for language in LANGUAGES]
    for path in sides:
        with pyarrow.output_stream(str(path), compression="zstd") as stream:
            stream.write("하나\n둘\n".encode())
    assert list(ParallelFiles(sides[0], sides[1], "a").read()) == [Pair("하나", "하나"), Pair("둘", "둘")]
    write(tmp_path / "b.tsv.zst", b"no archive")
    with pytest.raises(DataError, match=r"b.tsv.zst.*: cannot be read"):
        read(tmp_path / "b.tsv.zst")


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16"])
def test_translation_memories(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path / "a.tmx", TMX.format(encoding=encoding).encode(encoding))
    pairs = read(path)
    assert pairs == [
        Pair("One bold word & more.", "Ein fettes Wort."),
        Pair("Alone.", "", "no pair in en and de (the first such unit is in en, fr)"),
        Pair("First.", "Erstes."),
        Pair("Second.", "Erstes.", "further variants not read"),
    ]
    reader = reader_of(path)
    assert reader
    assert reader(path, "t", LANGUAGES, ()).count() == 3
    tally = Tally()
    assert len(list(clean(pairs, CleaningConfig(), LANGUAGES, tally))) == 2
    left_out = "1 further variants not read, 1 no pair in en and de (the first such unit is in en, fr)"
    assert tally.summary() == f"4 pairs, 2 kept, 2 left out: {left_out}"


def test_many_units_across_blocks(tmp_path: Path) -> None:
    unit = '<tu a="{}"><tuv xml:lang="en"><seg>{}</seg></tuv><tuv xml:lang="de"><seg>{}</seg></tuv></tu>\n'
    body = "".join(unit.format(n, "x" * (n % 97), n) for n in range(5000))
    path = write(tmp_path / "a.tmx", f"<tmx><body>{body}</body></tmx>")
    assert [int(pair.target) for pair in read(path)] == list(range(5000))
    reader = reader_of(path)
    assert reader
    assert reader(path, "t", LANGUAGES, ()).count() == 5000


UNIT = """<tmx><body><tu><tuv xml:lang="en"><seg>An {}.</seg></tuv>
<tuv xml:lang="de"><seg>Ein {}.</seg></tuv></tu></body></tmx>"""


@each_row(
    ("encoding", "text"),
    [
        ("EUC-KR", "뷁 나는"),  # 뷁 is in Windows' extension of it alone
        ("Shift_JIS", "①日本"),  # likewise ①
        ("GB2312", "中国朱镕基"),  # likewise 镕
        ("Big5", "中國"),
        ("EUC-JP", "日本"),
        ("ISO-2022-JP", "日本"),
        ("windows-31j", "日本"),
        ("windows-1251", "Москва"),
        ("windows-874", "ไทย"),
        ("UTF-32", "日本"),
        ("utf-8-sig", "日本"),
    ],
)
def test_translation_memories_in_other_encodings(tmp_path: Path, encoding: str, text: str) -> None:
    codec = {"EUC-KR": "cp949", "Shift_JIS": "cp932", "GB2312": "gbk", "windows-31j": "cp932", "windows-874": "cp874"}
    unit = f'<tu><tuv xml:lang="en"><seg>An {text}.</seg></tuv><tuv xml:lang="de"><seg>{text}</seg></tuv></tu>\n'
    content = f'<?xml version="1.0" encoding="{encoding}"?>\n<tmx>{unit * 1000}</tmx>'  # more than a block is read
    path = write(tmp_path / "a.tmx", content.encode(codec.get(encoding, encoding)))
    assert read(path) == [Pair(f"An {text}.", text)] * 1000
    reader = reader_of(path)
    assert reader
    assert reader(path, "t", LANGUAGES, ()).count() == 1000


def test_a_byte_order_mark_weighs_more_than_what_is_declared(tmp_path: Path) -> None:
    content = f'<?xml version="1.0" encoding="EUC-KR"?>\n{UNIT.format("é", "ü")}'.encode("utf-8-sig")
    assert read(write(tmp_path / "a.tmx", content)) == [Pair("An é.", "Ein ü.")]


def tmx(path: Path, *units: str) -> list[Pair]:
    """Read a memory of units with one English and one German text: "<source>|<target>"."""
    rows = (unit.split("|") for unit in units)
    made = (
        f'<tu><tuv xml:lang="en"><seg>{s}</seg></tuv>\n<tuv xml:lang="de"><seg>{t}</seg></tuv></tu>' for s, t in rows
    )
    return read(write(path, f"<tmx>\n<body>{''.join(made)}</body></tmx>"))


@each_row(
    ("segment", "text"),
    [
        # Types and elements of TMX 1.4b, sections "type" and "Content markup".
        ('First line<ph x="1" type="lb"/>second line', "First line second line"),
        ('One<ph type="image"/>two', "One two"),
        ('One<ph type="x-tab"/>two', "One two"),
        ('One<ph type="pb">&lt;page/&gt;</ph>.', "One ."),
        ("One<ph>&lt;br/&gt;</ph>two", "One two"),
        ("One<ph>\\n</ph>two", "One two"),
        ("One<ph>\\t</ph>two", "One two"),
        ("One<ph>\n</ph>two", "One two"),
        ("One<it pos='begin'>&lt;p&gt;</it>two", "One two"),
        ("One<bpt i='1'>&lt;td&gt;</bpt>two<ept i='1'>&lt;/td&gt;</ept>three", "One two three"),
        ("One<ut>{\\line }</ut>two", "One two"),
        ("One<ph>&lt;text:s/&gt;</ph>two", "One two"),
        ("H<ph>&lt;s&gt;</ph>ello", "Hello"),
        ("One<ph>[1]</ph>two", "One two"),
        ("One<ph>[1]</ph>.", "One."),
        ("One <ph>[1]</ph> two", "One two"),
        ("(<ph>[1]</ph>one)", "(one)"),
        # What a reader of the program sees in its place stands in both languages.
        ("Hello <ph>{0}</ph>!", "Hello {0}!"),
        ("Hello <ph type='var'>%1$s</ph>, <ph> {{ name }} </ph>", "Hello %1$s, {{ name }}"),
        ("<ut>${name}</ut>: <ph>%(count)d</ph> of <ph>%d</ph>", "${name}: %(count)d of %d"),
        ("100<ph>%</ph> of <ph>{</ph>it", "100 of it"),
        # A highlighted part of a word.
        ("H<bpt i='1' type='bold'>&lt;b&gt;</bpt>e<ept i='1'>&lt;/b&gt;</ept>llo", "Hello"),
        ("H<bpt i='1'>{1}</bpt>e<ept i='1'>{1}</ept>llo", "Hello"),
        ("H<hi type='italic'>el</hi>lo", "Hello"),
        ("H<ph type='fmt'>&lt;i&gt;</ph>ello", "Hello"),
        ("H<ph>&lt;/b&gt;</ph>ello", "Hello"),
        ("H<ph>&lt;span class='x'&gt;</ph>ello", "Hello"),
        ("H<ut>{\\b </ut>e<ut>}</ut>llo", "Hello"),
        # The text of a code in a code is another text (a footnote, an image's description).
        ("One<bpt i='1'>&lt;a title='<sub>Two</sub>'&gt;</bpt> three", "One three"),
    ],
)
def test_inline_codes_part_what_they_separate(tmp_path: Path, segment: str, text: str) -> None:
    assert tmx(tmp_path / "a.tmx", f"{segment}|x") == [Pair(text, "x")]


@each_row(
    ("segment", "why"),
    [
        ("&#x1F;", "reference to invalid character number"),
        ("&#0;", "reference to invalid character number"),
        ("&#xD800;", "reference to invalid character number"),
        ("\x0b", "not well-formed (invalid token)"),
        ("black & white", "not well-formed (invalid token)"),
        ("AT&T", "not well-formed (invalid token)"),
        ("3 < 4", "not well-formed (invalid token)"),
        ("a <b> word", "mismatched tag"),
        ("\ufffe", "not well-formed (invalid token)"),
    ],
)
def test_what_is_no_xml_costs_its_unit(tmp_path: Path, segment: str, why: str) -> None:
    good = [f"s{n}|t{n}" for n in range(3000)]  # more than a block is read
    path = tmp_path / "a.tmx"
    pairs = tmx(path, *good, f"s|{segment}", *good, f"{segment}|t", "last|letztes")
    bad = [Pair(f"{path}:{line}", "", f"not XML ({why}; first in line 3003)") for line in (3003, 6003)]
    assert [pair for pair in pairs if pair.flaw] == bad
    assert [pair.source for pair in pairs if not pair.flaw] == [*(f"s{n}" for n in range(3000))] * 2 + ["last"]


def test_a_unit_that_is_not_closed_costs_no_other(tmp_path: Path) -> None:
    units = [UNIT[11:-13].format(text, text) for text in "abc"]
    body = "".join(units).replace("</tu>", "", 1)
    path = write(tmp_path / "a.tmx", f"<tmx><body>{body}</body></tmx>")
    flaw = "not XML (a unit that is not closed; first in line 2)"
    assert read(path) == [Pair(f"{path}:2", "", flaw), Pair("An b.", "Ein b."), Pair("An c.", "Ein c.")]


def test_bytes_of_another_encoding_cost_their_unit(tmp_path: Path) -> None:
    path, unit = tmp_path / "a.tmx", UNIT[len("<tmx><body>") : -len("</body></tmx>")]
    for encoding, why in (
        (
            "UTF-8",
            "not UTF-8, perhaps WINDOWS-1252; iconv -f WINDOWS-1252 -t UTF-8 "
            f"{path} > {tmp_path / 'a-utf8.tmx'} would convert the file",
        ),
        ("EUC-KR", "a byte that is not EUC-KR, which the file says it is in"),
    ):
        units = [unit.format(text, text).encode() for text in "abc"]
        units[1] = units[1].replace(b"b.", b"b\xff.")
        head = f'<?xml version="1.0" encoding="{encoding}"?><tmx><body>'.encode()
        pairs = read(write(path, head + b"".join(units) + b"</body></tmx>"))
        assert pairs == [
            Pair("An a.", "Ein a."),
            Pair(f"{path}:2", "", f"not XML ({why}; first in line 2)"),
            Pair("An c.", "Ein c."),
        ]


@each_row(
    ("target", "first"),
    [("de", "DE"), ("de-AT", "AT"), ("de_AT", "AT"), ("de-CH", "DE"), ("deu", "DE"), ("de-DE", "DE"), ("zh-CN", "")],
)
def test_a_variant_of_a_region_is_chosen_by_the_language_code(tmp_path: Path, target: str, first: str) -> None:
    variants = [("en-US", "US"), ("de-DE", "DE"), ("DE-AT", "AT"), ("de-DE", "second"), ("zh-TW", "TW")]
    tuvs = "".join(f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in variants)
    path = write(tmp_path / "a.tmx", f"<tmx><body><tu>{tuvs}</tu></body></tmx>")
    reader = reader_of(path)
    assert reader
    pairs = list(reader(path, "t", Direction("en", target), ()).read())
    assert [pair.target for pair in pairs if not pair.flaw] == ([first] if first else [])
    assert {pair.target for pair in pairs[1:]} == ({"DE", "AT", "second"} - {first} if first else set())


@each_row(
    ("target", "read"),
    [
        ("zh", ["cmn-CN", "zho", "zh_TW"]),
        ("zh-Hans", ["cmn-CN", "zho"]),
        ("no", ["nb-NO", "nob", "nor"]),
        ("nb", ["nb-NO", "nob", "nor"]),
        ("nn", ["nn-NO"]),
        ("sq", ["als"]),
        ("fa", ["pes", "prs-AF"]),
    ],
)
def test_a_language_has_the_codes_of_its_macrolanguage_and_of_its_usual_member(
    tmp_path: Path, target: str, read: list[str]
) -> None:
    codes = ["cmn-CN", "zho", "zh_TW", "yue-HK", "nb-NO", "nob", "nor", "nn-NO", "als", "aln", "pes", "prs-AF"]
    units = [
        f'<tu><tuv xml:lang="en"><seg>x</seg></tuv><tuv xml:lang="{code}"><seg>{code}</seg></tuv></tu>'
        for code in codes
    ]
    path = write(tmp_path / "a.tmx", f"<tmx><body>{''.join(units)}</body></tmx>")
    pairs = TmxFile(path, "t", Direction("en", target), ()).read()
    assert [pair.target for pair in pairs if not pair.flaw] == read


def test_two_varieties_of_one_language_are_told_apart(tmp_path: Path) -> None:
    tuvs = "".join(f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in (("en_US", "a"), ("EN-GB", "b")))
    unit = f"<tu>{tuvs}</tu>"
    path = write(tmp_path / "a.tmx", f"<tmx><body>{unit}{unit.replace('EN-GB', 'en')}</body></tmx>")
    files = path, write(tmp_path / "a.xlf", XLIFF.format(XLIFF_UNIT.format("b", "a")).replace('"en"', '"en-GB"'))
    files[1].write_text(files[1].read_text().replace("de-DE", "en-US"))
    for path in files:
        reader = reader_of(path)
        assert reader
        assert next(reader(path, "t", Direction("en-US", "en-GB"), ()).read()) == Pair("a", "b")
        assert next(reader(path, "t", Direction("en-GB", "en-US"), ()).read()) == Pair("b", "a")
    flawed = list(TmxFile(files[0], "t", Direction("en-GB", "en-US"), ()).read())[1:]
    assert flawed == [Pair("", "a", "no pair in en-GB and en-US (the first such unit is in en, en-us)")]


@pytest.mark.parametrize("doctype", ["", '<!DOCTYPE tmx SYSTEM "tmx14.dtd">'])
def test_undeclared_entities_have_html_s_meaning_or_are_refused(tmp_path: Path, doctype: str) -> None:
    path = write(tmp_path / "a.tmx", doctype + UNIT.format("caf&eacute;&nbsp;x&NotEqualTilde;", "&uuml;"))
    assert read(path) == [Pair("An café\xa0x≂̸.", "Ein ü.")]
    path = write(tmp_path / "b.tmx", doctype + UNIT.format("caf&eacut;", "caf&eacute;"))
    flaw = "not XML (undeclared entity &eacut;; first in line 1)"
    assert read(path) == [Pair(f"{path}:1", "", flaw)]
    tally = Tally()
    assert list(clean(read(path), CleaningConfig(), LANGUAGES, tally)) == []
    assert tally.summary() == f"1 pair, 0 kept, 1 left out: 1 {flaw}"


@each_row(
    ("content", "complaint"),
    [
        ("<tmx>\n<body>\n<tu>", r"a.tmx:3: not XML \(<body> has no end\); is the file complete\?"),
        ("<tmx>\n<body>\n</tmx>", r"a.tmx:3: not XML \(</tmx> ends what has not begun\)"),
        ("<html></html>", "no <tmx> is in it"),
        ("", "no <tmx> is in it"),
        ('<?xml version="1.0" encoding="x-klingon"?>', "a.tmx:1: the encoding 'x-klingon' is not known; allowed are"),
        ('<?xml version="1.0" encoding="hex"?>', "a.tmx:1: the encoding 'hex' is not known; allowed are UTF-8"),
    ],
)
def test_bad_translation_memories(tmp_path: Path, content: str | bytes, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        read(write(tmp_path / "a.tmx", content))


def test_gettext(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.po", PO)) == [
        Pair("Open", "Öffnen"),
        Pair("Close %d", "Schließt %d", "fuzzy translation"),
        Pair('Two lines and "quotes"', "Zwei\tZeilen"),
        Pair("%d file", "%d Datei"),
        Pair("%d files", "%d Dateien"),
    ]


@each_row(
    ("content", "complaint"),
    [
        ('msgid "a"\nmsgstr b\n', "a.po:2: a keyword and a text in quotes are expected"),
        ('"a"\n', "a.po:1: a keyword"),
        ('msgid "a"\nmsgid "b"\n', "a.po:2: a second msgid in one message"),
        ('msgid "a\n', "a.po:1: a keyword"),
    ],
)
def test_bad_gettext(tmp_path: Path, content: str, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        read(write(tmp_path / "a.po", content))


def test_columns_by_number_and_by_name(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", 'x\ta "b"\tc\ny\td\te\r\n')
    assert read(path, ("3", "2")) == [Pair("c", 'a "b"'), Pair("e", "d")]
    path = write(tmp_path / "b.tsv", "id\tGerman\tEnglish\n1\tb\ta\n")
    assert read(path, ("English", "German")) == [Pair("a", "b")]


@each_row(
    ("name", "content", "columns", "complaint"),
    [
        ("a.tsv", "a\tb\n", (), r"a.tsv:1: no column is called 'en'.*corpus.columns=\[1,2\]"),
        ("a.tsv", "a\tb\nc\n", ("1", "2"), "a.tsv:2: 1 column, and column 2 is wanted"),
        ("a.tsv", "a\tb\n", ("0", "1"), "columns are counted from 1"),
        ("a.tsv", "a\tb\n", ("1",), "must name two columns"),
        ("a.tsv", "en\tde\na\tb\xff\n".encode("latin-1"), (), "a.tsv:2: not UTF-8"),
        ("a.jsonl", '{"en": "a", "de": "b"}\n{"en": "a"\n', (), "a.jsonl:2: not JSON"),
        ("a.jsonl", '{"en": "a"}\n', (), "a.jsonl:1: no column is called 'de'"),
        ("a.jsonl", '{"en": "a", "de": 7}\n', (), "a.jsonl:1: 'de' holds 7, which is not text"),
        ("a.jsonl", "[1]\n", (), "a.jsonl:1: not an object such as"),
        ("a.jsonl", "[" * 100_000 + "\n", (), "a.jsonl:1: not JSON"),
        ("a.csv", "a,b\n1,2\n", (), "a.csv:1: no column is called 'en'"),
        ("a.csv", "", (), "a.csv:1: no column is called 'en'"),
        ("a.csv", 'en,de\n"a\nb,c\n', (), r"a.csv:2: not CSV \(unexpected end of data\); is a quotation mark"),
        ("a.csv", "en,de\na\n", (), "a.csv:2: 1 column, and column 2 is wanted"),
        ("a.parquet", "no parquet", (), "a.parquet: cannot be read as Parquet"),
        ("a.po", 'msgid "a"\nmsgstr "b"\n', ("1", "2"), "has no columns"),
        ("a.tmx", "<tmx></tmx>", ("1", "2"), "has no columns"),
    ],
)
def test_what_cannot_be_read(
    tmp_path: Path, name: str, content: str | bytes, columns: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises((DataError, ConfigError), match=complaint) as caught:
        read(write(tmp_path / name, content), columns)
    assert "\n" not in str(caught.value)


def test_commas_semicolons_and_quoted_cells(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'en;de\r\n"a;\nb";"say ""c"""\r\n\r\nNA;7\r\n')
    assert read(path) == [Pair("a; b", 'say "c"'), Pair("NA", "7")]
    assert read(path, ("1", "2"))[0] == Pair("en", "de")


def test_parquet_with_a_column_of_translations(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [{"en": "a\nb", "de": "c"}, None, {"en": None, "de": "d"}]
    parquet.write_table(pyarrow.table({"translation": rows}), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet") == [Pair("a b", "c"), Pair("", ""), Pair("", "d")]
    parquet.write_table(pyarrow.table({"translation": ["x"], "n": [1]}), tmp_path / "b.parquet")
    with pytest.raises(DataError, match="row 1: 'translation' holds 'x', not a text of each language"):
        read(tmp_path / "b.parquet")
    with pytest.raises(DataError, match="row 1: 'n' holds 1, which is not text"):
        read(tmp_path / "b.parquet", ("n", "translation"))
    whole = as_parquet(tmp_path / "c.parquet", PAIRS).read_bytes()
    with pytest.raises(DataError, match=r"c.parquet: cannot be read as Parquet"):
        read(write(tmp_path / "c.parquet", whole[:-9]))


def test_json_lines_in_both_shapes(tmp_path: Path) -> None:
    lines = ['{"translation": {"en": "a\\nb", "de": "c"}, "id": 1}', "", '{"en": null, "de": "d"}']
    assert read(write(tmp_path / "a.jsonl", "\n".join(lines))) == [Pair("a b", "c"), Pair("", "d")]
    path = write(tmp_path / "b.jsonl", '{"src": "a", "tgt": "b"}')
    assert read(path, ("src", "tgt")) == [Pair("a", "b")]


def test_half_a_character_is_a_flaw_of_its_pair(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"en": "a \\ud800 b", "de": "c"}\n{"en": "\\ud83d\\ude00", "de": "d"}\n')
    assert read(path) == [Pair("a \ufffd b", "c", "half a character"), Pair("\N{GRINNING FACE}", "d")]


BREAKS = st.text(st.sampled_from("ab \t\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\ufeff,;\"'\\|"), max_size=12)


@given(st.lists(st.tuples(BREAKS, BREAKS), min_size=1, max_size=5), st.sampled_from([".jsonl", ".csv", ".parquet"]))
def test_whatever_breaks_a_line_elsewhere_shifts_no_pair(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], ending: str
) -> None:
    path = tmp_path_factory.mktemp("breaks") / f"a{ending}"
    rows = [(f"x{a}x", f"y{b}y") for a, b in rows]
    if ending == ".jsonl":
        path.write_text("".join(json.dumps({"en": a, "de": b}, ensure_ascii=False) + "\n" for a, b in rows), newline="")
    elif ending == ".csv":
        with path.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows([LANGUAGES, *rows])
    else:
        as_parquet(path, [Pair(*row) for row in rows])
    assert [(pair.source, pair.target) for pair in read(path)] == rows


@given(st.sampled_from(sorted(FORMATS.keys() - {".parquet"})), st.binary(max_size=80))
def test_random_bytes_are_pairs_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, ending: str, content: bytes
) -> None:
    path = write(tmp_path_factory.mktemp("random") / f"a{ending}", content)
    try:
        found = read(path)
        assert "\n" not in "".join(pair.source + pair.target for pair in found)
        assert all((pair.source + pair.target).encode() is not None for pair in found)
    except DataError as error:
        assert "\n" not in str(error).rstrip()  # noqa: PT017


def corpus_of(
    folder: Path, *entries: str | list[str], columns: list[str] | None = None
) -> list[tuple[str, list[Pair]]]:
    config = FilesConfig(
        source="en", target="de", root=str(folder), train=list(entries), valid=list(entries), columns=columns or []
    )
    return [(source.name, list(source.read())) for source in config.open().train]


def test_files_by_pattern(tmp_path: Path) -> None:
    write(tmp_path / "b.tsv", "en\tde\n1\t1\n")
    write(tmp_path / "a.tsv.gz", gzip.compress(b"en\tde\n2\t2\n"))
    write(tmp_path / "c.en", "3\n")
    write(tmp_path / "c.de.xz", lzma.compress(b"3\n"))
    write(tmp_path / "notes.txt", "no pairs\n")
    assert corpus_of(tmp_path, "*") == [(n, [Pair(d, d)]) for n, d in (("a", "2"), ("b", "1"), ("c", "3"))]
    assert [name for name, _ in corpus_of(tmp_path, "c", "[ab].tsv*")] == ["c", "a", "b"]
    write(tmp_path / "d[1].en", "4\n")
    write(tmp_path / "d[1].de", "4\n")
    assert corpus_of(tmp_path, "d[1]") == [("d[1]", [Pair("4", "4")])]
    with pytest.raises(DataError, match=r"nothing is called .*/x\*: no file with both sides"):
        corpus_of(tmp_path, "x*")
    with pytest.raises(DataError, match=r"there is no file .*/x.tmx"):
        corpus_of(tmp_path, "x.tmx")


def test_an_ending_in_capitals_is_compressed_too(tmp_path: Path) -> None:
    path = write(tmp_path / "a.TSV.GZ", gzip.compress(b"en\tde\na\tb\n"))
    assert read(path) == [Pair("a", "b")]


def test_a_blank_line_of_a_tsv_is_a_blank_pair(tmp_path: Path) -> None:
    """Which cleaning leaves out, and counts."""
    assert read(write(tmp_path / "a.tsv", "en\tde\na\tb\n\n")) == [Pair("a", "b"), Pair("", "")]


def test_tabs_separate_a_csv_that_has_them(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.csv", "en\tde\na, or b\tc\n")) == [Pair("a, or b", "c")]


def test_a_quotation_mark_that_is_closed_much_later_takes_no_line_in_silence(tmp_path: Path) -> None:
    rows = "".join(f"a{n},b{n}\n" for n in range(30))
    pairs = read(write(tmp_path / "a.csv", f'en,de\nx,"y\n{rows}"\nc,d\n'))
    assert [pair.flaw for pair in pairs] == ["a cell of 20 lines or more", ""]
    assert pairs[0].target.startswith("y a0,b0 a1,b1")
    assert pairs[1] == Pair("c", "d")


def test_test_sets_of_wmt(tmp_path: Path) -> None:
    path = write(tmp_path / "a.xml", wmt(["a &amp; b", "c"], ["d", "e"], ["f", "g"]))
    further = "further references not read"
    assert read(path) == [Pair("a & b", "d"), Pair("a & b", "f", further), Pair("c", "e"), Pair("c", "g", further)]


@pytest.mark.parametrize("bad", ["b & c", "\x0b", "&#0;", "a <b> c", "1 < 2", "\ufffe"])
def test_what_is_no_xml_in_a_test_set_costs_its_document(tmp_path: Path, bad: str) -> None:
    sides = [f"s{n}" for n in range(5000)], [f"t{n}" for n in range(5000)]  # more than a block is read
    good = wmt(*sides).replace("<seg", "\n<seg")
    sides[1][2] = bad
    doc = wmt(*sides).replace("<seg", "\n<seg")
    doc = doc[doc.index("<doc") : doc.index("</dataset>")]
    path = write(tmp_path / "a.xml", good.replace("</dataset>", f"{doc}</dataset>"))
    *whole, broken = read(path)
    assert [pair.target for pair in whole] == [f"t{n}" for n in range(5000)]
    assert (broken.source, broken.flaw.partition("(")[0]) == (f"{path}:15004", "not XML ")


def test_a_segment_that_is_not_closed_costs_its_document(tmp_path: Path) -> None:
    good = wmt(["a"], ["b"])
    doc = good[good.index("<doc") : good.index("</dataset>")]
    for gone in ("</seg>", "</seg></p></src>", "</seg></p></ref>"):
        path = write(tmp_path / "a.xml", good.replace("</dataset>", f"\n{doc.replace(gone, '', 1)}{doc}</dataset>"))
        assert [pair.flaw.partition("(")[0] for pair in read(path)] == ["", "not XML ", ""], gone


SGM = """<srcset setid="newstest" srclang="any">
<DOC docid=d1 genre="news">
<p>
<seg id="1">A &amp; B.</seg> <seg id=2>One
two.</seg>
</p>
<hl><seg id="3"></seg></hl>
</DOC>
</srcset>"""


def test_segments_of_two_sgm_files(tmp_path: Path) -> None:
    write(tmp_path / "news.en.sgm", SGM)
    write(tmp_path / "news.de.sgm", SGM.replace("A &amp; B", "C").replace("srcset", "refset"))
    write(tmp_path / "ref.sgm.gz", gzip.compress(SGM.encode()))
    assert corpus_of(tmp_path, "news") == [
        ("news", [Pair("A & B.", "C."), Pair("One two.", "One two."), Pair("", "")]),
    ]
    ((name, pairs),) = corpus_of(tmp_path, ["news.en.sgm", "ref.sgm.gz"])
    assert (name, pairs[0]) == ("news.en.sgm", Pair("A & B.", "A & B."))
    write(tmp_path / "short.sgm", SGM.replace('<hl><seg id="3"></seg></hl>', ""))
    with pytest.raises(DataError, match=r"has segment 3 \(document 'd1', id '3'\) where .*short.sgm has the end"):
        corpus_of(tmp_path, ["news.en.sgm", "short.sgm"])
    write(tmp_path / "open.sgm", SGM.replace("two.</seg>", ""))
    with pytest.raises(DataError, match=r"open.sgm:7: segment 2 \(document 'd1', id '2'\) has no end before the next"):
        corpus_of(tmp_path, ["open.sgm", "open.sgm"])
    write(tmp_path / "none.txt", "text\n")
    with pytest.raises(DataError, match=r"none.txt: no <seg> is in it"):
        corpus_of(tmp_path, ["none.txt", "news.de.sgm"])


@each_row(
    "content",
    [
        '[{"en": "a", "de": "b"}, {"translation": {"en": "c", "de": "d"}}]',
        '{"version": "0.1", "data": [{"en": "a", "de": "b"},\n {"en": "c", "de": "d"}]}',
        '\ufeff[\n  {\n    "en": "a",\n    "de": "b"\n  },\n  {\n    "en": "c", "de": "d"}\n]\n',
        '{"en": "a", "de": "b"}\n{"en": "c", "de": "d"}\n',
    ],
)
def test_json_in_all_its_shapes(tmp_path: Path, content: str) -> None:
    assert read(write(tmp_path / "a.json", content)) == [Pair("a", "b"), Pair("c", "d")]


def test_a_long_list_in_one_line_of_json(tmp_path: Path) -> None:
    rows = [{"en": f"é{n}", "de": "x" * (n % 97)} for n in range(5000)]
    path = write(tmp_path / "a.json", json.dumps(rows, ensure_ascii=False))
    reader = reader_of(path)
    assert reader
    source = reader(path, "t", LANGUAGES, (), LineLimit(1000))
    assert [pair.source for pair in source.read()] == [row["en"] for row in rows]
    assert source.count() == 5000


@each_row(
    ("content", "complaint"),
    [
        ('[{"en": "a",\n"de": "b"},\n {"en": c}]', "a.json: not JSON .*line 3 "),
        ('[{"en": "a", "de": "b"}', "a.json: not JSON .*; is the file complete"),
        ('[{"en": "a", "de": "' + "b" * 200_000 + '"}]', "a.json, object 1: 'de' is longer than 100 bytes"),
        ("[" * 200_000, "a.json: not JSON "),
        ('["a"]', "a.json, object 1: not an object such as"),
        ('[{"en": "a", "de": "b"}]\n[{"en": "c", "de": "d"}]', "a.json: not JSON .*Extra data"),
        ('[{"en": "a", "de": "\xff"}]'.encode("latin-1"), "a.json: not UTF-8 "),
    ],
)
def test_json_that_cannot_be_read(tmp_path: Path, content: str | bytes, complaint: str) -> None:
    path = write(tmp_path / "a.json", content)
    reader = reader_of(path)
    assert reader
    with pytest.raises(DataError, match=complaint):
        list(reader(path, "t", LANGUAGES, (), LineLimit(100)).read())


@each_row("first", ["sep=;", "SEP=;", '"sep=;"', "\ufeffsep=;"])
def test_the_separator_that_excel_names_first(tmp_path: Path, first: str) -> None:
    path = write(tmp_path / "a.csv", f'{first}\r\nen;de\r\n"a, b, c";d\r\n')
    assert read(path) == [Pair("a, b, c", "d")]
    with pytest.raises(DataError, match=r"a.csv:3: 1 column, and column 2 is wanted"):
        read(write(tmp_path / "a.csv", f"{first}\nen;de\na\n"))
    with pytest.raises(DataError, match=r"a.csv:2: no column is called 'de'"):
        read(write(tmp_path / "a.csv", f"{first}\nen;german\na\n"))


def test_columns_of_one_file_among_others(tmp_path: Path) -> None:
    write(tmp_path / "named.tsv", "English\tGerman\na\tb\n")
    write(tmp_path / "tatoeba.tsv", "1\tc\t2\td\n")
    write(tmp_path / "many.txt", "e\tf\tCC-BY\n")
    write(tmp_path / "m.tmx", f"<tmx><body>{UNIT[11:-13]}</body></tmx>")
    assert corpus_of(tmp_path, "named.tsv", "m.tmx", columns=["English", "German"]) == [
        ("named", [Pair("a", "b")]),
        ("m", [Pair("An {}.", "Ein {}.")]),
    ]
    entries = (["named.tsv", "German", "English"], ["tatoeba.tsv", "2", "4"], ["many.txt", "1", "2"], "m.tmx")
    pairs = [pair for _, found in corpus_of(tmp_path, *entries) for pair in found]
    assert pairs == [Pair("b", "a"), Pair("c", "d"), Pair("e", "f"), Pair("An {}.", "Ein {}.")]
    assert corpus_of(tmp_path, "many.txt", columns=["1", "2"]) == [("many.txt", [Pair("e", "f")])]
    with pytest.raises(ConfigError, match=r"corpus.columns \(1, 2\): no file of .* has columns"):
        corpus_of(tmp_path, "m.tmx", columns=["1", "2"])
    with pytest.raises(ConfigError, match=r"m.tmx has no columns"):
        corpus_of(tmp_path, ["m.tmx", "1", "2"])
    with pytest.raises(DataError, match=r"corpus.train: there is no file .*/train$"):
        corpus_of(tmp_path, ["train", "1", "2"])
    with pytest.raises(DataError, match=r"many.txt is one file.*corpus.train=\[\[.*many.txt,1,2\]\]"):
        corpus_of(tmp_path, "many.txt")


def test_two_files_by_their_names(tmp_path: Path) -> None:
    write(tmp_path / "src-train.txt", "a\n")
    write(tmp_path / "tgt-train.txt", "b\n")
    assert corpus_of(tmp_path, ["src-train.txt", "tgt-train.txt"]) == [("src-train.txt", [Pair("a", "b")])]
    with pytest.raises(DataError, match=r"corpus.train: there is no file .*/tgt.txt"):
        corpus_of(tmp_path, ["src-train.txt", "tgt.txt"])
    with pytest.raises(ConfigError, match=r"corpus.train \(\[a,b,c,d\]\): a list in the list is"):
        corpus_of(tmp_path, ["a", "b", "c", "d"])
