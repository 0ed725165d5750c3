"""Settings are chosen by the size of a text."""

from pathlib import Path

import pytest

from tolka.auto.rules import FRESH, ROWS, choose, row_for
from tolka.auto.text_facts import TextFacts
from tolka.models.options import MODELS
from tolka.text.corpora.base import Corpus
from tolka.text.pairs import ParallelFiles


def text(pairs: int, words: float = 7.0) -> TextFacts:
    return TextFacts(pairs, words, 1.0, pairs, pairs, 500, False)


@pytest.mark.parametrize("family", ["any", "transformer", "rnn"])
@pytest.mark.parametrize("pairs", [1, 8, 1000, 10_000, 100_000, 10_000_000])
def test_every_size_has_settings_of_the_family_that_is_wanted(pairs: int, family: str) -> None:
    chosen = {choice.key: choice.value for choice in choose(text(pairs), family)}
    assert {*FRESH} == chosen.keys()
    name = MODELS.presets()[chosen["model"]].name  # type: ignore[attr-defined]
    assert family in ("any", name)


def test_rows_are_in_order_and_the_last_has_no_end() -> None:
    sizes = [row.words for row in ROWS]
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == float("inf")


def test_words_count_and_not_lines() -> None:
    assert row_for(text(2000, words=7)) != row_for(text(2000, words=20))


def write(folder: Path, sources: list[str], targets: list[str]) -> Corpus:
    for side, lines in (("xa", sources), ("xb", targets)):
        (folder / f"train.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    text = ParallelFiles(folder / "train.xa", folder / "train.xb", "train")
    return Corpus([[text]], [text], [])


def test_facts_of_a_text(tmp_path: Path) -> None:
    facts = TextFacts.of(write(tmp_path, ["a b c", "a b", "a b"], ["x", "y z u v", "y z u v"]))
    assert facts == TextFacts(pairs=3, words=11 / 3, distinct=2 / 3, vocabulary=8, read=3, validation=3, streamed=False)


def test_a_text_without_spaces_counts_its_characters(tmp_path: Path) -> None:
    facts = TextFacts.of(write(tmp_path, ["one two"], ["私" * 40]))
    assert facts.words == 20


def test_only_the_beginning_of_a_large_text_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tolka.auto.text_facts._MOST_READ", 10)
    facts = TextFacts.of(write(tmp_path, ["a"] * 50 + ["b"] * 50, ["x"] * 100))
    assert (facts.pairs, facts.read, facts.vocabulary) == (100, 10, 2)
