"""File names that are not UTF-8: Python reads such bytes as lone surrogates, which cannot be written as text."""


def is_utf8(name: str) -> bool:
    """Return whether the name can be written as text."""
    return printable(name) == name


def printable(name: str) -> str:
    """Return the name as messages and files show it: caf\\udce9 for a byte e9."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")
