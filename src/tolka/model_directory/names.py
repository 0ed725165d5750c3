"""Model directories as they are named on a command line."""

import os
from pathlib import Path

from tolka.errors import ConfigError, DataError
from tolka.system.surrogates import is_utf8, printable
from tolka.text.lines import user_path


def models_of(text: str) -> list[Path]:
    """Return the model directories in a text: one, or several joined by commas. What exists is taken whole."""
    names = [text] if os.path.lexists(text) else text.split(",")
    if not all(name.strip() for name in names):
        raise ConfigError(f"MODEL ({text!r}) has an empty name in it; models are joined as in runs/a,runs/b")
    return [model_path(name.strip()) for name in names]


def model_path(name: str) -> Path:
    """Return the path of a model's or a run's folder; DataError if it is not UTF-8."""
    # Files to read may have any name; safetensors, written in Rust, takes only UTF-8.
    if not is_utf8(name):
        raise DataError(f"{printable(name)} is not UTF-8, and safetensors opens no such file: rename the folder")
    return user_path(name)
