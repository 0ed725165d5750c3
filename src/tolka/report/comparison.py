"""Plots that compare several runs. Needs the extra `plots`.

A run has the same colour in every picture; curves of models without attention are dashed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tolka.report.fonts import families_for
from tolka.report.glossary import Term, entry
from tolka.report.plots import new_figure, save_figure, svg_of
from tolka.report.runs import FinishedRun

_SIZE = (5.2, 3.5)  # inches; one panel each, so that they stand one below the other on a narrow screen
_SHORT_LABEL = 14  # characters; three labels of this length fit side by side in a legend


@dataclass(frozen=True)
class Picture:
    """A plot as PNG and SVG. caption: one sentence. term: its entry in the glossary.

    signatures: of the scores in it, written into the PNG only.
    """

    # The page lists signatures once for all of its pictures; a file may be shown without it.

    path: Path
    title: str
    caption: str
    term: Term
    signatures: list[str]
    svg: str = ""


def compare_runs(runs: Sequence[FinishedRun], folder: Path) -> list[Picture]:
    """Draw each plot for which at least one run has data; TolkaError when matplotlib is not installed."""
    pictures = [picture for key in ("bleu", "valid_loss") for picture in _learning(runs, key, folder)]
    for test in dict.fromkeys(test for run in runs for test in run.tests):
        axes = ("words of the source (characters, if it has no spaces)", "BLEU")
        pictures.append(_draw(runs, _lengths_picture(runs, test, folder), _by_length(test), axes))
    return [picture for picture in pictures if picture]


def _learning(runs: Sequence[FinishedRun], key: str, folder: Path) -> Iterator[Picture | None]:
    """Draw the learning curves of a validation score, over updates and over time.

    Of one run, in each direction, or beside the loss in training; its time would show the same curve again.
    """
    is_alone, bleu = len(runs) == 1, key == "bleu"
    runs = runs[0].by_direction() if is_alone else runs
    by_update = (
        "BLEU of the validation set, translated greedily; higher is better."
        if bleu
        else "Loss on the validation set's references; lower is better, and a curve that rises again shows overfitting."
    )
    with_training = is_alone and len(runs) == 1 and any("train_loss" in line for line in runs[0].metrics)
    if with_training and not bleu:
        by_update += " Dotted: in training."
    by_time = f"The same over the time that training took; {'higher' if bleu else 'lower'} and earlier is better."
    greedy = sorted({line["signatures"]["bleu"] for run in runs for line in run.validations if "signatures" in line})
    name, file = ("BLEU", "bleu") if bleu else ("Loss", "nll")
    axes = ("update", "updates", 1.0, by_update), ("seconds", "minutes", 1 / 60, by_time)
    for x, unit, scale, caption in axes[: 1 if is_alone else 2]:
        path = folder / f"{file}_over_{unit}.png"
        term, signatures = (entry("bleu"), greedy) if bleu else (entry("loss"), [])
        picture = Picture(path, f"{name} over {unit}", caption, term, signatures)
        yield _draw(runs, picture, _curve(key, x, scale, with_training), (unit, "BLEU" if bleu else "nats per token"))


def _lengths_picture(runs: Sequence[FinishedRun], test: str, folder: Path) -> Picture:
    buckets = [bucket for run in runs for bucket in run.tests.get(test, {}).get("by_length", [])]
    bars = " Bars: 95 % intervals." if any(bucket["interval"] for bucket in buckets) else ""
    caption = (
        "BLEU of short and of long sentences; higher is better, and a fall to the right shows that long ones are "
        f"translated worse.{bars}"
    )
    signatures = sorted({bucket["signature"] for bucket in buckets})
    return Picture(
        folder / f"bleu_by_length_{test}.png", f"BLEU by length: {test}", caption, entry("length"), signatures
    )


_Plot = Callable[[Any, FinishedRun, dict[str, Any]], bool]
"""Draws one run into axes with the given style; returns whether the run has data for it."""


def _draw(runs: Sequence[FinishedRun], picture: Picture, plot: _Plot, labels: tuple[str, str]) -> Picture | None:
    """Draw one picture of all runs; None, and no file, if no run has data for it."""
    figure = new_figure(*_SIZE)
    from matplotlib import colormaps

    axes = figure.subplots()
    colors = colormaps["tab10" if len(runs) <= 10 else "tab20"]
    drawn = False
    for number, run in enumerate(runs):
        # By its place among all runs, also those without data for this picture: a run keeps its colour.
        style = {"color": colors(number % colors.N), "linestyle": "--" if run.without_attention else "-"}
        drawn |= plot(axes, run, {**style, "label": run.label})
    if not drawn:
        picture.path.unlink(missing_ok=True)  # left by an earlier call
        return None
    axes.set(xlabel=labels[0], ylabel=labels[1])
    if labels[1] == "BLEU":  # from 0, or small differences would look large
        axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if len(runs) > 1:
        columns = 3 if max(len(run.label) for run in runs) <= _SHORT_LABEL else 2
        legend = figure.legend(loc="outside lower center", ncols=columns, fontsize=9, frameon=False)
        families = families_for(run.label for run in runs)
        for text in legend.get_texts():
            text.set_fontfamily(families)
    svg = svg_of(figure)
    axes.set_title("\n".join(picture.signatures), fontsize=6, color="gray")
    save_figure(figure, picture.path)
    return replace(picture, svg=svg)


def _curve(key: str, x: str, scale: float, with_training: bool) -> _Plot:
    """Return what draws a validation's figure over x * scale. with_training: the loss in training too, dotted."""

    def plot(axes: Any, run: FinishedRun, style: dict[str, Any]) -> bool:
        lines = [line for line in run.validations if x in line and key in line]
        if lines:
            axes.plot([line[x] * scale for line in lines], [line[key] for line in lines], marker="o", ms=3, **style)
        trained = [line for line in run.metrics if x in line and "train_loss" in line]
        if with_training and key == "valid_loss" and trained:
            points = [line[x] * scale for line in trained], [line["train_loss"] for line in trained]
            axes.plot(*points, color=style["color"], linestyle=":", linewidth=1)
        return bool(lines)

    return plot


def _by_length(test: str) -> _Plot:
    def plot(axes: Any, run: FinishedRun, style: dict[str, Any]) -> bool:
        buckets = run.tests.get(test, {}).get("by_length", [])
        if len(buckets) < 2:  # a point is not a curve
            return False
        labels = ["-".join(map(str, sorted(set(bucket.get("words") or bucket["characters"])))) for bucket in buckets]
        scores = [bucket["score"] for bucket in buckets]
        errors = None
        if all(bucket["interval"] for bucket in buckets):
            spans = [(s - b["interval"][0], b["interval"][1] - s) for s, b in zip(scores, buckets, strict=True)]
            # A score can lie outside its interval, which is around the resamples' mean; a bar has no negative length.
            errors = [[max(0.0, span[side]) for span in spans] for side in (0, 1)]
        axes.errorbar(labels, scores, yerr=errors, marker="o", ms=3, capsize=2, elinewidth=0.6, **style)
        return True

    return plot
