"""Attention maps as pictures and as numbers."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tolka.report.fonts import families_for
from tolka.report.plots import new_figure, save_figure

_SIDE = 0.32  # inches a piece
_MOST_COLUMNS = 4  # of panels


def write_attention(
    folder: Path, stem: str, source: str, translation: str, maps: Sequence[Mapping[str, Any]], reference: str = ""
) -> str:
    """Write `stem`.json and, where matplotlib is there, `stem`.png: a heat map of each map, pieces on both axes.

    maps: `AttentionMap.as_dict`. Returns the characters that no font on this machine has, drawn as boxes. TolkaError,
    when the numbers are written, if matplotlib is not installed.
    """
    content = {"source": source, **({"reference": reference} if reference else {}), "translation": translation}
    (folder / f"{stem}.json").write_text(
        json.dumps({**content, "maps": list(maps)}, ensure_ascii=False, indent=1), encoding="utf-8"
    )
    if not maps:
        return ""
    columns = min(_MOST_COLUMNS, len(maps))
    lines = -(-len(maps) // columns)
    widest, longest = max(len(each["columns"]) for each in maps), max(len(each["rows"]) for each in maps)
    figure = new_figure(columns * (2.2 + _SIDE * widest), lines * (1.8 + _SIDE * longest))
    panels = figure.subplots(lines, columns, squeeze=False).flatten()
    families, missing = families_for(piece for each in maps for piece in (*each["rows"], *each["columns"]))
    for axes, each in zip(panels, maps, strict=False):
        image = axes.imshow(each["weights"], vmin=0.0, vmax=1.0, cmap="Blues", aspect="equal")
        axes.set_xticks(range(len(each["columns"])), each["columns"], rotation=60, ha="left", rotation_mode="anchor")
        axes.set_yticks(range(len(each["rows"])), each["rows"])
        axes.xaxis.tick_top()
        for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
            label.set_fontfamily(families)
        head = "mean over the heads" if each["head"] == "mean" else f"head {each['head']}"
        axes.set_xlabel(f"{each['map']}, {head}", fontsize=9)
    for axes in panels[len(maps) :]:
        axes.set_axis_off()
    figure.colorbar(image, ax=list(panels[: len(maps)]), shrink=0.6, label="share of the attention")
    save_figure(figure, folder / f"{stem}.png")
    return missing
