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
    """A PNG, and what it shows. signatures: how the scores in it were computed."""

    path: Path
    title: str
    caption: str
    signatures: list[str]


def compare_runs(runs: Sequence[FinishedRun], folder: Path) -> list[Picture]:
    """Draw all that the runs have measured in common; TolkaError when matplotlib is not installed."""
    greedy = sorted({line["signatures"]["bleu"] for run in runs for line in run.validations if "signatures" in line})
    drawn = []
    for key, what in (("bleu", "BLEU"), ("valid_loss", "nll")):
        for x, unit, scale in (("update", "update", 1.0), ("seconds", "minute", 1 / 60)):
            bleu = key == "bleu"
            title = f"{'BLEU' if bleu else 'Loss'} over {unit}s"
            caption = f"On the validation set, {'greedy' if bleu else 'nats per token'}."
            picture = Picture(folder / f"{what.lower()}_over_{unit}s.png", title, caption, greedy if bleu else [])
            drawn.append(_draw(runs, picture, _curve(key, x, scale), (unit, what)))
    for test in dict.fromkeys(test for run in runs for test in run.tests):
        drawn.append(
            _draw(runs, _lengths_picture(runs, test, folder), _by_length(test), ("words of the source", "BLEU"))
        )
    for number, file, when in ((0, "first", "before training"), (-1, "last", "at the last validation")):
        picture = Picture(folder / f"gradient_flow_{file}.png", f"Gradient flow {when}", _FLOW, [])
        axes = ("steps before the end of the sentence", "norm of d loss / d state (nats)")
        drawn.append(_draw(runs, picture, _flow(number), axes, log=True))
    return [picture for picture in drawn if picture]


_FLOW = (
    "How strongly the loss depends on each state of the encoder's first layer, forward. Solid and dashed: h; dotted: "
    "the cell C of an LSTM."
)


def _lengths_picture(runs: Sequence[FinishedRun], test: str, folder: Path) -> Picture:
    buckets = [bucket for run in runs for bucket in run.tests.get(test, {}).get("by_length", [])]
    bars = " The bars are 95 % intervals." if any(bucket["interval"] for bucket in buckets) else ""
    caption = f"Test set {test}. Each point holds about as many sentences.{bars}"
    signatures = sorted({bucket["signature"] for bucket in buckets})
    return Picture(folder / f"bleu_by_length_{test}.png", "BLEU by the source's length", caption, signatures)


_Plot = Callable[[Any, FinishedRun, dict[str, Any]], bool]
"""Draws one run into axes, in a style; returns whether there was anything to draw."""


def _draw(
    runs: Sequence[FinishedRun], picture: Picture, plot: _Plot, labels: tuple[str, str], log: bool = False
) -> Picture | None:
    """Draw one picture of all runs; None, and no file, where no run has anything to draw."""
    figure = new_figure(*_SIZE)
    from matplotlib import colormaps

    axes = figure.subplots()
    colors = colormaps["tab10" if len(runs) <= 10 else "tab20"]
    drawn = False
    for number, run in enumerate(runs):
        style = {"color": colors(number % colors.N), "linestyle": "--" if run.without_attention else "-"}
        drawn |= plot(axes, run, {**style, "label": run.label})
    if not drawn:
        picture.path.unlink(missing_ok=True)  # of an earlier call
        return None
    axes.set(xlabel=labels[0], ylabel=labels[1], yscale="log" if log else "linear")
    axes.set_title("\n".join(picture.signatures), fontsize=6, color="gray")
    axes.grid(alpha=0.3)
    if len(runs) > 1:
        figure.legend(loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    save_figure(figure, picture.path)
    return picture


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
