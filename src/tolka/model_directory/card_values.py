"""What a model card is made of: facts of a model directory, and its former card."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tolka.model_directory.file_names import CARD, SCORES
from tolka.model_directory.manifest import as_written
from tolka.system.whole_files import read_text
from tolka.text.lines import user_path

MEASURED = "measured"  # the key in scores.json of what was measured, where that is not these weights
DATA_SET, MADE_OF = "data set", "made of"  # facts: the training text on the Hub; the models of a combined one
REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)  # OWNER/NAME on the Hub
PARITY = "## Parity"  # the section of an imported model


def facts_of(folder: Path, config: Mapping[str, Any], scores: Mapping[str, Any]) -> dict[str, str]:
    """Return the facts of a model directory.

    In earlier versions the card alone named a data set of the Hub; it is right where training wrote it.
    """
    with as_written(f"{folder / SCORES}: facts"):
        facts = dict(scores.get("facts") or {})
    path = config["corpus"].get("path")
    is_as_trained = MADE_OF not in facts and MEASURED not in scores
    if path and is_as_trained and _metadata_of(folder / CARD).get("datasets") == [path]:
        facts[DATA_SET] = path
    return facts


def hub_data_set(corpus: Mapping[str, Any]) -> str:
    """Return the training text's name on the Hub, "" for files of one's own; known only where training reads it."""
    path = str(corpus.get("path", ""))
    return path if REPOSITORY.fullmatch(path) and not user_path(path).exists() else ""


def parity_section(folder: Path) -> str:
    """Return what the card of an imported model says of its comparison; "" if there is none."""
    return _text_of(folder / CARD).partition(f"\n{PARITY}\n")[2].strip()


def _metadata_of(card: Path) -> dict[str, Any]:
    """Return the metadata at the beginning of a card; nothing if they cannot be read."""
    try:
        found = yaml.safe_load(_text_of(card).split("---\n", 2)[1])
    except (IndexError, yaml.YAMLError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _text_of(card: Path) -> str:
    try:
        return read_text(card)
    except (OSError, ValueError):  # a card is for people: it may be gone
        return ""
