"""A progress bar in a terminal."""

import io
import sys

import pytest

from tolka.system.progress import bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_counts_in_whole_numbers_and_leaves_room_for_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with bar("a\x1b[2Jb", 12_345, " lines", 4000, time_left=False) as progress:
        progress.set_postfix_str("nll 3.000, 4.0 min left", refresh=False)
        progress.update(0.5)
        progress.refresh()
    shown = sys.stderr.getvalue()  # type: ignore[union-attr]
    assert " 4000/12345 [00:00, " in shown
    assert ", nll 3.000, 4.0 min left]" in shown
    assert "<" not in shown
    assert "a\\x1b[2Jb: " in shown
    assert max(map(len, shown.split("\r"))) == 77
