"""Readers of files that hold both sides of a corpus, chosen by the file extension."""

import importlib
import pkgutil
from pathlib import Path

from tolka.text.lines import without_compression
from tolka.text.readers.base import FORMATS, BothSides, register_reader

__all__ = ["FORMATS", "BothSides", "reader_of", "register_reader"]

for _module in pkgutil.iter_modules(__path__):  # a new reader is one new file
    importlib.import_module(f"{__name__}.{_module.name}")


def reader_of(path: Path) -> type[BothSides] | None:
    """Return the reader for a file's extension, whether it exists or not; None unless such files have both sides."""
    return FORMATS.get(without_compression(path).suffix.lower())
