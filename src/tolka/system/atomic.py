"""Files and folders that are replaced atomically, and locks of open files."""

import errno
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import IO, Any

from tolka.errors import DataError

_POLL_SECONDS = 0.2
# No space, no quota, and a file above the limit of the process.
_DISK_FULL = {getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG") if hasattr(errno, name)}


@contextmanager
def whole_folder(final: Path) -> Iterator[Path]:
    """Yield a temporary folder that replaces `final`, synced to disk, when the block ends without an error.

    An existing `final` stays readable until it is replaced; an error leaves it unchanged.
    """
    final.parent.mkdir(parents=True, exist_ok=True)
    work = final.with_name(f".{final.name}.{token_hex(4)}.partial")
    work.mkdir()
    try:
        with name_in_disk_errors(final):
            yield work
        mode = work.stat().st_mode & 0o777  # as the umask gives it
        for path in [*work.rglob("*"), work]:
            # Some libraries, such as safetensors, write files that only their owner may read.
            os.chmod(path, mode if path.is_dir() else mode & 0o666)
            _sync(path)
        # os.replace takes no folder that has files: a crash between the two renames leaves the backup, which
        # `readable_folder` finds.
        old = work.with_suffix(".old")
        if final.exists():
            final.rename(old)
        try:
            work.rename(final)
        except BaseException:
            with suppress(FileNotFoundError):
                old.rename(final)
            raise
        shutil.rmtree(old, ignore_errors=True)  # a leftover is removed by `recover`
        _sync(final.parent)  # the new name survives a loss of power, too
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise


@contextmanager
def replaced_files(folder: Path, last: str) -> Iterator[Path]:
    """Yield a temporary folder whose files replace those of `folder`, synced to disk, if the block ends without error.

    They are moved one by one, the one called `last` after all others. Several processes may do so at once.
    """
    work = folder / f".{token_hex(4)}.partial"
    work.mkdir()
    try:
        with name_in_disk_errors(folder):
            yield work
            # A manifest, say, comes last: until then the folder is the old one, or verifies as neither.
            files = sorted(work.iterdir(), key=lambda path: path.name == last)
            for path in files:
                _sync(path)
        for path in files:
            os.replace(path, folder / path.name)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def try_lock(stream: IO[Any]) -> bool:
    """Lock an open file until it is closed; return False when another process has it.

    Return True also where the file system has no locks: a run there is not protected, and not refused either.
    """
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)  # the first byte, which need not exist
        except OSError:
            return False
        return True
    import fcntl

    for lock in (fcntl.flock, fcntl.lockf):  # some network file systems know only the second
        try:
            lock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        except OSError:
            continue
        return True
    return True


@contextmanager
def one_at_a_time(path: Path, waiting: Callable[[], object]) -> Iterator[None]:
    """Admit one process at a time to a block, by the lock of a file; call `waiting` if another one is inside."""
    # The system frees the lock of a process however it ends; a file that merely exists would outlive a kill.
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with path.open("a+", encoding="utf-8") as stream:
            if not try_lock(stream):
                waiting()
                while not try_lock(stream):
                    time.sleep(_POLL_SECONDS)
            if not is_at(path, stream):
                continue  # locked, but removed by the process that had it: others lock a new one of that name
            try:
                yield
            finally:
                with suppress(OSError):  # Windows removes no open file
                    path.unlink()
            return


def is_at(path: Path, stream: IO[Any]) -> bool:
    """Return whether an open file has not been removed from its path."""
    try:
        return os.path.samestat(path.stat(), os.fstat(stream.fileno()))
    except FileNotFoundError:
        return False


def readable_folder(final: Path) -> Path:
    """Return the folder to read: `final`, or its backup if a crash interrupted its replacement."""
    # Restoring it is left to `recover`: a reader must not disturb a writer that is between the two renames.
    if not final.exists():
        for old in sorted(final.parent.glob(f".{final.name}.*.old")):
            return old
    return final


def replace_text(path: Path, text: str) -> None:
    """Replace a text file atomically."""
    # Lone surrogates (file names that are not UTF-8) become \\udce9, which JSON and YAML read back.
    replace_bytes(path, text.encode("utf-8", "backslashreplace"))


def replace_bytes(path: Path, content: bytes) -> None:
    """Replace a binary file atomically."""
    temporary = partial(path)
    try:
        with name_in_disk_errors(path):
            temporary.write_bytes(content)
            _sync(temporary)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def link_or_copy(source: str | Path, target: str | Path) -> None:
    """Let a file stand at a second place too; copy it where the file system has no links, or is another one."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def partial(path: Path) -> Path:
    """Return the path to which a file's new content is written first; a crash may leave it behind."""
    return path.with_name(f".{path.name}.partial")


def recover(final: Path) -> None:
    """Clean up before writing: restore the old folder if a crash left `final` missing, and remove leftovers."""
    old = sorted(final.parent.glob(f".{final.name}.*.old"))
    if old and not final.exists():
        old[-1].rename(final)
    for leftover in [*old, *final.parent.glob(f".{final.name}.*.partial")]:
        shutil.rmtree(leftover, ignore_errors=True)


def _sync(path: Path) -> None:
    """Sync a file or, where the system allows it, a folder to disk."""
    if os.name == "nt" and path.is_dir():  # Windows opens no folders
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def name_in_disk_errors(path: Path) -> Iterator[None]:
    """Add the file's name to errors of a full disk."""
    # The system names a file when it opens one, not when it writes into it.
    try:
        yield
    except OSError as error:
        if error.errno not in _DISK_FULL or error.filename:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def check_output(path: Path, read: Iterable[Path] = ()) -> None:
    """Raise DataError, before the work begins, when a file cannot be written there, or is `read`, by whatever name."""
    if not path.parent.is_dir():
        raise DataError(f"{path}: there is no folder {path.parent}; make it first")
    if path.is_dir():
        raise DataError(f"{path} is a folder; name a file to write")
    if path.is_file() and any(each.is_file() and path.samefile(each) for each in read):
        raise DataError(f"{path} is read, too, and its text would be lost: name another file to write")


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that gets its name once it is complete; a device or a pipe (/dev/null) is written directly."""
    check_output(path)
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            yield stream
        return
    final = path.resolve()  # a link stays a link
    temporary = final.with_name(f".{final.name[:100]}.{token_hex(4)}")  # names have at most 255 bytes
    try:
        with name_in_disk_errors(path), temporary.open("xb") as stream:
            yield stream
        temporary.replace(final)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
