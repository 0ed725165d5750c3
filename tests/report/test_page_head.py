"""What heads a page of several trainings: systems in their order, and which differences from the best may be chance."""

from pathlib import Path
from typing import Any

from tolka.report.page import page_head
from tolka.report.runs import FinishedRun


def run(label: str, chrf: list[float], bleu: float, seed: int = 1) -> FinishedRun:
    """A training of the model that its label begins with."""
    config: dict[str, Any] = {"run": {"seed": seed}, "model": {"name": label.partition("-")[0]}}
    metrics = [{"name": "BLEU", "score": bleu, "interval": [bleu - 1, bleu + 1]}]
    scores = {"facts": {"architecture": f"{label}, 1M parameters"}, "test": {"test": {"metrics": metrics}}}
    lines = [{"test": "test", "source": "a line", "chrf": value} for value in chrf]
    return FinishedRun(label, config, scores, [], [], lines)


def test_the_order_and_p_are_of_one_score(tmp_path: Path) -> None:
    """gru has more BLEU, and a lower chrF2 in every line; each line has the same source."""
    (tmp_path / "lstm").mkdir()
    (tmp_path / "lstm" / "report.html").touch()
    base = [20.0 + 3 * n for n in range(20)]
    runs = [
        run("gru", [value - 5 + n % 2 for n, value in enumerate(base)], 31.0),
        run("lstm", base, 30.0),
        run("copy", [value + (-1) ** n - 0.04 for n, value in enumerate(base)], 29.0),
    ]
    best, copy, gru = page_head(runs, tmp_path)["ranking"]
    assert (best["label"], best["page"], best["chance"]) == ("lstm", "lstm/report.html", "")
    assert best["score"] == "chrF2 of a line 48.5, BLEU 30.0 (29.0 to 31.0)"
    assert copy["chance"].startswith("+0.0 (p = ")
    assert copy["chance"].endswith(", may be chance)")
    assert gru["chance"] == "-4.5 (p = 0.001)"


def test_trainings_of_several_seeds_are_one_system(tmp_path: Path) -> None:
    base = [20.0 + 3 * n for n in range(20)]
    seeds = [run(f"lstm-seed={seed}", [value + seed for value in base], 30.0 + seed, seed) for seed in (1, 2, 3)]
    ranked = page_head([*seeds, run("gru", base, 29.0)], tmp_path)
    best, gru = ranked["ranking"]
    assert (best["label"], best["score"]) == ("lstm", "chrF2 of a line 50.5 ± 1.0, BLEU 32.0 ± 1.0 (3 seeds)")
    assert (gru["label"], gru["score"]) == ("gru", "chrF2 of a line 48.5, BLEU 29.0 (28.0 to 30.0)")
    assert "may be chance" in gru["chance"]
