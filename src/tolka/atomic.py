"""Folders that appear whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_folder(final: Path) -> Iterator[Path]:
    """A temporary folder beside `final` that takes its place, synced to disk, when the block ends well.

    A `final` that exists stays readable until the moment of the exchange; an error leaves it as it was.
    """
    final.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{final.name}.", suffix=".partial", dir=final.parent))
    try:
        os.chmod(work, 0o777 & ~umask())
        yield work
        for path in [*work.rglob("*"), work]:
            _sync(path)
        if final.exists():
            old = work.with_suffix(".old")
            final.rename(old)
            try:
                work.rename(final)
            except BaseException:
                old.rename(final)
                raise
            shutil.rmtree(old)
        else:
            work.rename(final)
        _sync(final.parent)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise


def standing(final: Path) -> Path:
    """The folder to read: `final`, or what a crash between the two renames of an exchange left of it.

    Changes nothing, so that a reader never gets in the way of a writer.
    """
    if not final.exists():
        for old in sorted(final.parent.glob(f".{final.name}.*.old")):
            return old
    return final


def replace_text(path: Path, text: str) -> None:
    """Write a small text file so that a reader, or the next start after a crash, finds the old or the new one."""
    beside = path.with_name(f".{path.name}.partial")
    beside.write_text(text, encoding="utf-8")
    _sync(beside)
    os.replace(beside, path)


def recover(final: Path) -> None:
    """For the writer, before it begins: put the old folder back if a crash left `final` missing, remove leftovers."""
    old = sorted(final.parent.glob(f".{final.name}.*.old"))
    if old and not final.exists():
        old[-1].rename(final)
    for leftover in [*old, *final.parent.glob(f".{final.name}.*.partial")]:
        shutil.rmtree(leftover, ignore_errors=True)


def _sync(path: Path) -> None:
    """fsync a file or, where the system allows it, a folder."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def umask() -> int:
    """The bits that new files of this process go without; Python can only read it by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
