"""Held-out sets that are taken out of the training text: the same each time, and nothing of them is trained on."""

import gzip
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from rows import each_row

from tolka.errors import ConfigError, DataError
from tolka.text.cleaning.cleaner import Tally, judge, set_aside_marks
from tolka.text.cleaning.steps import CleaningConfig
from tolka.text.corpora.base import Corpus, SetSize
from tolka.text.corpora.files import FilesConfig
from tolka.text.corpora.hub import HubConfig
from tolka.text.direction import Direction
from tolka.text.held_out import hold_out_sets
from tolka.text.pairs import Pair

ROWS = [(f"source {n}", f"target {n}") for n in range(1000)]


def config(folder: Path, train: list[str], **options: Any) -> FilesConfig:
    return FilesConfig(source="xa", target="xb", root=str(folder), train=[*train], **options)


def split(config: FilesConfig, cache: str = "cache") -> Corpus:
    return hold_out_sets(config.open(), Path(config.root) / cache)[0]


def write_tsv(path: Path, rows: list[tuple[str, str]]) -> None:
    content = "xa\txb\n" + "".join(f"{source}\t{target}\n" for source, target in rows)
    path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())


def pairs(corpus: Corpus) -> tuple[list[Pair], list[Pair]]:
    valid, test = ([pair for source in sources for pair in source.read()] for sources in (corpus.valid, corpus.tests))
    return valid, test


def trained_on(corpus: Corpus, held_out: list[Pair]) -> tuple[list[Pair], Tally]:
    """What is left of the training text."""
    tally = Tally()
    text = [pair for source in corpus.train for pair in source.read()]
    marks = set_aside_marks(held_out)
    return list(judge(text, CleaningConfig(), Direction("xa", "xb"), tally, lambda *_: None, frozenset(), marks)), tally


@pytest.mark.parametrize(
    ("asked", "least", "most"), [("50", 50, 50), ("auto", 100, 100), ("0.1", 70, 130), (".5", 440, 560)]
)
def test_sets_are_disjoint_and_nothing_of_them_is_trained_on(tmp_path: Path, asked: str, least: int, most: int) -> None:
    write_tsv(tmp_path / "all.tsv", ROWS)
    corpus = split(config(tmp_path, ["all.tsv"], valid=[asked], test=["20"]))
    valid, test = pairs(corpus)
    assert least <= len(valid) <= most  # auto: 200, but at most a tenth; a share: four deviations around it
    assert len(test) == 20
    left, tally = trained_on(corpus, valid + test)
    assert sorted((pair.source, pair.target) for pair in left + valid + test) == sorted(ROWS)
    assert tally.dropped == {"set aside": len(valid) + 20}


def test_nothing_with_a_source_or_target_of_theirs_is_trained_on(tmp_path: Path) -> None:
    write_tsv(tmp_path / "all.tsv", ROWS)
    (held,), _ = pairs(split(config(tmp_path, ["all.tsv"], valid=["1"])))
    copies = [
        (f"<b>{held.source.upper()}</b>!", held.target),
        (held.source, "another target"),
        ("another source", f"{held.target} &amp;"),
    ]
    write_tsv(tmp_path / "all.tsv", [*ROWS, *copies])
    corpus = split(config(tmp_path, ["all.tsv"], valid=["1"]))
    left, tally = trained_on(corpus, [held])
    assert tally.dropped == {"set aside": 2, "source set aside": 1, "target set aside": 1}
    assert len(left) == 999


def test_the_same_text_gives_the_same_sets(tmp_path: Path) -> None:
    write_tsv(tmp_path / "all.tsv", ROWS)
    write_tsv(tmp_path / "first.tsv", ROWS[::-1][:400])
    write_tsv(tmp_path / "rest.tsv.gz", ROWS[::-1][400:])
    whole, parts = config(tmp_path, ["all.tsv"], valid=["30"]), config(tmp_path, ["*t.tsv*"], valid=["30"])
    expected = pairs(split(whole))[0]
    assert pairs(split(whole, "elsewhere"))[0] == expected
    assert pairs(split(parts))[0] == expected  # in other files and another order
    written = sorted(tmp_path.glob("cache/held-out-*/valid.x*"))
    assert len(written) == 4
    for path in written:  # found again, not made again
        path.write_text("kept\n", encoding="utf-8")
    assert pairs(split(whole))[0] == [Pair("kept", "kept")]


def test_a_share_of_a_text_that_has_grown_holds_the_one_before(tmp_path: Path) -> None:
    write_tsv(tmp_path / "some.tsv", ROWS[:600])
    write_tsv(tmp_path / "all.tsv", ROWS)
    some, more = (pairs(split(config(tmp_path, [name], valid=["0.1"])))[0] for name in ("some.tsv", "all.tsv"))
    assert set(some) == set(more) & {Pair(*row) for row in ROWS[:600]}


def test_given_sets_share_nothing_with_those_set_aside(tmp_path: Path) -> None:
    write_tsv(tmp_path / "all.tsv", ROWS)
    write_tsv(tmp_path / "test.tsv", [(f"Source {n}!", "x") for n in range(500)])
    corpus = split(config(tmp_path, ["all.tsv"], valid=["0.2"], test=["test.tsv"]))
    valid, test = pairs(corpus)
    assert len(test) == 500
    assert valid
    assert min(int(pair.source.split()[1]) for pair in valid) >= 500


def test_only_what_is_worth_scoring_is_chosen(tmp_path: Path) -> None:
    good = [(f"a good source {n}", f"a good target {n}") for n in range(20)]
    bad = [("", "x"), ("x", " "), ("a" * 100, "b"), ("a\x07", "b"), ("c" * 2001, "d" * 2001), good[0], good[0]]
    write_tsv(tmp_path / "all.tsv", bad * 6 + good)
    valid, _ = pairs(split(config(tmp_path, ["all.tsv"], valid=["20"])))
    assert sorted((pair.source, pair.target) for pair in valid) == sorted(good)


@each_row("asked", ["0", "1.5", "0.51", "-0.1", "-3", "0.0", "1e3"])
def test_what_is_no_size(tmp_path: Path, asked: str) -> None:
    with pytest.raises(ConfigError, match=rf"corpus.valid \({asked}\) must be the name of a text, or .*\(0.01, at mo"):
        config(tmp_path, ["x.tsv"], valid=[asked]).open()
    with pytest.raises(ConfigError, match=rf"corpus.test \({asked}\)"):
        HubConfig(path="x", test=[asked]).open()


@pytest.mark.parametrize("asked", ["10", "40", "auto"])
def test_all_that_differ_are_not_set_aside(tmp_path: Path, asked: str) -> None:
    write_tsv(tmp_path / "all.tsv", ROWS[:10] * 20)
    with pytest.raises(DataError, match=r"sets (10|20|40) of the .* of which only 10 differ"):
        split(config(tmp_path, ["all.tsv"], valid=[asked]))
    corpus = split(config(tmp_path, ["all.tsv"], valid=["9"]))
    assert len(trained_on(corpus, pairs(corpus)[0])[0]) == 20


@pytest.mark.parametrize("asked", ["501", "1e-9"])
def test_more_than_half_and_nothing_are_refused(tmp_path: Path, asked: str) -> None:
    write_tsv(tmp_path / "all.tsv", ROWS)
    with pytest.raises(DataError, match=rf"corpus.valid \({asked}\) sets (501|0) of the training text's 1000 pairs as"):
        split(config(tmp_path, ["all.tsv"], valid=[asked]))


def test_names_are_no_sizes(tmp_path: Path) -> None:
    """What is there under that name is meant, and a list is always one of names."""
    assert [SetSize.of("valid", entries) for entries in ([], ["a"], ["2023", "2024"], ["data/1"])] == [None] * 4
    for name in ("2024.tsv", "2024.xa", "2024.xb", "all.tsv"):
        write_tsv(tmp_path / name, ROWS[:3])
    corpus = config(tmp_path, ["all.tsv"], valid=["2024"]).open()
    assert (corpus.sizes, corpus.valid[0].count()) == ({}, 4)


def test_a_stream_has_no_share() -> None:
    for key in ("valid", "test"):
        with pytest.raises(ConfigError, match=rf"corpus.{key} \(auto\): of a stream"):
            HubConfig(path="x", streaming=True, **{key: ["auto"]})  # type: ignore[arg-type]


def test_hub_data_sets_and_other_kinds_of_files(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    rows = {"xa": [row[0] for row in ROWS], "xb": [row[1] for row in ROWS]}
    datasets.DatasetDict({"train": datasets.Dataset.from_dict(rows)}).save_to_disk(str(tmp_path / "hub"))
    (tmp_path / "all.jsonl").write_text("".join(json.dumps({"xa": a, "xb": b}) + "\n" for a, b in ROWS))
    unit = '<tu><tuv xml:lang="xa"><seg>{}</seg></tuv><tuv xml:lang="xb"><seg>{}</seg></tuv></tu>'
    (tmp_path / "all.tmx").write_text(f"<tmx><body>{''.join(unit.format(*row) for row in ROWS)}</body></tmx>")
    hub = HubConfig(source="xa", target="xb", path=str(tmp_path / "hub"), valid=["40"], test=[]).open()
    sets = [pairs(hold_out_sets(hub, tmp_path / "cache")[0])[0]]
    sets += [pairs(split(config(tmp_path, [f"all.{ending}"], valid=["40"])))[0] for ending in ("jsonl", "tmx")]
    assert len(sets[0]) == 40
    assert sets[0] == sets[1] == sets[2]


def test_of_running_text_blocks_are_held_out(tmp_path: Path) -> None:
    """Ten lines in a row are about the same thing, and the next ten about another; of mixed lines each is alone."""
    rows = [(f"the story of hero{n // 10} goes on {n}", f"target {n}") for n in range(2000)]
    write_tsv(tmp_path / "story.tsv", rows)
    said: list[str] = []
    running = config(tmp_path, ["story.tsv"], valid=["100"], test=["60"])
    corpus, _ = hold_out_sets(running.open(), tmp_path / "cache", said.append)
    assert len(said) == 1
    assert re.search(r"belong together, as 90\.\d% of them and 0\.0% of distant ones .*: blocks of 20 lines", said[0])
    places = [[int(pair.source.split()[-1]) for pair in side] for side in pairs(corpus)]
    assert [len(each) for each in places] == [100, 60]
    for each in places:
        blocks = [each[start : start + 20] for start in range(0, len(each), 20)]
        assert [block == list(range(block[0], block[0] + 20)) for block in blocks] == [True] * len(blocks)
        assert all(block[0] % 20 == 0 for block in blocks)
    assert not {*places[0]} & {*places[1]}
    # The second time from the cache, with the same words.
    assert hold_out_sets(running.open(), tmp_path / "cache", said.append)[0].valid[0].count() == 100
    assert said[0] == said[1]
    write_tsv(tmp_path / "mixed.tsv", random.Random(1).sample(rows, len(rows)))
    alone, _ = hold_out_sets(config(tmp_path, ["mixed.tsv"], valid=["100"]).open(), tmp_path / "cache", said.append)
    assert len(said) == 2
    assert len({int(pair.source.split()[-1]) // 20 for pair in pairs(alone)[0]}) > 50


def test_a_line_that_comes_twice_is_held_out_once_of_blocks_too(tmp_path: Path) -> None:
    rows = [(f"the story of hero{n // 10} goes on", f"target {n // 2}") for n in range(400)]
    write_tsv(tmp_path / "story.tsv", rows)
    valid, _ = pairs(split(config(tmp_path, ["story.tsv"], valid=["40"])))
    assert len(valid) == len({*valid}) == 40
