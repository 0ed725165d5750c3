"""The panel in a terminal shows how training goes, and nothing is left of it."""

import io
import sys
from pathlib import Path

import pytest

from tolka.metrics.validation import Validation
from tolka.system.progress import bar
from tolka.tracking.panel import Panel, curve
from tolka.training.callbacks import Beginning, Ending


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


LINE = {"update": 10, "train_loss": 2.5, "lr": 0.001, "tokens_per_second": 12345.6, "epoch": 0, "seconds": 3.0}
SCORED = {"update": 10, "valid_loss": 2.25, "ppl": 9.49, "bleu": 12.345, "chrf": 30.0}


def shown_by(panel: Panel) -> str:
    panel.on_start(Beginning(Path("run"), {}, print))
    panel.on_update(LINE, 1.25)
    panel.on_validation(SCORED, Validation({}, "", {"bleu": "nrefs:1|tok:13a"}))
    panel.on_end(Ending(Path("run")))
    return str(sys.stderr.getvalue())  # type: ignore[union-attr]


def test_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "stderr", Terminal())
    text = shown_by(Panel())
    assert "  at most 1.2 min left, loss 2.500 ▁  12,346 tokens/s, rate 0.001, memory " in text
    assert "validation at 10: loss 2.250, PPL 9.49, BLEU 12.3" in text
    assert "nrefs" not in text  # a narrow terminal would cut the signature, which is in the lines above
    assert text.endswith("\r")  # what is printed next begins at the left


def test_not_in_a_log_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert shown_by(Panel()) == ""


def test_a_curve_spans_its_values() -> None:
    assert curve([1.0, 3.0, 8.0]) == "▁▃█"
    assert curve([2.0, 2.0]) == "▁▁"
    assert curve([]) == ""


def test_a_bar_counts_in_whole_numbers_and_leaves_room_for_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with bar("a\x1b[2Jb", 12_345, " lines", 4000, time_left=False) as progress:
        progress.update(0.5)
        progress.refresh()
    shown = sys.stderr.getvalue()  # type: ignore[union-attr]
    assert " 4000/12345 [00:00, " in shown
    assert "<" not in shown
    assert "a\\x1b[2Jb: " in shown
    assert max(map(len, shown.split("\r"))) == 77
