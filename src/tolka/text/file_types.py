"""Files that are not plain text: documents by their file extension, binary files by their first bytes.

The tables of them are in file_types.yaml.
"""

from pathlib import Path

from tolka.system.package_data import table_beside


def document_kind(path: Path) -> tuple[str, str]:
    """Return a file's kind by its name, and what it contains besides text; two empty strings for plain text.

    It contains "" where its bytes are no text, which reading refuses.
    """
    kinds, end = table_beside(__file__)["documents"].items(), path.suffix.lower()
    found = ((kind, content) for kind, ends in kinds for content, each in ends.items() if end in each.split())
    return next(found, ("", ""))


def binary_kind(head: bytes, name: str = "") -> tuple[str, str]:
    """Return a file's kind by its first bytes, which a text may have as well, and what to do; two "" if unknown."""
    advised, text = table_beside(__file__)["binary"].items(), head.decode("latin-1")
    found = ((kind, do) for do, kinds in advised for kind, marks in kinds.items() if text.startswith(tuple(marks)))
    kind, advice = next(found, ("", ""))
    by_name, content = document_kind(Path(name))
    return (by_name, advice) if kind and by_name and not content else (kind, advice)
