"""mt-translate --attention DIR and alignments=true."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tolka.report.attention import write_maps
from tolka.text.direction import Direction

Command = Callable[..., Any]
LINES = b"ferry lantern .\n\nvelvet\n"


@pytest.mark.slow
def test_a_page_and_the_numbers_of_each_line(command: Command, trained: Path, tmp_path: Path) -> None:
    plain = command("mt-translate", trained, stdin=LINES)
    outcome = command("mt-translate", trained, "--attention", tmp_path / "a" / "maps", stdin=LINES)
    assert (outcome.code, outcome.out) == (0, plain.out)
    assert f"attention maps: {tmp_path}/a/maps (3 lines)" in outcome.err
    names = sorted(path.name for path in (tmp_path / "a" / "maps").iterdir())
    assert names == [
        "000001.html",
        "000001.json",
        "000002.json",
        "000003.html",
        "000003.json",
    ]  # nothing to lay out of a blank
    first = json.loads((tmp_path / "a" / "maps" / "000001.json").read_text(encoding="utf-8"))
    assert (first["source"], first["translation"]) == ("ferry lantern .", plain.out.splitlines()[0])
    (shown,) = first["maps"]
    assert (shown["map"], shown["head"], shown["rows"][-1], shown["columns"][-1]) == (
        "decoder.0.cross",
        "mean",
        "</s>",
        "</s>",
    )
    assert all(sum(row) == pytest.approx(1.0, abs=1e-4) for row in shown["weights"])
    page = (tmp_path / "a" / "maps" / "000001.html").read_text(encoding="utf-8")
    assert '<h1 dir="auto">ferry lantern .</h1>' in page
    assert "decoder.0.cross, mean over the heads" in page
    assert page.count("<td style=") == len(shown["rows"]) * len(shown["columns"])
    assert f'title="{shown["weights"][0][0]:.2f}"' in page


def test_alignments_follow_a_tab(command: Command, trained: Path) -> None:
    plain = command("mt-translate", trained, stdin=LINES).out.splitlines()
    outcome = command("mt-translate", trained, "alignments=true", stdin=LINES)
    assert outcome.code == 0
    for line, text in zip(outcome.out.splitlines(), plain, strict=True):
        translation, pairs = line.rsplit("\t", 1)
        assert translation == text
        targets = [int(pair.split("-")[1]) for pair in pairs.split()]
        assert targets == list(range(len(targets)))
        assert bool(targets) is (text != "")


def test_a_map_that_is_too_large_has_its_numbers_alone(tmp_path: Path) -> None:
    names = ["a"] * 300
    maps = [{"map": "m", "rows": names, "columns": names[:2], "weights": [[0.0] * 2] * 300}]
    write_maps(tmp_path / "01", "<s>", "t", maps, Direction("en", "ko"))
    page = (tmp_path / "01.html").read_text("utf-8")
    assert "300 by 2 subwords: too many to lay out" in page
    assert '<h1 dir="auto">&lt;s&gt;</h1>' in page
    assert len(json.loads((tmp_path / "01.json").read_text("utf-8"))["maps"][0]["weights"]) == 300


def test_models_without_a_map(command: Command, tiny: list[str], trained: Path, tmp_path: Path) -> None:
    """A recurrent one without attention, and several that translate together."""
    kept = [setting for setting in tiny if not setting.startswith("model")]
    assert command("mt-train", *kept, "model=gru", "model.d_model=16").code == 0
    outcome = command("mt-translate", tmp_path / "run", "alignments=true", stdin=b"ferry\n")
    assert (outcome.code, "and this model has no attention at all" in outcome.error) == (
        2,
        True,
    )
    assert command("mt-translate", tmp_path / "run", "--attention", tmp_path / "maps", stdin=b"ferry\n").code == 0
    [of_it] = json.loads((tmp_path / "maps" / "000001.json").read_text("utf-8"))["maps"]
    assert (of_it["map"], [round(sum(row), 3) for row in of_it["weights"]]) == ("gradient", [1.0] * len(of_it["rows"]))
    together = command("mt-translate", f"{trained},{trained}", "alignments=true", stdin=b"ferry\n")
    assert (together.code, "Ensemble has no attention maps" in together.error) == (2, True)
    file = tmp_path / "file"
    file.write_text("")
    taken = command("mt-translate", trained, "--attention", file, stdin=b"ferry\n")
    assert (taken.code, "is a file; --attention takes a folder" in taken.error) == (1, True)
