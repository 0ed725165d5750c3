"""From two files to ids: what is kept is what the files say, and nothing is made twice."""

import gzip
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tolka.data import prepare as prepare_module
from tolka.data.buckets import BatchingConfig
from tolka.data.prepare import REJECTED, Prepared, prepare
from tolka.errors import DataError
from tolka.text.cleaning import Tally
from tolka.text.cleaning_steps import CleaningConfig
from tolka.text.corpora.files import FilesConfig
from tolka.text.tokenizer import TokenizerConfig


def prepared(
    corpus: Path, max_length: int = 64, vocab_size: int = 320, cleaning: dict[str, Any] | None = None, **options: object
) -> Prepared:
    config = FilesConfig(
        source="xa",
        target="xb",
        root=str(corpus),
        train=["train"],
        valid=["valid"],
        **options,  # type: ignore[arg-type]
    )
    batching = BatchingConfig(tokens=512, max_length=max_length)
    tokenizer = TokenizerConfig(vocab_size=vocab_size)
    return prepare(config.open(), config, CleaningConfig(**cleaning or {}), tokenizer, batching, corpus / "cache")


def texts(found: Prepared) -> list[str]:
    return found.tokenizer.decode_target([found.store.target(i).tolist() for i in range(len(found.store))])


def add(corpus: Path, source: str, target: str) -> None:
    for language, line in (("xa", source), ("xb", target)):
        with (corpus / f"train.{language}").open("a", encoding="utf-8", newline="") as stream:
            stream.write(line + "\n")


def test_the_store_holds_the_text_in_order(corpus: Path) -> None:
    found = prepared(corpus)
    assert texts(found) == (corpus / "train.xb").read_text().splitlines()
    assert found.tally == Tally(kept=60)


def test_a_blank_line_drops_its_pair_and_no_other(corpus: Path) -> None:
    before = (corpus / "train.xb").read_text().splitlines()
    add(corpus, "", "orphan")
    add(corpus, "ferry .", "fjon .")
    found = prepared(corpus)
    assert texts(found) == [*before, "fjon ."]
    assert found.tally == Tally(61, Counter({"blank source": 1}))


def test_long_lines_are_counted_by_reason(corpus: Path) -> None:
    add(corpus, "a" * 100_000, "fjon")
    add(corpus, "ferry", "fjon " * 65)
    found = prepared(corpus)
    assert found.tally == Tally(60, Counter({"over 2000 characters": 1, "over 64 pieces": 1}))
    rejected = [line.split("\t") for line in (found.folder / REJECTED).read_text("utf-8").splitlines()]
    assert [row[0] for row in rejected] == ["over 2000 characters", "over 64 pieces"]
    assert rejected[1][1:] == ["ferry", ("fjon " * 65).strip()]


def test_a_piece_limit_is_a_ceiling_that_may_be_reached(corpus: Path) -> None:
    found = prepared(corpus)
    longest = max(found.store.source_lengths.max(), found.store.target_lengths.max())
    assert prepared(corpus, max_length=int(longest)).tally.kept == 60
    assert prepared(corpus, max_length=int(longest) - 1).tally.kept < 60


def test_what_was_made_is_reused_until_text_or_settings_change(corpus: Path) -> None:
    first = prepared(corpus)
    again = prepared(corpus)
    assert (first.reused, again.reused, first.folder) == (False, True, again.folder)
    others = [
        prepared(corpus, max_length=63),
        prepared(corpus, vocab_size=310),
        prepared(corpus, cleaning={"duplicates": "exact"}),
    ]
    add(corpus, "ferry .", "fjon .")
    others.append(prepared(corpus))
    assert not any(other.reused for other in others)
    assert len({first.folder, *(other.folder for other in others)}) == 5


def test_gzip_and_plain_text_give_the_same_ids(corpus: Path) -> None:
    plain = prepared(corpus)
    for language in ("xa", "xb"):
        path = corpus / f"train.{language}"
        (corpus / f"train.{language}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    packed = prepared(corpus)
    assert packed.store.source_ids.tolist() == plain.store.source_ids.tolist()
    assert packed.store.target_ids.tolist() == plain.store.target_ids.tolist()


def test_nothing_left_after_cleaning(corpus: Path) -> None:
    (corpus / "train.xa").write_text("\n \n")
    (corpus / "train.xb").write_text("a\nb\n")
    with pytest.raises(DataError, match=r"no training pair is left after cleaning \(2 pairs, 0 kept, 2 left out"):
        prepared(corpus)
    assert not list((corpus / "cache").iterdir())


def test_nothing_short_enough(corpus: Path) -> None:
    with pytest.raises(DataError, match=r"no training pair fits batching.max_length \(1\)"):
        prepared(corpus, max_length=1)


def test_an_error_in_the_middle_leaves_no_store(corpus: Path) -> None:
    with (corpus / "train.xa").open("ab") as stream:
        stream.write(b"k\xe4ttle\n")
    with (corpus / "train.xb").open("ab") as stream:
        stream.write(b"mirka\n")
    with pytest.raises(DataError, match=r"train.xa:61: not UTF-8 \(byte 0xe4 at column 2\)"):
        prepared(corpus)
    assert not list((corpus / "cache").iterdir())


def test_a_damaged_report_says_what_to_delete(corpus: Path) -> None:
    (prepared(corpus).folder / "report.json").write_text('{"counts": {}}')
    with pytest.raises(DataError, match=r"report.json is damaged .*; delete the folder"):
        prepared(corpus)


def test_two_runs_at_once_make_a_store_once(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second waits, and finds it made."""
    made, waits = [], Event()
    make = prepare_module._make

    def slowly(folder: Path, *rest: Any) -> None:
        made.append(folder)
        assert waits.wait(timeout=60)
        make(folder, *rest)

    def told(message: str) -> None:
        assert message == "waiting for another process that prepares the same text"
        waits.set()

    monkeypatch.setattr(prepare_module, "_make", slowly)
    monkeypatch.setattr(prepare_module, "say", told)
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(prepared, [corpus, corpus])
    assert len(made) == 1
    assert sorted([first.reused, second.reused]) == [False, True]
    assert texts(first) == texts(second)
