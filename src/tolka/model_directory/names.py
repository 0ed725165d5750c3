"""Model directories as they are named on a command line."""

import os
from collections.abc import Iterable
from pathlib import Path

from tolka.errors import ConfigError, DataError
from tolka.system.surrogates import is_utf8, printable
from tolka.text.lines import user_path

_OF_A_RUN = {
    *("best", "last", "checkpoints", "samples", "shown", "plots", "logs"),
    *("config.yaml", "train.log", "metrics.jsonl", "provenance.json", "report.html", "report.md", "check.html"),
}


def models_of(text: str) -> list[Path]:
    """Return the model directories in a text: one, or several joined by commas. What exists is taken whole."""
    names = [text] if os.path.lexists(text) else text.split(",")
    if not all(name.strip() for name in names):
        raise ConfigError(f"MODEL ({text!r}) has an empty name in it; models are joined as in runs/a,runs/b")
    return [model_path(name.strip()) for name in names]


def check_outside(out: Path, models: Iterable[Path]) -> None:
    """Raise DataError for what is written into a model's folder, or in place of what a run has written into its own."""
    path = out.resolve()
    for folder in (model.resolve() for model in models if model.is_dir()):
        is_inside = path.is_relative_to(folder)
        if is_inside and (not (folder / "best").is_dir() or {*path.relative_to(folder).parts[:1]} & _OF_A_RUN):
            raise DataError(f"{out} is inside the model {folder}, whose files would be lost: name another place")


def model_path(name: str) -> Path:
    """Return the path of a model's or a run's folder; DataError if it is not UTF-8."""
    # Files to read may have any name; safetensors, written in Rust, takes only UTF-8.
    if not is_utf8(name):
        raise DataError(f"{printable(name)} is not UTF-8, and safetensors opens no such file: rename the folder")
    return user_path(name)
