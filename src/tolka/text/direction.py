"""The direction of a translation: from which language into which."""

from pathlib import Path
from typing import NamedTuple


class Direction(NamedTuple):
    """Codes of the source and target language, as in `Direction("en", "de")`; empty where nobody said them."""

    source: str = ""
    target: str = ""

    @property
    def is_known(self) -> bool:
        """Whether both languages are named."""
        return bool(self.source and self.target)

    @property
    def swapped(self) -> "Direction":
        """The direction from the target language into the source language."""
        return Direction(self.target, self.source)

    @property
    def code(self) -> str:
        """The direction in names and tables: en-ko."""
        return f"{self.source}-{self.target}"

    def files(self, prefix: Path) -> tuple[Path, Path]:
        """Return the files of both sides of a text: PREFIX.en and PREFIX.ko."""
        return Path(f"{prefix}.{self.source}"), Path(f"{prefix}.{self.target}")

    def __str__(self) -> str:
        return f"{self.source} to {self.target}"


UNKNOWN = Direction()
UNDETERMINED = "und"
"""The code of an undetermined language (ISO 639-2)."""


def is_named(code: str) -> bool:
    """Return whether a code names a language: it is neither empty nor that of an undetermined one."""
    return code not in ("", UNDETERMINED)
