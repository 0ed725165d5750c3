"""The report page's curves, of one run or of several: learning, and BLEU by length.

As SVG and PNG, by matplotlib, of the extra `plots`.

A run has the same colour in every picture; curves of models without attention are dashed.
"""

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any, NamedTuple

from tolka.errors import TolkaError
from tolka.report.glossary import Term, entry
from tolka.report.runs import FinishedRun
from tolka.system import interrupts
from tolka.system.atomic import replace_bytes

_SIZE = (5.2, 3.5)  # inches; one panel each, so that they stand one below the other on a narrow screen
_SHORT_LABEL = 14  # characters; three labels of this length fit side by side in a legend
# The date and matplotlib's version would make every page of the same run different.
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_BLEU = "BLEU of the validation set, translated greedily; higher is better."
_LOSS = "Loss on the validation set's references; lower is better, and a curve that rises again shows overfitting."
_LENGTH = (
    "BLEU of short and of long sentences; higher is better, and a fall to the right shows that long ones are "
    "translated worse."
)


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
    signatures: Sequence[str] = ()
    svg: str = ""


class Curve(NamedTuple):
    """Points of a run. errors: lengths of error bars below and above each. is_dotted: beside the run's main curve."""

    x: Sequence[Any]
    y: Sequence[float]
    errors: Sequence[Sequence[float]] | None = None
    is_dotted: bool = False


Curves = Callable[[FinishedRun], list[Curve]]
"""Returns the curves of a run; none if it has no data for them."""


def draw_curves(runs: Sequence[FinishedRun], folder: Path) -> list[Picture]:
    """Draw each plot for which at least one run has data; TolkaError when matplotlib is not installed."""
    pictures = [picture for key in ("bleu", "valid_loss") for picture in _learning(runs, key, folder)]
    for test in dict.fromkeys(test for run in runs for test in run.tests):
        buckets = [bucket for run in runs for bucket in run.tests.get(test, {}).get("by_length", [])]
        caption = _LENGTH + (" Bars: 95 % intervals." if any(bucket["interval"] for bucket in buckets) else "")
        path, signatures = folder / f"bleu_by_length_{test}.png", sorted({each["signature"] for each in buckets})
        picture = Picture(path, f"BLEU by length: {test}", caption, entry("length"), signatures)
        labels = "words of the source (characters, if it has no spaces)", "BLEU"
        pictures.append(_draw(runs, picture, partial(_by_length, test), labels))
    return [picture for picture in pictures if picture]


def _learning(runs: Sequence[FinishedRun], key: str, folder: Path) -> Iterator[Picture | None]:
    """Draw the learning curves of a validation score, over updates and over time.

    Of one run, in each direction, or beside the loss in training; its time would show the same curve again.
    """
    is_alone, is_bleu = len(runs) == 1, key == "bleu"
    runs = runs[0].by_direction() if is_alone else runs
    with_training = not is_bleu and len(runs) == 1 and any("train_loss" in each for each in runs[0].metrics)
    by_update = (_BLEU if is_bleu else _LOSS) + (" Dotted: in training." if with_training else "")
    by_time = f"The same over the time that training took; {'higher' if is_bleu else 'lower'} and earlier is better."
    greedy = sorted({line["signatures"]["bleu"] for run in runs for line in run.validations if "signatures" in line})
    name, file, label = ("BLEU", "bleu", "BLEU") if is_bleu else ("Loss", "nll", "nats per token")
    term, signatures = (entry("bleu"), greedy) if is_bleu else (entry("loss"), [])
    axes = ("update", "updates", 1.0, by_update), ("seconds", "minutes", 1 / 60, by_time)
    for x, unit, scale, caption in axes[: 1 if is_alone else 2]:
        picture = Picture(folder / f"{file}_over_{unit}.png", f"{name} over {unit}", caption, term, signatures)
        yield _draw(runs, picture, partial(_validations, key, x, scale, with_training), (unit, label))


def _draw(runs: Sequence[FinishedRun], picture: Picture, curves: Curves, labels: tuple[str, str]) -> Picture | None:
    """Draw one picture of all runs; None, and no file, if no run has data for it."""
    figure = new_figure(*_SIZE)
    from matplotlib import colormaps

    axes, found = figure.subplots(), [curves(run) for run in runs]
    if not any(found):
        picture.path.unlink(missing_ok=True)  # left by an earlier call
        return None
    colors = colormaps["tab10" if len(runs) <= 10 else "tab20"]
    # By its place among all runs, also those without data for this picture: a run keeps its colour.
    for number, (run, of_run) in enumerate(zip(runs, found, strict=True)):
        own = {"linestyle": "--" if run.without_attention else "-", "label": run.label}
        for x, y, errors, is_dotted in of_run:
            style = {"linestyle": ":", "linewidth": 1} if is_dotted else {**own, "marker": "o", "ms": 3}
            axes.errorbar(x, y, errors, color=colors(number % colors.N), capsize=2, elinewidth=0.6, **style)
    axes.set(xlabel=labels[0], ylabel=labels[1])
    if labels[1] == "BLEU":  # from 0, or small differences would look large
        axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if len(runs) > 1:
        columns = 3 if max(len(run.label) for run in runs) <= _SHORT_LABEL else 2
        figure.legend(loc="outside lower center", ncols=columns, fontsize=9, frameon=False)
    svg = svg_of(figure)
    axes.set_title("\n".join(picture.signatures), fontsize=6, color="gray")
    save_figure(figure, picture.path)
    return replace(picture, svg=svg)


def _validations(key: str, x: str, scale: float, with_training: bool, run: FinishedRun) -> list[Curve]:
    """Return a validation's figure over x * scale. with_training: the loss in training too, dotted."""
    lines = [line for line in run.validations if x in line and key in line]
    trained = [line for line in run.metrics if x in line and "train_loss" in line] if with_training else []
    found = [Curve([line[x] * scale for line in lines], [line[key] for line in lines])]
    beside = [line[x] * scale for line in trained], [line["train_loss"] for line in trained]
    return [*found, *([Curve(*beside, is_dotted=True)] if trained else [])] if lines else []


def _by_length(test: str, run: FinishedRun) -> list[Curve]:
    buckets = run.tests.get(test, {}).get("by_length", [])
    if len(buckets) < 2:  # a point is not a curve
        return []
    labels = ["-".join(map(str, sorted(set(bucket.get("words") or bucket["characters"])))) for bucket in buckets]
    scores, errors = [bucket["score"] for bucket in buckets], None
    if all(bucket["interval"] for bucket in buckets):
        spans = [(s - b["interval"][0], b["interval"][1] - s) for s, b in zip(scores, buckets, strict=True)]
        # A score can lie outside its interval, which is around the resamples' mean; a bar has no negative length.
        errors = [[max(0.0, span[side]) for span in spans] for side in (0, 1)]
    return [Curve(labels, scores, errors)]


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure, in inches; TolkaError when matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        interrupts.check()  # C extensions turn an interrupted import into an ImportError
        raise TolkaError("no plots: matplotlib is not installed (pip install 'tolka[plots]')") from None
    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure as PNG, into a folder that is made if need be."""
    path.parent.mkdir(exist_ok=True)
    picture = BytesIO()  # so that the file appears whole
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of characters in a run's name that the font lacks
        figure.savefig(picture, format="png", dpi=120)
    replace_bytes(path, picture.getvalue())


def svg_of(figure: Any) -> str:
    """Return the figure as an SVG element in the page's font and colours."""
    from matplotlib import rc_context, rcParams

    written = StringIO()
    # A constant salt, so that equal clip paths have equal names and the same run makes the same page.
    with warnings.catch_warnings(), rc_context({"svg.fonttype": "none", "svg.hashsalt": "tolka"}):
        warnings.simplefilter("ignore")
        figure.savefig(written, format="svg", transparent=True, metadata=_NO_METADATA)
    text = written.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", text, flags=re.DOTALL)  # it would style the whole page
    # Without a size of its own the picture is as wide as the page, whose styles choose font and colours, light or dark.
    text = re.sub(r'(<svg [^>]*?) width="[^"]*" height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'<g id="[^"]*"', "<g", text)  # ids repeat in every figure, and nothing refers to them
    text = re.sub(r"font-family: [^;\"]*;? ?", "", text)
    text = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", text)
    text = text.replace(f"stroke: {rcParams['grid.color']}; stroke-opacity: 0.3", "stroke: var(--line)")
    return re.sub(r"\b(stroke|fill): #000000", r"\1: currentColor", text)
