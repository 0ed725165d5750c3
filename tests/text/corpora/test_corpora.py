"""Pairs are kept or dropped together: no pair is ever made of two lines of different numbers."""

import codecs
import os
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st
from one_pass_cleaning import clean
from rows import each_row

from tolka.errors import ConfigError, DataError
from tolka.text.cleaning.cleaner import Tally, read_held_out
from tolka.text.cleaning.steps import CleaningConfig
from tolka.text.corpora.files import FilesConfig
from tolka.text.corpora.hub import HubConfig, HubSplit
from tolka.text.direction import Direction
from tolka.text.lines import LineLimit
from tolka.text.pairs import Pair, ParallelFiles


def files(folder: Path, source: bytes, target: bytes) -> ParallelFiles:
    paths = folder / "t.xa", folder / "t.xb"
    for path, content in zip(paths, (source, target), strict=True):
        path.write_bytes(content)
    return ParallelFiles(*paths, name="t")


def pairs(rows: list[tuple[str, str]]) -> list[Pair]:
    return [Pair(*row) for row in rows]


def test_unequal_line_counts_name_both(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        list(files(tmp_path, b"a\nb\nc\n", b"a\nb\n").read())
    assert "t.xa has 3 lines but" in str(caught.value)
    assert "t.xb has 2: line by line they are not pairs. Find the first line" in str(caught.value)


def test_nothing_is_read_before_the_counts_agree(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        next(files(tmp_path, b"a\nb\n", b"a\n").read())


def test_an_unfinished_last_line_counts(tmp_path: Path) -> None:
    assert list(files(tmp_path, b"a\nb", b"c\nd\n").read()) == pairs([("a", "c"), ("b", "d")])


@pytest.mark.parametrize(("source", "target", "named"), [(b"", b"a\n", "t.xa"), (b"a\n", b"", "t.xb")])
def test_an_empty_file(tmp_path: Path, source: bytes, target: bytes, named: str) -> None:
    with pytest.raises(DataError, match=f"{named}: the file is empty"):
        files(tmp_path, source, target).count()


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_the_same_file_twice(tmp_path: Path, link: object) -> None:
    (tmp_path / "t.xa").write_text("a\n")
    link(tmp_path / "t.xa", tmp_path / "t.xb")  # type: ignore[operator]
    with pytest.raises(DataError, match="are the same file"):
        ParallelFiles(tmp_path / "t.xa", tmp_path / "t.xb", name="t").count()


def test_a_side_in_utf_16(tmp_path: Path) -> None:
    assert list(files(tmp_path, "kettle\npebble\n".encode("utf-16"), b"a\nb\n").read()) == [
        Pair("kettle", "a"),
        Pair("pebble", "b"),
    ]


def test_a_blank_side_drops_the_pair_and_later_pairs_stay_aligned(tmp_path: Path) -> None:
    source = files(tmp_path, b"one\n\n three \nfour\n \nsix\n", b"een\ntwee\ndrie\n\t\n\nzes\n")
    tally = Tally()
    kept = list(clean(source.read(), CleaningConfig(), Direction("xa", "xb"), tally))
    assert kept == pairs([("one", "een"), ("three", "drie"), ("six", "zes")])
    assert tally.summary() == ("6 pairs, 3 kept, 3 left out: 1 blank on both sides, 1 blank source, 1 blank target")


def test_characters_that_other_readers_split_at_keep_the_pairs_aligned(tmp_path: Path) -> None:
    source = "a\u2028b\nc\u0085d\ne\rf\n\x0cg\r\n".encode()
    kept = list(files(tmp_path, source, b"1\n2\n3\n4\n").read())
    assert kept == pairs([("a\u2028b", "1"), ("c\u0085d", "2"), ("e\rf", "3"), ("\x0cg", "4")])


def test_a_split_with_nothing_left(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"no pair of corpus.valid has text on both sides \(2 pairs, 0 kept, 2 left out"
    ):
        read_held_out([files(tmp_path, b"\n\n", b"a\nb\n")], "corpus.valid", keeps_blank=False)


def test_a_split_keeps_long_lines(tmp_path: Path) -> None:
    source = files(tmp_path, b"a" * 100_000 + b"\n", b"b\n")
    for keeps_blank in (False, True):
        kept, tally = read_held_out([source], "corpus.valid", keeps_blank=keeps_blank)
        assert (len(kept[0].source), tally) == (100_000, Tally(kept=1))


def test_a_test_set_keeps_every_line_but_flaws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, tally = read_held_out([files(tmp_path, b"\n a\nb\n\n", b"1\n \n2\n\n")], "corpus.test", keeps_blank=True)
    assert kept == pairs([("", "1"), ("a", ""), ("b", "2"), ("", "")])
    assert tally == Tally(kept=4)
    with pytest.raises(DataError, match=r"no pair of corpus.test has text on both sides \(2 pairs, 2 kept\)"):
        read_held_out([files(tmp_path, b"\n\n", b"a\nb\n")], "corpus.test", keeps_blank=True)
    flawed = tmp_path / "flawed"
    flawed.mkdir()
    source = files(flawed, b"old\nnew\n", b"alt\nneu\n")
    pair, other = source.read()
    monkeypatch.setattr(source, "read", lambda: iter([replace(pair, flaw="fuzzy translation"), other]))
    kept, tally = read_held_out([source], "corpus.test", keeps_blank=True)
    assert (kept, tally.dropped) == ([other], {"fuzzy translation": 1})


def test_a_row_of_a_data_set_has_the_ceiling_of_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tolka.text.corpora.hub.LINE_LIMIT", LineLimit(4))
    config = HubConfig(source="xa", target="xb", path="some/name")
    rows = Dataset.from_list([{"xa": "four", "xb": "1"}, {"xa": "a", "xb": "five5"}])
    monkeypatch.setattr("tolka.text.corpora.hub._load", lambda config, split: rows)
    pairs = HubSplit(config, "train", config.direction).read()
    assert next(pairs) == Pair("four", "1")
    with pytest.raises(DataError, match=r"some/name \(train\), row 1: 'xb' is longer than 4 bytes"):
        next(pairs)


@each_row("code", ["", "../x", "a/b", "x a"])
def test_language_codes(code: str) -> None:
    with pytest.raises(ConfigError, match="must be a language code"):
        FilesConfig(source=code)
    with pytest.raises(ConfigError, match="must be a language code"):
        HubConfig(target=code)


def test_identical_languages() -> None:
    with pytest.raises(ConfigError, match=r"corpus.source and corpus.target are both 'xa'; they must differ"):
        FilesConfig(source="xa", target="xa")


@pytest.mark.parametrize("prefix", ["", "/", "."])
def test_a_prefix_without_a_name(prefix: str) -> None:
    with pytest.raises(ConfigError, match="must be the prefix of two files"):
        FilesConfig(train=[prefix], valid=["valid"]).open()


def test_a_prefix_in_the_home_folder(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(corpus))
    found = FilesConfig(source="xa", target="xb", train=["~/train"], valid=["~/valid"]).open()
    assert (found.train[0].count(), found.valid[0].count()) == (60, 8)


SIDES = st.binary(max_size=30) | st.text("ab \r\n\u2028\u0085\ufeff\x1c", max_size=30).map(str.encode)


@given(SIDES, SIDES)
def test_any_bytes_give_aligned_pairs_or_a_data_error(source: bytes, target: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = list(files(Path(folder), source, target).read())
        except DataError:
            return
    assert [(pair.source, pair.target) for pair in found] == list(
        zip(rows_by_hand(source), rows_by_hand(target), strict=True)
    )


def rows_by_hand(content: bytes) -> list[str]:
    rows = content.removeprefix(codecs.BOM_UTF8).split(b"\n")
    if rows[-1] == b"" and content.endswith(b"\n"):
        rows.pop()
    return [row.removesuffix(b"\r").decode() for row in rows]


class TestHub:
    """A local folder in the shape of a data set of the Hub."""

    def open(self, folder: Path, **options: object) -> list[Pair]:
        config = HubConfig(source="xa", target="xb", path=str(folder), **options)  # type: ignore[arg-type]
        return list(config.open().train[0].read())

    @staticmethod
    def jsonl(folder: Path, *rows: str) -> Path:
        for split in ("train", "validation", "test"):
            (folder / f"{split}.jsonl").write_text("\n".join(rows), encoding="utf-8")
        return folder

    def test_language_columns(self, tmp_path: Path) -> None:
        folder = self.jsonl(tmp_path, '{"xa": "one", "xb": "een"}', '{"xa": "two\\nlines", "xb": null}')
        assert self.open(folder) == pairs([("one", "een"), ("two lines", "")])

    def test_a_translation_column(self, tmp_path: Path) -> None:
        folder = self.jsonl(tmp_path, '{"translation": null}', '{"translation": {"xb": "een", "xa": "one"}}')
        assert self.open(folder) == pairs([("", ""), ("one", "een")])

    def test_a_saved_dataset_dict(self, tmp_path: Path) -> None:
        import datasets

        split = datasets.Dataset.from_dict({"translation": [{"xa": "one", "xb": "een"}]})
        whole = datasets.DatasetDict({"train": split, "validation": split, "test": split})
        whole.save_to_disk(str(tmp_path / "saved"))
        assert self.open(tmp_path / "saved") == pairs([("one", "een")])

    def test_parquet(self, tmp_path: Path) -> None:
        import datasets

        for split in ("train", "validation", "test"):
            rows = datasets.Dataset.from_dict({"xa": [split], "xb": ["een"]})
            rows.to_parquet(str(tmp_path / f"{split}-00000-of-00001.parquet"))
        assert self.open(tmp_path) == pairs([("train", "een")])

    def test_a_missing_column_is_named_with_the_nearest(self, tmp_path: Path) -> None:
        folder = self.jsonl(tmp_path, '{"xa": "one", "xbb": "een"}')
        with pytest.raises(DataError, match=r"\(train\): no column is called 'xb'. Did you mean 'xbb'"):
            self.open(folder)

    def test_a_column_of_numbers(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"row 0: 'xb' holds 7, which is not text"):
            self.open(self.jsonl(tmp_path, '{"xa": "one", "xb": 7}'))

    def test_a_translation_column_of_texts(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="'translation' holds 'een', not a text of each language"):
            self.open(self.jsonl(tmp_path, '{"translation": "een"}'))

    def test_a_missing_split_is_one_line(self, tmp_path: Path) -> None:
        folder = self.jsonl(tmp_path, '{"xa": "one", "xb": "een"}')
        with pytest.raises(DataError, match=r"\(split dev\) could not be loaded") as caught:
            self.open(folder, valid=["dev"])
        assert "\n" not in str(caught.value)


def test_files_in_place_of_splits_are_called_as_they_are(tmp_path: Path) -> None:
    for name in ("train", "validation", "newstest"):
        for language in ("xa", "xb"):
            (tmp_path / f"{name}.{language}").write_text(f"{name}\n")
    options: dict[str, Any] = {"path": "a/b", "root": str(tmp_path), "test": ["newstest"]}
    corpus = HubConfig("xa", "xb", **options).open()
    names = [[source.name for source in each] for each in (corpus.train, corpus.valid, corpus.tests)]
    assert names == [["train"], ["validation"], ["newstest"]]


def test_a_weight_for_each_text(tmp_path: Path) -> None:
    for name in ("a", "b"):
        for language in ("xa", "xb"):
            (tmp_path / f"{name}.{language}").write_text("x\n")
    options: dict[str, Any] = {"root": str(tmp_path), "train": ["a", "b"], "valid": ["a"]}
    assert len(FilesConfig("xa", "xb", **options, weights=[1, 2]).open().entries) == 2
    with pytest.raises(ConfigError, match=r"corpus.weights has 3 numbers and corpus.train 2 texts"):
        FilesConfig("xa", "xb", **options, weights=[1, 2, 3]).open()


@pytest.mark.parametrize("entry", ["train.en", "train.de.gz", "tr*.en"])
def test_a_prefix_that_names_a_side_is_told_to_leave_it_out(tmp_path: Path, entry: str) -> None:
    for language in ("en", "de"):
        (tmp_path / f"train.{language}").write_text("a\n", encoding="utf-8")
    config = FilesConfig(source="en", target="de", root=str(tmp_path), train=[entry], valid=["train"])
    side = ".de" if "de" in entry else ".en"
    with pytest.raises(DataError, match=f"; leave out {side}: a prefix stands for both sides"):
        config.open()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_pipe_is_called_one(tmp_path: Path) -> None:
    for name in ("train.en", "train.de", "all.tsv"):
        os.mkfifo(tmp_path / name)
    for entry in ("train", "all.tsv"):
        config = FilesConfig(source="en", target="de", root=str(tmp_path), train=[entry], valid=["train"])
        with pytest.raises(DataError, match="it is a pipe or a device, and must be a file"):
            config.open()


@pytest.mark.parametrize("typed", ["a.txt,b.txt", "a,b,c"])
def test_a_list_without_brackets(tmp_path: Path, typed: str) -> None:
    config = FilesConfig(source="en", target="de", root=str(tmp_path), train=[typed], valid=["auto"])
    meant = f"corpus.train=[{typed}], or [[{typed}]] for two files of one text"
    with pytest.raises(ConfigError, match=re.escape(f"({typed}): a list has brackets: {meant}")):
        config.open()
    (tmp_path / f"{typed}.en").touch()  # a comma in a name
    (tmp_path / f"{typed}.de").touch()
    assert len(config.open().train) == 1


def test_what_is_typed_in_place_of_a_text_is_named(tmp_path: Path) -> None:
    def complaint(train: str) -> str:
        with pytest.raises((ConfigError, DataError)) as error:
            FilesConfig("xa", "xb", root=str(tmp_path), train=[train], valid=["valid"]).open()
        return str(error.value)

    for name in ("valid.xa", "valid.xb", "memory.tmx", "notes.txt"):
        (tmp_path / name).write_text("a\n")
    assert "(https://x.org/a.tmx) names what is elsewhere" in complaint("https://x.org/a.tmx")
    assert "(opus:Books) names what is elsewhere" in complaint("opus:Books")
    (tmp_path / "folder").mkdir()
    assert f"{tmp_path / 'folder'} is a folder; it has no text of xa and xb" in complaint("folder")
    assert "is a folder; type corpus.train=" in complaint(f"../{tmp_path.name}")
    (tmp_path / "text.docx").write_bytes(b"PK\x03\x04 a")
    assert f"{tmp_path / 'text.docx'}: this is a Word document, not plain text; save it as plain" in complaint(
        "text.docx"
    )
    os.mkfifo(tmp_path / "pipe")
    assert "it is a pipe or a device" in complaint("pipe")


def test_all_that_is_missing_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        FilesConfig("xa", "xb", root=str(tmp_path), train=["one"], valid=["two"], test=["three"]).open()
    assert [name for name in ("one", "two", "three") if f"there is no {tmp_path}/{name}.xa" in str(error.value)] == [
        "one",
        "two",
        "three",
    ]
