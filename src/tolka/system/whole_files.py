"""Reading a file as a whole that may come from anybody: no pipe or device, which may have no end, and not too large."""

from pathlib import Path

# Of settings or facts, at most: those that tolka writes have some thousands, and a larger file fills the memory.
MOST_BYTES = 2**24


def check_is_file(path: Path) -> None:
    """Raise ValueError if the path is a pipe or a device."""
    # Reading one may never end, and a second time has nothing.
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ValueError("it is a pipe or a device, and must be a file: write its content to one first")


def read_whole(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return the content of a file; ValueError, before it is read, for a pipe, a device, and more than `most` bytes."""
    check_is_file(path)
    if path.stat().st_size > most:
        raise ValueError(f"it has {path.stat().st_size} bytes, and at most {most} are read")
    return path.read_bytes()


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """Return the text of a file, as `read_whole`."""
    return read_whole(path, most).decode("utf-8")
