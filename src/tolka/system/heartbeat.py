"""A sign of life from each process of a training, so that one that hangs does not make the others wait for ever.

A process that is stopped, or whose machine or network is gone, closes no connection: torch would wait half an hour.
"""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta

from torch.distributed import TCPStore  # type: ignore[attr-defined]
from torch.distributed.distributed_c10d import Store

from tolka.errors import LostProcessError
from tolka.system import interrupts
from tolka.system.launch import has_agent, launch
from tolka.system.meeting import Meeting, current
from tolka.system.pids import machine, started
from tolka.system.ranks import Ranks

_BEAT_SECONDS = 2.0
_MISSED_BEATS = 15  # in a row: the process hangs
_GRACE_SECONDS = 10.0  # for the main thread to notice, and to end by itself
_CONNECT = timedelta(seconds=30)
_LOOKS_FOR_ENDED, _LOOK_SECONDS = 20, 0.1  # a connection may be closed before its process has ended


@dataclass(frozen=True)
class Peer:
    """A process of this training: its number, the name of its machine, its id there, and what tells machines apart."""

    rank: int
    host: str
    pid: int
    machine: str = ""

    @classmethod
    def here(cls, rank: int) -> "Peer":
        """Return the process that calls this, as the one with this rank."""
        return cls(rank, socket.gethostname(), os.getpid(), machine())

    def is_near(self, other: "Peer") -> bool:
        """Return whether the other one has its process id on the same machine."""
        return (self.host, self.machine) == (other.host, other.machine)

    def has_ended(self) -> bool:
        """Return whether there is no such process on this machine any more."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:  # another user's
            return False
        return bool(self.machine) and not started(self.pid)  # "" on a system without /proc


class Watch:
    """Two threads: one writes this process's counter and reads the others'; one sees whether they change.

    Looks are counted, not seconds: a process that was itself stopped for a while, by Ctrl-Z or with the whole machine,
    goes on without complaint.
    """

    def __init__(
        self,
        ranks: Ranks,
        peers: Sequence[Peer],
        store: Store,
        log: Callable[[str], None],
        next_time: Callable[[], str],
    ) -> None:
        self._next_time = next_time
        self._ranks, self._peers, self._store, self._log = ranks, peers, store, log
        self._meeting = Meeting(store, launch())
        self._unchanged = [0] * ranks.size
        self._looks = 0
        self._over = threading.Event()
        self.found = ""
        for run in (self._beat, self._watch):
            threading.Thread(target=run, name="heartbeat", daemon=True).start()

    def stop(self) -> None:
        """End the two threads of this process."""
        self._over.set()

    def _beat(self) -> None:
        names, before = _beats(self._ranks.size), [b""] * self._ranks.size
        while not self._over.is_set():
            with suppress(RuntimeError):  # the store is gone: nothing is read any more, which `_watch` sees
                self._store.set(names[self._ranks.rank], str(self._looks + 1))
                now = self._store.multi_get(names)  # waits for ever where the machine of the store is gone
                self._unchanged = [
                    n + 1 if old == new else 0 for n, old, new in zip(self._unchanged, before, now, strict=True)
                ]
                before, self._looks = now, self._looks + 1
            self._over.wait(_BEAT_SECONDS)

    def _watch(self) -> None:
        looks, without_answer = 0, 0
        while not self._over.wait(_BEAT_SECONDS):
            without_answer = without_answer + 1 if self._looks == looks else 0
            looks = self._looks
            hanging = [self._peers[rank] for rank, missed in enumerate(self._unchanged) if missed >= _MISSED_BEATS]
            if hanging or without_answer >= _MISSED_BEATS:
                self._end_with(hanging)
                return

    def _end_with(self, hanging: Sequence[Peer]) -> None:
        """Report who does not answer, kill it if it is on this machine, and end this process a little later.

        hanging: empty if the store does not answer, which torchrun's agent has, or else the first process.
        """
        late = threading.Timer(_GRACE_SECONDS, os._exit, [1])
        late.daemon = True
        late.start()
        own, silent = self._peers[self._ranks.rank], f"not answered for {_BEAT_SECONDS * _MISSED_BEATS:.0f} s"
        if hanging:
            self.found = self._named(hanging, silent)
            reports = self._meeting.reports()
        elif has_agent():
            self.found = f"torchrun's agent has {silent}; {self._next_time()}"
            reports = self._ranks.is_first
        else:
            hanging = self._peers[:1]
            self.found = self._named(hanging, silent)
            reports = self._ranks.rank == 1
        if reports:
            self._report()
        for peer in hanging:
            if peer.is_near(own):
                with suppress(OSError):
                    os.kill(peer.pid, signal.SIGKILL)

    def _report(self) -> None:
        """Write what is found into this process's log, and on stderr, where the first process alone talks otherwise."""
        line = f"{'warning' if has_agent() else 'error'}: {self.found}"
        self._log(line)
        if not self._ranks.is_first:
            interrupts.tell(line)

    def _named(self, peers: Sequence[Peer], what: str) -> str:
        each = ", ".join(f"{peer.rank} (pid {peer.pid} on {peer.host})" for peer in peers)
        several = len(peers) > 1
        return (
            f"process{'es' if several else ''} {each} of {self._ranks.size} {'have' if several else 'has'} {what}; "
            f"{self._next_time()}"
        )

    def explained(self, error: LostProcessError) -> LostProcessError:
        """Return the error with the process that has ended, if this machine knows it."""
        own = self._peers[self._ranks.rank]
        others = [peer for peer in self._peers if peer.is_near(own) and peer.rank != own.rank]
        for _ in range(_LOOKS_FOR_ENDED):
            if self.found:
                found = LostProcessError(self.found)
                found.reported = True
                return found
            if ended := [peer for peer in others if peer.has_ended()]:
                return LostProcessError(self._named(ended, "ended"))
            time.sleep(_LOOK_SECONDS)
        return error


@contextmanager
def watching(ranks: Ranks, log: Callable[[str], None], next_time: Callable[[], str]) -> Iterator[None]:
    """End all processes within a minute if one of them hangs or ends during a block; at its end, wait for all.

    Other processes that wait for this one have to be in such a block too. log: called with a line about it. next_time:
    returns what the same command would do then.
    """
    if ranks.size == 1 or launch().size == 1:
        yield
        ranks.wait()
        return
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    client = TCPStore(address, port, None, False, timeout=_CONNECT, wait_for_workers=False)  # others may be blocked
    store = current(client, launch())
    store.set(_beats(ranks.size)[ranks.rank], "0")
    watch = Watch(ranks, ranks.gather(Peer.here(ranks.rank)), store, log, next_time)
    try:
        yield
        ranks.wait()  # the store may be in the first process, which ends when this one no longer needs it
    except LostProcessError as error:
        raise watch.explained(error) from None
    finally:
        watch.stop()


def _beats(size: int) -> list[str]:
    return [f"beat {rank}" for rank in range(size)]
