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
from tolka.system.number_format import count_text
from tolka.training.run_folder import CHECK_PAGE

_SHOWN = 240  # characters of an example
_GROUPS = ("corpus", "cleaning", "tokenizer", "batching")  # of settings on which the findings depend


def write_check_page(folder: Path, settings: Mapping[str, Any], checkup: Mapping[str, Any]) -> Path:
    """Write check.html into a folder, which is created if need be; return its path.

    settings: `TrainConfig.as_dict`; checkup: as in `health_report`.
    """
    codes, cleaning = [settings["corpus"][side] for side in ("source", "target")], checkup["cleaning"]
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
                "codes": part.get("direction", codes),
                "shift": list(shift_words(part["shift"])),
                "findings": [{**finding, "cure": cure_of(finding, cleaning)} for finding in part["findings"]],
            }
            for part in checkup["training"]
        ],
        leaks=[{**finding, "cure": leak_cure(finding, cleaning)} for finding in leak_findings(checkup)],
        kept=checkup["kept"],
        subwords=checkup["pieces"],
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
        "found": f"{count_text(kinds, 'kind')} of fault" if kinds else "nothing wrong",
        "held-out text": f"leaks: {count_text(len(leaks), 'finding')}" if leaks else "does not leak",
    }
    if checkup["pace"]:
        facts["training here"] = time_in_words(checkup["pace"], checkup["chosen"])
    return facts


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
    return parts, f"… {len(text):,} characters" if len(text) > _SHOWN else ""


def _is_hidden(character: str) -> bool:
    return not character.isprintable() and unicodedata.category(character) != "Zs"
