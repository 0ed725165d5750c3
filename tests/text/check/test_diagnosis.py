"""Faults that were planted are found, named and counted right."""

import random
from pathlib import Path

import pytest

from tolka.errors import DataError
from tolka.text.check.diagnosis import Diagnosis, HeldOut, Leaks, diagnose
from tolka.text.cleaning.steps import CleaningConfig, changes_of
from tolka.text.direction import Direction
from tolka.text.pairs import EBIBLE_VERSES, Pair, PairSource, ParallelFiles
from tolka.text.readers.columns import CsvFile, TsvFile
from tolka.text.readers.gettext import GettextFile
from tolka.text.readers.json_files import JsonFile, JsonLinesFile

WORDS = [
    "quick",
    "brown",
    "foxes",
    "jump",
    "over",
    "lazy",
    "dogs",
    "while",
    "friends",
    "walk",
    "slowly",
    "home",
    "again",
]
GERMAN = [
    "braune",
    "hunde",
    "springen",
    "weil",
    "freunde",
    "langsam",
    "durch",
    "ihren",
    "garten",
    "zum",
    "fluss",
    "gehen",
]


def text(pairs: int, seed: int = 1) -> list[Pair]:
    """Sentences of three to twenty words, as long as each other."""
    draw = random.Random(seed)
    rows = []
    for number in range(pairs):
        length = draw.randint(3, 20)
        sides = (" ".join(draw.choice(words) for _ in range(length)) for words in (WORDS, GERMAN))
        rows.append(Pair(*(f"{side} {number}." for side in sides)))
    return rows


def write(folder: Path, pairs: list[Pair]) -> ParallelFiles:
    for language, lines in (("en", [p.source for p in pairs]), ("de", [p.target for p in pairs])):
        (folder / f"train.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return ParallelFiles(folder / "train.en", folder / "train.de", "train")


def examined(source: PairSource, held_out: HeldOut | None = None) -> Diagnosis:
    return diagnose(source, Direction("en", "de"), held_out or HeldOut({}))


def counts(found: Diagnosis) -> dict[str, int]:
    return {finding.what: finding.count for finding in found.findings}


@pytest.mark.slow
def test_good_text_has_nothing_wrong(tmp_path: Path) -> None:
    found = examined(write(tmp_path, text(3000)))
    assert (counts(found), found.shift, found.pairs) == ({}, None, 3000)
    assert found.source.lengths == sorted(found.source.lengths)
    assert found.source.words is not None
    assert 3000 * 4 <= found.source.words <= 3000 * 21


@pytest.mark.slow
def test_leaks(tmp_path: Path) -> None:
    pairs = text(2000)
    leaked = [
        Pair(pair.source.upper(), pair.target if n < 30 else "etwas anderes") for n, pair in enumerate(pairs[100:150])
    ]
    held_out = HeldOut({"test": [*text(100, seed=2), *leaked], "valid": text(50, seed=3)})
    examined(write(tmp_path, pairs), held_out)
    leaks = held_out.leaks(["test"])
    assert (leaks.sources, leaks.pairs, held_out.leaks(["valid"])) == (50, 30, Leaks())
    found = {finding.what: finding for finding in leaks.findings}
    assert {what: finding.count for what, finding in found.items()} == {
        "test: source in the training text, translated otherwise": 20,
        "test: whole pair in the training text": 30,
    }
    first = found["test: source in the training text, translated otherwise"]
    assert (first.looked_at, first.examples[0][0]) == (150, 131)


@pytest.mark.parametrize(("markup", "pairs"), [("keep", 1), ("strip", 2)])
def test_leaks_are_looked_for_after_the_changes_that_training_makes(tmp_path: Path, markup: str, pairs: int) -> None:
    training = [*text(5), Pair("Press <b>OK</b>", "<b>OK</b> drücken"), Pair("Same &amp; same", "Gleich &amp; gleich")]
    held = [Pair("Press OK", "OK drücken"), Pair("Same &amp; same", "Gleich &amp; gleich")]
    held_out = HeldOut({"test": held}, changes_of(CleaningConfig(markup=markup)))
    examined(write(tmp_path, training), held_out)
    assert held_out.leaks(["test"]).pairs == pairs


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["en", "de"])
def test_half_of_a_file_shifted_by_a_line(tmp_path: Path, missing: str) -> None:
    source = write(tmp_path, text(4000))
    path = tmp_path / f"train.{missing}"
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:2000] + lines[2001:]), encoding="utf-8")
    found = examined(source)
    more = "target" if missing == "en" else "source"
    assert counts(found)[f"lines that the {more} has more than the other side"] == 1
    assert found.shift is not None
    assert abs(found.shift.first - 2001) <= 3
    assert found.shift.lines == (1 if missing == "en" else -1)


def test_mixed_encodings(tmp_path: Path) -> None:
    pairs = text(500)
    source = write(tmp_path, pairs)
    lines = (tmp_path / "train.de").read_bytes().splitlines(keepends=True)
    for number in (3, 77):
        lines[number] = "Größe und Maß\n".encode("latin-1")
    (tmp_path / "train.de").write_bytes(b"".join(lines))
    assert counts(examined(source))["target not UTF-8"] == 2
    lines[9] = "GrÃ¶ÃŸe\n".encode()
    lines[10] = "Gr\ufffd\ufffde\n".encode()
    lines[11] = "\x84Nein\x93\n".encode()
    (tmp_path / "train.de").write_bytes(b"".join(lines))
    found = examined(source)
    assert counts(found)["target not UTF-8, others are"] == 2
    assert counts(found)["broken encoding"] == 3
    (bad,) = [finding for finding in found.findings if finding.what.startswith("target not UTF-8")]
    assert bad.encoding == "WINDOWS-1252"
    assert [(number, target) for number, _, target in bad.examples] == [(4, "Größe und Maß"), (78, "Größe und Maß")]


def test_other_languages(tmp_path: Path) -> None:
    pytest.importorskip("py3langid")
    french = "Ceci est une phrase écrite en français, et elle est assez longue."
    german = "Dies ist ein ganz gewöhnlicher deutscher Satz, und er ist lang genug."
    english = "This is a perfectly ordinary English sentence, and it is long enough."
    pairs = [Pair(f"{english} {n}", f"{french if n % 33 == 0 else german} {n}") for n in range(1000)]
    found = examined(write(tmp_path, pairs))
    assert counts(found) == {"target surely in another language": 31}
    assert found.findings[0].looked_at == found.pairs == 1000  # as of every other kind of problem
    assert found.target.languages == pytest.approx({"de": 0.969, "fr": 0.031})


def test_the_share_of_lines_in_another_language_is_that_of_all_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("py3langid")
    french = "Ceci est une phrase écrite en français, et elle est assez longue."
    pairs = [Pair(f"No {n}.", f"Nein {n}.") for n in range(90)] + [Pair("A good word", french)] * 10
    found = {each.what: each for each in examined(write(tmp_path, pairs)).findings}
    other = found["target surely in another language"]
    assert (other.count, other.looked_at) == (10, 100)
    monkeypatch.setattr("tolka.text.check.diagnosis._IDENTIFIED_PAIRS", 10)  # one in ten
    found = {each.what: each for each in examined(write(tmp_path, pairs)).findings}
    other = found["target surely in another language"]
    assert (other.count, other.looked_at) == (1, 10)


def test_short_lines_are_identified_together(tmp_path: Path) -> None:
    """Half of these are too short, or like another language's, to be told alone."""
    pytest.importorskip("py3langid")
    english = ["I love you.", "No.", "Tom is here now.", "Can you see a man on the hill?", "It was in the garden."]
    german = ["Ja.", "Er kam an.", "Das ist gut.", "Ein Mann steht im Garten.", "Wo ist der Hund?"]
    pairs = [Pair(*texts) for texts in zip(english * 100, german * 100, strict=True)]
    found = examined(write(tmp_path, pairs))
    assert found.source.languages["en"] > 0.95
    assert found.target.languages["de"] > 0.95


def test_each_fault_is_counted_once(tmp_path: Path) -> None:
    pairs = text(300)
    planted = {
        "a blank side": Pair("a", ""),
        "control or invisible characters": Pair("a\u200bb c d", "e f g"),
        "markup": Pair("<b>bold</b> words here", "<b>fette</b> worte hier"),
        "source copied to the target": Pair("the very same", "The very same"),
        "few letters": Pair("1 2 3 4 a", "1 2 3 4 b"),
        "numbers that differ": Pair("it has 7 legs", "es hat 8 beine"),
        "another script": Pair("a good word", "хорошее слово"),
        "one side over 9 times as long": Pair("a", "b " * 60),
        "over 2000 characters": Pair("word " * 500, "wort " * 450),
        "a pair that came before": pairs[5],
        "nearly a pair that came before": Pair(pairs[6].source.upper(), pairs[6].target),
    }
    found = examined(write(tmp_path, [*pairs, *planted.values()]))
    assert counts(found) == dict.fromkeys(planted, 1)
    for number, (what, pair) in enumerate(planted.items(), 301):
        (finding,) = [finding for finding in found.findings if finding.what == what]
        assert finding.examples == [(number, pair.source.strip(), pair.target.strip())]
        assert finding.looked_at == 311


def test_every_line_is_in_the_histogram_of_its_side(tmp_path: Path) -> None:
    found = examined(write(tmp_path, [*text(200), Pair("", "b"), Pair("a" * 10_000, "b")]))
    for side in (found.source, found.target):
        assert sum(side.histogram.counts) == found.pairs == 202
    assert found.source.histogram.starts == found.target.histogram.starts
    assert found.target.histogram.counts[0] >= 2


def test_lines_that_are_no_rows_of_a_file_with_both_sides(tmp_path: Path) -> None:
    """Counted, with all else, instead of ending the examination at the first."""
    rows = [f"{pair.source}\t{pair.target}".encode() for pair in text(40)]
    rows[7:7] = [b"one column", "Ma\xdf\tnot UTF-8".encode("latin-1"), b"", "Ma\u00df\tUTF-8".encode()]
    (tmp_path / "all.tsv").write_bytes(b"\n".join(rows) + b"\n")
    source = TsvFile(tmp_path / "all.tsv", "all", Direction("en", "de"), ["1", "2"])
    found = examined(source)
    assert found.pairs == 44
    faults = {what: count for what, count in counts(found).items() if not what.startswith("numbers")}
    assert faults == {"line not UTF-8, others are": 1, "a flaw that the file itself names": 1, "a blank side": 1}
    with pytest.raises(DataError, match=r"all.tsv:8: 1 column, "):
        list(source.read())
    (tmp_path / "all.csv").write_bytes("de\u00e9,en,de\nx,a,b\n".encode("latin-1"))
    first = examined(CsvFile(tmp_path / "all.csv", "all", Direction("en", "de"), []))
    assert counts(first) == {"line not UTF-8": 1}  # read once, counted once
    (tmp_path / "all.jsonl").write_text('{"en": "a", "de": "b"}\n{"en": "a"\n{"en": "a"}\n', encoding="utf-8")
    assert counts(examined(JsonLinesFile(tmp_path / "all.jsonl", "all", Direction("en", "de"), []))) == {
        "a flaw that the file itself names": 2
    }


def test_line_ends_of_old_macs_are_told_of(tmp_path: Path) -> None:
    source = write(tmp_path, [Pair("one\rtwo\rthree", "eins\rzwei\rdrei"), Pair("four", "vier")])
    assert counts(examined(source))["a carriage return inside a line"] == 1
    (tmp_path / "a.jsonl").write_text('{"en": "a\\rb", "de": "c"}\n', encoding="utf-8")
    found = examined(JsonLinesFile(tmp_path / "a.jsonl", "a", Direction("en", "de"), []))
    assert counts(found)["a carriage return inside a text"] == 1  # whose end it is not


def test_an_error_in_a_file_of_messages_is_refused(tmp_path: Path) -> None:
    good = 'msgid "{0}"\nmsgstr "{0}"\n\n'
    for error in (
        'msgid "x\nmsgstr "y"\n\n',
        'msgid "x"\nmsgstr y\n',
        'msgid "x"\nmsgid "y"\nmsgstr "z"\n',
        'msgid "x"\nmsgstr "y" z\n',
    ):
        (tmp_path / "a.po").write_text(good.format("a") + error + good.format("b"), encoding="utf-8")
        source = GettextFile(tmp_path / "a.po", "a", Direction("en", "de"), [])
        with pytest.raises(DataError, match=r"a.po:[45]: "):  # as msgfmt, which makes nothing of such a file
            list(source.read())


def test_what_is_no_row_is_shown_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('en,de\n"a\n b"\n', encoding="utf-8")
    (tmp_path / "a.json").write_text('[[{"en": "a",\n "de": "b"}]]', encoding="utf-8")
    for reader in (CsvFile, JsonFile):
        name = "a.csv" if reader is CsvFile else "a.json"
        (finding,) = examined(reader(tmp_path / name, "a", Direction("en", "de"), [])).findings
        assert "\n" not in finding.examples[0][1], name


def test_verses_that_a_translation_lacks_are_no_fault_and_no_shift(tmp_path: Path) -> None:
    verses = text(1200)
    missing = [Pair(pair.source, "") for pair in text(EBIBLE_VERSES - 1200, seed=2)]
    found = examined(write(tmp_path, [*missing[:30_000], *verses, *missing[30_000:]]))
    assert (found.pairs, found.shift) == (1200, None)
    assert "a blank side" not in counts(found)
    # A shift is told by the lines of the file.
    moved = [*verses[:600], *(Pair(*both) for both in shifted(verses[600:]))]
    found = examined(write(tmp_path, [*missing[:30_000], *moved, *missing[30_000:], missing[0]][:EBIBLE_VERSES]))
    assert found.shift is not None
    assert abs(found.shift.first - 30_600) < 20


def shifted(pairs: list[Pair]) -> list[tuple[str, str]]:
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    return [*zip(sources, [targets[-1], *targets[:-1]], strict=True)]


def test_a_spelling_that_few_use_is_counted_and_words_are_where_there_are_blanks(tmp_path: Path) -> None:
    pairs = [Pair("你好。", "Știința"), Pair("你好.", "Ştiinţa şi"), Pair("再见。", "da")]
    found = diagnose(write(tmp_path, pairs), Direction("zh", "ro"), HeldOut({}))
    assert {what: count for what, count in counts(found).items() if "spelling" in what} == {
        "source in another spelling: half-width marks": 1,
        "target in another spelling: ş, ţ for ș, ț": 1,
    }
    assert (found.source.words, found.target.words) == (None, 4)
