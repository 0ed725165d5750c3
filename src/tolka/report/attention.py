"""Attention maps as pages and as JSON."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tolka.report.render import render
from tolka.system.atomic import replace_text
from tolka.system.number_format import json_text
from tolka.text.direction import Direction

_MOST_SUBWORDS = 240  # on a side of a map that is laid out: a cell each


def write_numbers(
    path: Path, source: str, translation: str, maps: Sequence[Mapping[str, Any]], reference: str = ""
) -> None:
    """Write a text, its translation and their attention maps as JSON. maps: `AttentionMap.as_dict`."""
    content = {"source": source, **({"reference": reference} if reference else {}), "translation": translation}
    replace_text(path, json_text({**content, "maps": list(maps)}, ensure_ascii=False, indent=1))


def write_maps(
    stem: Path, source: str, translation: str, maps: Sequence[Mapping[str, Any]], direction: Direction
) -> None:
    """Write the numbers into STEM.json and, if there are maps, a page with subwords on both sides into STEM.html."""
    write_numbers(stem.with_suffix(".json"), source, translation, maps)
    if maps:
        texts: dict[str, Any] = {"title": stem.name, "source": source, "translation": translation}
        page = render("attention.html", maps=maps, languages=direction, most_subwords=_MOST_SUBWORDS, **texts)
        replace_text(stem.with_suffix(".html"), page)
