"""Files that are not plain text: documents by their file extension, binary files by their first bytes.

The tables of them are in file_types.yaml.
"""

from functools import cache
from pathlib import Path

from tolka.system.package_data import table_beside


@cache
def _documents() -> dict[str, tuple[str, str]]:
    """Return file extension -> kind of file, and what it contains besides text."""
    kinds = table_beside(__file__)["documents"].items()
    return {end: (kind, content) for kind, ends in kinds for content, each in ends.items() for end in each.split()}


@cache
def _binary() -> dict[bytes, tuple[str, str]]:
    """Return first bytes -> kind of file, and what to do about it."""
    advice = table_beside(__file__)["binary"].items()
    return {
        head.encode("latin-1"): (kind, do) for do, kinds in advice for kind, heads in kinds.items() for head in heads
    }


def document_kind(path: Path) -> tuple[str, str]:
    """Return a file's kind by its name, and what it contains besides text; two empty strings for plain text.

    It contains "" where its bytes are no text, which reading refuses.
    """
    return _documents().get(path.suffix.lower(), ("", ""))


def binary_kind(head: bytes, name: str = "") -> tuple[str, str]:
    """Return a file's kind by its first bytes, which a text may have as well, and what to do; two "" if unknown."""
    kind, advice = next((kind for mark, kind in _binary().items() if head.startswith(mark)), ("", ""))
    by_name, content = document_kind(Path(name))
    return (by_name, advice) if kind and by_name and not content else (kind, advice)
