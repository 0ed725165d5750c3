"""Jobs that processes share out among themselves by files in a folder, on one machine or on several.

A member of the folder has a file in it, which it touches every few seconds. A claim is a file that only one process can
create, with its member's name. It is never changed or removed: once its member is dead, it counts no longer, and the
job is claimed by a file of the next number. This needs no locks, which not every network file system has.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from uuid import uuid4

from tolka.system.atomic import naming
from tolka.system.pids import machine, started

_BEAT_SECONDS = 5.0
_SILENT_BEATS = 12  # without a touch, after which a member of another machine counts as dead
_POLL_SECONDS, _SHORT_SECONDS = 0.1, 0.01
_MEMBER, _CLOSING = "member-", "closing"


class Member:
    """A process that takes jobs of a folder, with its worker processes, which have the same name."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self._touched: dict[Path, tuple[int, int, float]] = {}  # its time stamp, how often it was the same, and when

    @property
    def _file(self) -> Path:
        return self.folder / f"{_MEMBER}{self.name}"

    def claim(self, job: str) -> bool:
        """Claim a job; return False while a living member, this one included, has claimed it."""
        number = 0
        while True:
            path = self.folder / f"{job}.{number}"
            try:
                with path.open("x") as stream:
                    stream.write(self.name)
                return True
            except FileExistsError:
                if self._is_held(path):
                    return False
            number += 1

    def _is_held(self, claim: Path) -> bool:
        holder = claim.read_text()
        return self._is_alive(self.folder / f"{_MEMBER}{holder}") if holder else not self._is_silent(claim)

    def _is_alive(self, member: Path) -> bool:
        """Return whether a member is there; one of another machine until it has not touched its file for a minute."""
        try:
            where, pid, since = json.loads(member.read_text())
        except FileNotFoundError:
            return False
        except ValueError:  # not written yet
            return not self._is_silent(member)
        if where and where == machine():
            return bool(since == started(pid))
        return not self._is_silent(member)

    def _is_silent(self, path: Path) -> bool:
        """Return whether a file stayed untouched over many looks, by this process's clock: others may be wrong.

        Looks are counted, and not seconds, because a file system that hangs stops the others as well.
        """
        try:
            with path.open() as stream:  # opening asks a file server, where os.stat may not
                stamp = os.fstat(stream.fileno()).st_mtime_ns
        except FileNotFoundError:
            return True
        before, looks, looked_at = self._touched.get(path, (0, 0, 0.0))
        now = time.monotonic()
        if stamp != before:
            self._touched[path] = stamp, 0, now
        elif now - looked_at >= _BEAT_SECONDS:
            self._touched[path] = stamp, looks + 1, now
        return stamp == before and looks >= _SILENT_BEATS

    def _join(self) -> None:
        while True:
            self.folder.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):  # the last member has removed the folder just now
                with naming(self._file):
                    self._file.write_text(json.dumps([machine(), os.getpid(), started(os.getpid())]))
                if not any(map(self._is_held, self.folder.glob(f"{_CLOSING}.*"))) and self._file.exists():
                    return
                self._file.unlink()
            time.sleep(_SHORT_SECONDS)

    def _leave(self) -> None:
        """Leave the folder, and remove it if nobody else is in it."""
        others = (path for path in self.folder.glob(f"{_MEMBER}*") if path != self._file)
        with suppress(OSError):
            while not self.claim(_CLOSING):
                time.sleep(_SHORT_SECONDS)
            if not any(map(self._is_alive, others)):
                removed = self.folder.with_name(f"{self.folder.name}.{self.name}")
                self.folder.rename(removed)  # at once: whoever is joining sees the whole folder, or none
                shutil.rmtree(removed, ignore_errors=True)
        self._file.unlink(missing_ok=True)

    def _beat(self, left: Event) -> None:
        while not left.wait(_BEAT_SECONDS):
            with suppress(OSError):
                os.utime(self._file)


@contextmanager
def member(folder: Path) -> Iterator[Member]:
    """Join the processes that share out jobs in a folder; what this one claims is free again when the block ends.

    The last one to leave removes the folder.
    """
    found, left = Member(folder, uuid4().hex), Event()
    found._join()
    Thread(target=found._beat, args=[left], daemon=True).start()
    try:
        yield found
    finally:
        left.set()
        found._leave()


@contextmanager
def alone(folder: Path, waiting: Callable[[], object]) -> Iterator[None]:
    """Admit one process at a time to a block, by claims in a folder; call `waiting` if another process is inside.

    A process that died inside is noticed at once on its own machine, and after a minute on others. The folder is
    removed afterwards.
    """
    with member(folder) as found:
        if not found.claim("block"):
            waiting()
            while not found.claim("block"):
                time.sleep(_POLL_SECONDS)
        yield
