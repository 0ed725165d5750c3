"""Faults that were planted are found, named and counted right."""

import random
from pathlib import Path

import pytest

from tolka.text.cleaning_steps import CleaningConfig
from tolka.text.corpora.files import FilesConfig
from tolka.text.corpus import Pair, ParallelFiles
from tolka.text.doctor import Diagnosis, HeldOut, Leaks, diagnose

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


def examined(source: ParallelFiles, held_out: HeldOut | None = None, **cleaning: object) -> Diagnosis:
    return diagnose(source, ("en", "de"), CleaningConfig(**cleaning), held_out or HeldOut({}))  # type: ignore[arg-type]


def counts(found: Diagnosis) -> dict[str, int]:
    return {finding.what: finding.count for finding in found.findings}


def test_good_text_has_nothing_wrong(tmp_path: Path) -> None:
    found = examined(write(tmp_path, text(3000)))
    assert (counts(found), found.shift, found.pairs, found.kept.kept) == ({}, None, 3000, 3000)
    assert found.source.lengths == sorted(found.source.lengths)
    assert 3000 * 4 <= found.source.words <= 3000 * 21


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
        "test: source in the training text": 50,
        "test: whole pair in the training text": 30,
    }
    first = found["test: source in the training text"]
    assert (first.looked_at, first.examples[0][0]) == (150, 101)


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
    lines[9] = "GrÃ¶ÃŸe\n".encode()
    lines[10] = "Gr\ufffd\ufffde\n".encode()
    (tmp_path / "train.de").write_bytes(b"".join(lines))
    found = examined(source)
    assert counts(found)["target not UTF-8"] == 2
    assert counts(found)["broken encoding"] == 2
    (bad,) = [finding for finding in found.findings if finding.what == "target not UTF-8"]
    assert [(number, target) for number, _, target in bad.examples] == [(4, "Größe und Maß"), (78, "Größe und Maß")]


def test_other_languages(tmp_path: Path) -> None:
    pytest.importorskip("py3langid")
    french = "Ceci est une phrase écrite en français, et elle est assez longue."
    german = "Dies ist ein ganz gewöhnlicher deutscher Satz, und er ist lang genug."
    english = "This is a perfectly ordinary English sentence, and it is long enough."
    pairs = [Pair(f"{english} {n}", f"{french if n % 33 == 0 else german} {n}") for n in range(1000)]
    found = examined(write(tmp_path, pairs))
    assert counts(found) == {"target surely in another language": 31}
    assert found.target.languages == pytest.approx({"de": 0.969, "fr": 0.031})


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


def test_what_the_settings_keep(tmp_path: Path) -> None:
    source = write(tmp_path, [Pair("a", "b"), Pair("a", "b"), Pair("c", "")])
    assert examined(source, duplicates="exact").kept.summary() == (
        "3 pairs, 1 kept, 2 left out: 1 blank target, 1 duplicate"
    )
    assert FilesConfig(source="en", target="de", root=str(tmp_path), train=["train"], valid=["train"]).open().train


def test_every_line_is_in_the_histogram_of_its_side(tmp_path: Path) -> None:
    found = examined(write(tmp_path, [*text(200), Pair("", "b"), Pair("a" * 10_000, "b")]))
    for side in (found.source, found.target):
        assert sum(side.histogram.counts) == found.pairs == 202
    assert found.source.histogram.starts == found.target.histogram.starts
    assert found.as_dict()["target"]["histogram"]["counts"][0] >= 2
