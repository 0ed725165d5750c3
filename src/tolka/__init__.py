"""tolka: from plain parallel text to a translator whose quality is honestly known.

The public names are imported when first used, so that a command's `--help` never waits for torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tolka.api import evaluate, train, translate
    from tolka.translator import Translator

__all__ = ["Translator", "__version__", "evaluate", "train", "translate"]

_HOMES = {"Translator": "tolka.translator", "train": "tolka.api", "translate": "tolka.api", "evaluate": "tolka.api"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tolka' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
