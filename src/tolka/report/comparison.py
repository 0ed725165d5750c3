"""Pictures of several runs beside each other. Needs the extra `plots`.

A run keeps its colour from picture to picture; what has no attention is dashed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tolka.report.plots import new_figure, save_figure
from tolka.report.runs import FinishedRun

_SIZE = (6.4, 4.2)  # inches; one panel each, so that they stand one below the other on a narrow screen


@dataclass(frozen=True)
class Picture:
    """A PNG, and what it shows."""

    path: Path
    title: str
    caption: str


def compare_runs(runs: Sequence[FinishedRun], folder: Path) -> list[Picture]:
    """Draw all that the runs have measured in common; TolkaError when matplotlib is not installed."""
    drawn = []
    for key, what in (("bleu", "BLEU"), ("valid_loss", "nll")):
        for x, unit, scale in (("update", "update", 1.0), ("seconds", "minute", 1 / 60)):
            title = f"{'BLEU' if key == 'bleu' else 'Loss'} over {unit}s"
            caption = "on the validation set, greedy" if key == "bleu" else "on the validation set, nats per token"
            path = _draw(runs, folder / f"{what.lower()}_over_{unit}s.png", _curve(key, x, scale), unit, what)
            drawn += [Picture(path, title, caption)] if path else []
    for test in _tests(runs):
        path = _draw(runs, folder / f"bleu_by_length_{test}.png", _by_length(test), "words of the source", "BLEU")
        caption = f"test set {test}: each point holds about as many sentences, the bars are 95 % intervals"
        drawn += [Picture(path, "BLEU by the source's length", caption)] if path else []
    for number, when in ((0, "before training"), (-1, "at the last validation")):
        path = _draw(
            runs,
            folder / f"gradient_flow_{'first' if number == 0 else 'last'}.png",
            _flow(number),
            "steps before the end of the sentence",
            "norm of d loss / d state (nats)",
            log=True,
        )
        caption = (
            "the encoder's first layer, forward: how strongly the loss depends on each state; solid and dashed h, "
            "dotted the cell C of an LSTM"
        )
        drawn += [Picture(path, f"Gradient flow {when}", caption)] if path else []
    return drawn


_Plot = Callable[[Any, FinishedRun, dict[str, Any]], bool]
"""Draws one run into axes, in a style; returns whether there was anything to draw."""


def _draw(runs: Sequence[FinishedRun], path: Path, plot: _Plot, x: str, y: str, log: bool = False) -> Path | None:
    """One picture of all runs; None, and no file, where no run has anything to draw."""
    figure = new_figure(*_SIZE)
    from matplotlib import colormaps

    axes = figure.subplots()
    colors = colormaps["tab10" if len(runs) <= 10 else "tab20"]
    drawn = False
    for number, run in enumerate(runs):
        style = {"color": colors(number % colors.N), "linestyle": "--" if run.without_attention else "-"}
        drawn |= plot(axes, run, {**style, "label": run.label})
    if not drawn:
        path.unlink(missing_ok=True)  # of an earlier call
        return None
    axes.set(xlabel=x, ylabel=y, yscale="log" if log else "linear")
    axes.grid(alpha=0.3)
    if len(runs) > 1:
        figure.legend(loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return save_figure(figure, path)


def _curve(key: str, x: str, scale: float) -> _Plot:
    def plot(axes: Any, run: FinishedRun, style: dict[str, Any]) -> bool:
        lines = [line for line in run.validations if x in line and key in line]
        if lines:
            axes.plot([line[x] * scale for line in lines], [line[key] for line in lines], marker="o", ms=3, **style)
        return bool(lines)

    return plot


def _by_length(test: str) -> _Plot:
    def plot(axes: Any, run: FinishedRun, style: dict[str, Any]) -> bool:
        buckets = run.tests.get(test, {}).get("by_length", [])
        if len(buckets) < 2:
            return False
        labels = ["-".join(map(str, sorted(set(bucket["words"])))) for bucket in buckets]
        scores = [bucket["score"] for bucket in buckets]
        errors = None
        if all(bucket["interval"] for bucket in buckets):
            spans = [(s - b["interval"][0], b["interval"][1] - s) for s, b in zip(scores, buckets, strict=True)]
            errors = [[max(0.0, span[side]) for span in spans] for side in (0, 1)]
        axes.errorbar(labels, scores, yerr=errors, marker="o", ms=3, capsize=2, elinewidth=0.6, **style)
        axes.set_ylim(0, 100)
        return True

    return plot


def _flow(number: int) -> _Plot:
    def plot(axes: Any, run: FinishedRun, style: dict[str, Any]) -> bool:
        recorded = run.gradient_flows
        if not recorded:
            return False
        for flow in recorded[number]["gradient_flow"]:
            if flow["layer"] == "encoder.0.forward":
                own = style if flow["state"] == "h" else {"color": style["color"], "linestyle": ":"}
                axes.plot(flow["norms"], **own)
        return True

    return plot


def _tests(runs: Sequence[FinishedRun]) -> list[str]:
    return list(dict.fromkeys(test for run in runs for test in run.tests))
