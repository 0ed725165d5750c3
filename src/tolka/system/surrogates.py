"""Names of files that are not UTF-8: Python reads such a byte as half of a surrogate pair, which no text may hold."""


def is_utf8(name: str) -> bool:
    """Whether it can be written into a text file."""
    return printable(name) == name


def printable(name: str) -> str:
    """The name as messages and files show it: caf\\udce9 for a byte e9."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")
