"""Sentences shown to people."""

import json
from pathlib import Path

import pytest

from tolka.run.results import choose_sentences, show
from tolka.search.greedy import GreedyConfig
from tolka.text.pairs import Pair
from tolka.translation.opening import open_model


def test_a_short_a_middling_and_a_long_one() -> None:
    pairs = [Pair(" ".join(["word"] * (1 + n * 7 % 10)), "x") for n in range(10)]
    assert [len(sentence.split()) for sentence in choose_sentences(pairs)] == [2, 6, 10]
    assert choose_sentences(pairs[:1]) == ["word"]
    assert choose_sentences([]) == []


@pytest.mark.slow
def test_what_is_written_replaces_what_was_there(trained: Path, tmp_path: Path) -> None:
    translator = open_model(trained, GreedyConfig())
    folder = tmp_path / "shown"
    folder.mkdir()
    (folder / "01.png").write_bytes(b"of an earlier version")
    show(translator, ["ferry .", "lantern ."], {"ferry .": "fjon ."}, folder)
    assert sorted(path.name for path in folder.iterdir()) == ["01.json", "02.json"]
    first, second = (json.loads((folder / f"0{n}.json").read_text("utf-8")) for n in (1, 2))
    assert (first["source"], first["reference"], "reference" in second) == ("ferry .", "fjon .", False)
    assert first["translation"] == translator(["ferry ."])[0]
    assert first["maps"][0]["columns"][-1] == "</s>"
    show(translator, ["harbour ."], {}, folder)
    assert sorted(path.name for path in folder.iterdir()) == ["01.json"]
    assert json.loads((folder / "01.json").read_text("utf-8"))["source"] == "harbour ."
