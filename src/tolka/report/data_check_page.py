"""The findings about a corpus as an HTML page that needs nothing else."""

import unicodedata
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from tolka.report.data_check import (
    advice,
    cure_of,
    epochs_in_words,
    leak_cure,
    leak_findings,
    shift_words,
    time_in_words,
)
from tolka.report.render import render
from tolka.system.atomic import replace_text
from tolka.training.run_folder import CHECK_PAGE

_SHOWN = 240  # characters of an example
_NAMED_LANGUAGES = 5  # the others are shown as one share
_TICKS = 5  # labels under a histogram
_SIDES = ("source", "target")
_GROUPS = ("corpus", "cleaning", "tokenizer", "batching")  # of settings on which the findings depend


def write_check_page(folder: Path, settings: Mapping[str, Any], checkup: Mapping[str, Any]) -> Path:
    """Write check.html into a folder, which is created if need be; return its path.

    settings: `TrainConfig.as_dict`; checkup: as in `health_report`.
    """
    codes = [settings["corpus"][side] for side in _SIDES]
    subwords, cleaning = checkup["pieces"], checkup["cleaning"]
    text = render(
        "check.html",
        title=f"{settings['run']['name'] or folder.name}: the text, checked",
        languages=codes,
        facts=_facts(checkup, codes),
        unfit=checkup["unfit"],
        to_do=advice(checkup),
        parts=[
            {
                **part,
                "sides": _histograms([part[side] for side in _SIDES], part.get("direction", codes), "characters"),
                "shift": list(shift_words(part["shift"])),
                "findings": [{**finding, "cure": cure_of(finding, cleaning)} for finding in part["findings"]],
            }
            for part in checkup["training"]
        ],
        leaks=[{**finding, "cure": leak_cure(finding, cleaning)} for finding in leak_findings(checkup)],
        kept=checkup["kept"],
        subwords=_histograms([subwords[side] for side in _SIDES], codes, "subwords") if subwords else [],
        pace=checkup["pace"],
        training_time=time_in_words(checkup["pace"], checkup["chosen"]) if checkup["pace"] else "",
        epochs_in_words=epochs_in_words,
        percent=_percent,
        visible=_visible,
        chosen=checkup["chosen"],
        settings=yaml.safe_dump({key: settings[key] for key in _GROUPS}, allow_unicode=True, sort_keys=False),
    )
    folder.mkdir(parents=True, exist_ok=True)
    replace_text(folder / CHECK_PAGE, text)
    return folder / CHECK_PAGE


def _facts(checkup: Mapping[str, Any], codes: Sequence[str]) -> dict[str, str]:
    """Return the summary: label -> value."""
    training = checkup["training"]
    kinds = len({finding["what"] for part in training for finding in part["findings"]})
    leaks = leak_findings(checkup)
    facts = {
        "languages": " to ".join(codes),
        "training text": f"{sum(part['pairs'] for part in training):,} pairs",
        "found": _count_text(kinds, "kind", "of fault") if kinds else "nothing wrong",
        "held-out text": f"leaks: {_count_text(len(leaks), 'finding')}" if leaks else "does not leak",
    }
    if checkup["pace"]:
        facts["training here"] = time_in_words(checkup["pace"], checkup["chosen"])
    return facts


def _count_text(count: int, noun: str, rest: str = "") -> str:
    """Return a phrase such as '1 kind' or '2 kinds', followed by `rest`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'} {rest}".rstrip()


def _histograms(sides: Sequence[Mapping[str, Any]], codes: Sequence[str], unit: str) -> list[dict[str, Any]]:
    """Return the values for the histograms of both sides. unit: of the lengths."""
    # One scale for both, or sides of different lengths would look alike.
    highest = max(max(side["histogram"]["counts"]) for side in sides) or 1
    return [
        {
            "which": which,
            "code": code,
            "unit": unit,
            "facts": _lengths(side, unit),
            "bars": _bars(side["histogram"], highest, unit),
            "ticks": _ticks(side["histogram"]["starts"]),
            "highest": f"{highest:,}",
            "languages": _shares(side["languages"]) if "languages" in side else [],
        }
        for which, code, side in zip(_SIDES, codes, sides, strict=True)
    ]


def _lengths(side: Mapping[str, Any], unit: str) -> dict[str, str]:
    facts = {unit: f"{side.get(unit, side.get('total')):,}"}  # "total" of subwords, which have no words
    if side.get("words"):
        facts["words"] = f"{side['words']:,}"
    if side["lengths"]:
        shortest, quarter, half, three_quarters, longest = (f"{length:,}" for length in side["lengths"])
        facts["half of the lines"] = f"{quarter} to {three_quarters} {unit}, the middle one {half}"
        facts["shortest, longest"] = f"{shortest}, {longest}"
    return facts


def _bars(histogram: Mapping[str, Any], highest: int, unit: str) -> list[dict[str, Any]]:
    """Return the bars. height: percent of the highest bar of both sides. title: lengths, and number of lines."""
    starts, counts = histogram["starts"], histogram["counts"]
    bars = []
    for number, (start, count) in enumerate(zip(starts, counts, strict=True)):
        # The last bar has all longer lines, so that a few very long ones do not squeeze the others.
        last = number == len(starts) - 1
        end = start if last else starts[number + 1] - 1
        lengths = f"{start:,} and more" if last else f"{start:,} to {end:,}" if end > start else f"{start:,}"
        bars.append({"height": 100 * count / highest, "title": f"{lengths} {unit}: {_count_text(count, 'line')}"})
    return bars


def _ticks(starts: Sequence[int]) -> list[tuple[float, str]]:
    """Return (percent of the width, label) of some bars' left edges, including the last bar's."""
    last = len(starts) - 1
    stride = max(1, round(last / _TICKS))
    # No label so near the last one that they would overlap.
    places = [*(place for place in range(0, last, stride) if last - place > stride / 2), last]
    return [(100 * place / len(starts), f"{starts[place]:,}{'+' if place == last else ''}") for place in places]


def _shares(languages: Mapping[str, float]) -> list[tuple[str, float, str]]:
    """Return (code, percent, text) of each language, the most common first, the others as one."""
    named = list(languages.items())[:_NAMED_LANGUAGES]
    rest = sum(languages.values()) - sum(share for _, share in named)
    rows = [*named, ("others", rest)] if len(languages) > _NAMED_LANGUAGES else named
    return [(code, 100 * share, _percent(share)) for code, share in rows]


def _percent(share: float) -> str:
    # A rare fault is not 0.00 %.
    return "under 0.01%" if 0 < share < 0.00005 else f"{share:.2%}"


def _visible(text: str) -> tuple[list[tuple[bool, str]], str]:
    """Return (whether it is a character's code, text) of each part of an example, and a note on what is not shown.

    Invisible characters are written as U+200B; spaces of all widths are not.
    """
    parts: list[tuple[bool, str]] = []
    for hidden, group in groupby(text[:_SHOWN], _is_hidden):
        characters = "".join(group)
        parts += [(True, f"U+{ord(character):04X}") for character in characters] if hidden else [(False, characters)]
    return parts, f"… {_count_text(len(text), 'character')}" if len(text) > _SHOWN else ""


def _is_hidden(character: str) -> bool:
    return not character.isprintable() and unicodedata.category(character) != "Zs"
