"""Figures of matplotlib as PNG and SVG. Needs the extra `plots`."""

import re
import warnings
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

from tolka.errors import TolkaError
from tolka.system import interrupts
from tolka.system.atomic import replace_bytes

# The date and matplotlib's version would make every page of the same run different.
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


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
