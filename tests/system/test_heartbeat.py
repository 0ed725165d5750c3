"""A process that shows no sign of life is found, named and killed; one that does is left alone."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from torch.distributed import HashStore, Store  # type: ignore[attr-defined]

from tolka.errors import LostProcessError
from tolka.system import heartbeat
from tolka.system.heartbeat import Peer, Watch
from tolka.system.ranks import Ranks

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals as on Unix")


@pytest.fixture
def exits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The codes with which a process would have ended itself; beats are fast."""
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    monkeypatch.setattr(heartbeat, "_BEAT_SECONDS", 0.05)
    monkeypatch.setattr(heartbeat, "_MISSED_BEATS", 10)
    monkeypatch.setattr(heartbeat, "_GRACE_SECONDS", 0.1)
    for name in ("RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    return codes


@pytest.fixture
def other() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that does nothing."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


def wait_until(fact: Callable[[], object]) -> None:
    until = time.monotonic() + 20
    while not fact():
        assert time.monotonic() < until
        time.sleep(0.02)


def watch(rank: int, pids: list[int], store: Store, said: list[str]) -> Watch:
    peers = [Peer(number, Peer.here(0).host, pid, Peer.here(0).machine) for number, pid in enumerate(pids)]
    for number in range(len(pids)):
        store.set(f"beat {number}", "0")
    return Watch(Ranks(rank, len(pids)), peers, store, said.append, lambda: "the same command goes on")


def test_one_that_is_silent(exits: list[int], other: "subprocess.Popen[bytes]") -> None:
    said: list[str] = []
    watching = watch(0, [os.getpid(), other.pid], HashStore(), said)
    assert other.wait(timeout=20) == -9
    what = f"process 1 (pid {other.pid} on {Peer.here(0).host}) of 2 has not answered for 0 s; the same command "
    assert [line.startswith(f"error: {what}") for line in said] == [True]
    explained = watching.explained(LostProcessError("somebody"))
    assert str(explained).startswith(what)
    assert explained.reported
    wait_until(lambda: exits == [1])  # the main thread did not notice
    watching.stop()


def test_one_that_beats(exits: list[int], other: "subprocess.Popen[bytes]") -> None:
    said: list[str] = []
    store, over = HashStore(), threading.Event()
    watching = watch(0, [os.getpid(), other.pid], store, said)
    beats = 0
    while beats < 60:  # three times as long as a silent one would be given
        beats += 1
        store.set("beat 1", str(beats))
        over.wait(0.025)
    watching.stop()
    assert (said, watching.found, exits, other.poll()) == ([], "", [], None)


def test_one_that_has_ended(exits: list[int], other: "subprocess.Popen[bytes]") -> None:
    watching = watch(0, [os.getpid(), other.pid], HashStore(), [])
    other.kill()
    found = watching.explained(LostProcessError("somebody"))
    watching.stop()
    assert str(found).startswith(f"process 1 (pid {other.pid} on {Peer.here(0).host}) of 2 has ended; the same ")
    assert not found.reported


class Gone(HashStore):
    """A store on a machine that is gone."""

    def multi_get(self, keys: list[str]) -> list[bytes]:
        raise RuntimeError("Connection reset by peer")


def test_the_store_is_gone(
    exits: list[int], other: "subprocess.Popen[bytes]", capsys: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []
    watching = watch(1, [other.pid, os.getpid()], Gone(), said)
    assert other.wait(timeout=20) == -9
    assert said[0].startswith(f"error: process 0 (pid {other.pid} on ")
    wait_until(lambda: exits == [1])
    watching.stop()
    assert capsys.readouterr().err == f"{said[0]}\n"  # the first process, which talks, is the one that is gone


def test_another_machine_or_container() -> None:
    here = Peer.here(0)
    assert here.is_near(Peer(1, here.host, 1, here.machine))
    assert not here.is_near(Peer(1, f"{here.host}2", here.pid, here.machine))
    assert not here.is_near(Peer(1, here.host, here.pid, "pid:[1]"))
    assert not here.has_ended()
