"""Attention maps as pictures and as JSON."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tolka.errors import TolkaError
from tolka.report.fonts import WHERE_TO_GET, families_for
from tolka.report.plots import new_figure, save_figure
from tolka.system.atomic import replace_text
from tolka.system.number_format import json_text

_SIDE = 0.32  # inches per subword
_MAX_COLUMNS = 4  # of panels
_MAX_SIDE = 80.0  # inches of a picture: 9600 pixels at the 120 dots per inch of `save_figure`


def write_numbers(
    path: Path, source: str, translation: str, maps: Sequence[Mapping[str, Any]], reference: str = ""
) -> None:
    """Write a text, its translation and their attention maps as JSON. maps: `AttentionMap.as_dict`."""
    content = {"source": source, **({"reference": reference} if reference else {}), "translation": translation}
    replace_text(path, json_text({**content, "maps": list(maps)}, ensure_ascii=False, indent=1))


class AttentionFolder:
    """A folder with the attention maps of several texts; collects the reasons why some could not be drawn."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._missing_characters: set[str] = set()
        self._plot_error = ""
        self._too_large: list[str] = []

    def write(self, stem: str, source: str, translation: str, maps: Sequence[Mapping[str, Any]]) -> None:
        """Write `stem`.json and, if there are maps and matplotlib, `stem`.png with subwords on both axes.

        maps: `AttentionMap.as_dict`.
        """
        # The numbers first: a picture may fail, by its size or for want of matplotlib.
        write_numbers(self.path / f"{stem}.json", source, translation, maps)
        if maps and max(_size(maps)) > _MAX_SIDE:
            self._too_large.append(stem)
        elif maps:
            try:
                self._missing_characters |= _draw(self.path / f"{stem}.png", maps)
            except TolkaError as error:
                self._plot_error = str(error)

    @property
    def complaint(self) -> str:
        """Reasons why pictures are missing, or have boxes instead of characters; "" if all is well."""
        complaints = [self._plot_error] if self._plot_error else []
        if self._missing_characters:
            characters = "".join(sorted(self._missing_characters)[:20])
            complaints.append(f"no font on this machine has {characters}: drawn as boxes; {WHERE_TO_GET}")
        if self._too_large:
            some = ", ".join(self._too_large[:5]) + (", ..." if len(self._too_large) > 5 else "")
            complaints.append(f"too large to draw: {some}; their JSON files have the numbers")
        return "; ".join(complaints)


def _size(maps: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Return the width and height of the figure, in inches."""
    columns, panel_rows = _grid(len(maps))
    map_columns, map_rows = (max(len(each[side]) for each in maps) for side in ("columns", "rows"))
    # Beside the squares, room for the labels: 2.2 inches on the left, 1.8 above.
    return columns * (2.2 + _SIDE * map_columns), panel_rows * (1.8 + _SIDE * map_rows)


def _grid(maps: int) -> tuple[int, int]:
    """Return the columns and the rows of panels for a number of maps."""
    columns = min(_MAX_COLUMNS, maps)
    return columns, -(-maps // columns)


def _draw(path: Path, maps: Sequence[Mapping[str, Any]]) -> set[str]:
    """Draw a heat map of each map; return the characters that no font on this machine has.

    TolkaError when matplotlib is not installed.
    """
    columns, panel_rows = _grid(len(maps))
    figure = new_figure(*_size(maps))
    panels = figure.subplots(panel_rows, columns, squeeze=False).flatten()
    families = families_for(subword for each in maps for subword in (*each["rows"], *each["columns"]))
    for axes, each in zip(panels, maps, strict=False):
        # One scale for all maps, so that equal colours are equal weights.
        image = axes.imshow(each["weights"], vmin=0.0, vmax=1.0, cmap="Blues", aspect="equal")
        axes.set_xticks(range(len(each["columns"])), each["columns"], rotation=60, ha="left", rotation_mode="anchor")
        axes.set_yticks(range(len(each["rows"])), each["rows"])
        axes.xaxis.tick_top()
        for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
            label.set_fontfamily(families)
        axes.set_xlabel(f"{each['map']}, mean over the heads" if "head" in each else each["map"], fontsize=9)
    for axes in panels[len(maps) :]:
        axes.set_axis_off()
    figure.colorbar(image, ax=list(panels[: len(maps)]), shrink=0.6, label="share")
    return save_figure(figure, path)
