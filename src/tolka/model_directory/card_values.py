"""What a model card is made of: settings, facts and scores of a model directory, checked, and its former card."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tolka.errors import CheckpointError
from tolka.model_directory.file_names import CARD, CONFIG, SCORES
from tolka.system.whole_files import read_text
from tolka.text.lines import user_path

MEASURED = "measured"  # the key in scores.json of what was measured, where that is not these weights
DATA_SET, MADE_OF = "data set", "made of"  # facts: the training text on the Hub; the models of a combined one
REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)  # OWNER/NAME on the Hub
PARITY = "## Parity"  # the section of an imported model
NUMBER = (int, float, type(None))
"""A kind of values, for `check_kinds`; null stands for NaN and inf, which JSON does not have."""
_METRIC = {"name": str, "score": NUMBER, "signature": str, "interval?": [NUMBER, NUMBER]}
_CONFIG = {"run": {"name": str, "licence?": str}, "corpus": {"source": str, "target": str}}
_SCORES = {
    "facts?": {"*": object},
    "update?": int,
    "mean_of_updates?": [int],
    "validation?": {"*": NUMBER},
    "signatures?": {"*": str},
    "test?": {"*": {"metrics": [_METRIC], "perplexity": {"ppl": NUMBER}}},
}
_NAMES = {str: "a text", int: "a number", list: "a list", dict: "a mapping"}


def check_values(config: Any, scores: Any, folder: Path = Path()) -> None:
    """Raise CheckpointError, with file and key, if what a card is made of is missing or of another kind.

    folder: of the files, for the message.
    """
    check_kinds(config, _CONFIG, f"{folder / CONFIG}:", " ")
    check_kinds(scores, _SCORES, f"{folder / SCORES}:", " ")
    if scores.get("validation") and not scores.get("mean_of_updates"):
        check_kinds(scores.get("update"), int, f"{folder / SCORES}: update")


def check_kinds(value: Any, kind: Any, place: str, separator: str = ".") -> None:
    """Raise CheckpointError if a value is not of a kind. place: of the value; separator: before its keys.

    In a mapping, a key with ? may be missing or null, and * is any key; [x] is a list of x, and [x, x] one of two.
    """
    # A list is a tuple before it is JSON.
    types: Any = (list, tuple) if isinstance(kind, list) else dict if isinstance(kind, dict) else kind
    length = len(kind) if isinstance(kind, list) and len(kind) > 1 else 0
    if not isinstance(value, types) or (length and len(value) != length):
        name = _NAMES[types[0] if isinstance(types, tuple) else types]
        found = "is missing" if value is None else f"is {value!r:.60}"
        raise CheckpointError(f"{place} {found}, and must be {name}{f' of {length}' if length else ''}")
    if isinstance(kind, list):
        for number, each in enumerate(value):
            check_kinds(each, kind[0], f"{place}[{number}]")
    if isinstance(kind, dict):
        for key, part in kind.items():
            for name in list(value) if key == "*" else [key.removesuffix("?")]:
                if not key.endswith("?") or value.get(name) is not None:
                    check_kinds(value.get(name), part, f"{place}{separator}{name}")


def facts_of(folder: Path, config: Mapping[str, Any], scores: Mapping[str, Any]) -> dict[str, str]:
    """Return the facts of a model directory; CheckpointError as `check_values`.

    In earlier versions the card alone named a data set of the Hub; it is right where training wrote it.
    """
    check_values(config, scores, folder)
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
