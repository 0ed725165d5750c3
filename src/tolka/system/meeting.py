"""Where the processes of one training find each other, compare their versions, and agree on who reports an error."""

import json
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from tolka.errors import ConfigError, TolkaError
from tolka.system.launch import Launch, has_agent, launch, restarts
from tolka.version import __version__

WAIT = "TOLKA_WAIT_SECONDS"  # environment variable: how long to wait for the other processes at the start
_WAIT_SECONDS = 300.0
_GOODBYE_SECONDS = 5.0  # for which the process with the store waits for others that end because of an error


@dataclass(frozen=True)
class Meeting:
    """The store that the processes of one training share, in which each has written that it is there."""

    store: Store
    place: Launch

    def compare_versions(self) -> None:
        """Raise ConfigError when a process has other versions than the first one."""
        versions = [json.loads(text) for text in self.store.multi_get(_names(self.place))]
        for rank, each in enumerate(versions):
            for package, version in each.items():
                if version != versions[0][package]:
                    raise ConfigError(
                        f"process 0 has {package} {versions[0][package]}, and process {rank} {version}: install the "
                        "same version on every machine"
                    )

    def reports(self) -> bool:
        """Return whether this process is the first one to end by an error, so that it is the one that reports it."""
        first = [True]

        def ask() -> None:
            place = self.place
            first[0] = self.store.compare_set("reports", "", str(place.rank)) == str(place.rank).encode()
            self.store.set(f"leaves {place.rank}", "")
            if place.rank == 0 and not has_agent():  # the store is in this process: the others shall see the answer
                others = [f"leaves {rank}" for rank in range(1, place.size)]
                self.store.wait(others, timedelta(seconds=_GOODBYE_SECONDS))

        _at_most(2 * _GOODBYE_SECONDS, ask)
        return first[0]


def meet() -> Meeting:
    """Wait for the other processes; TolkaError when one does not come."""
    place, seconds = launch(), _wait_seconds()
    where = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    try:
        store = next(iter(rendezvous("env://", timeout=timedelta(seconds=seconds))))[0]
    except (RuntimeError, ValueError) as error:
        raise TolkaError(_unmet(str(error), place, where, seconds)) from None
    store = current(store, place, new=True)
    names = _names(place)
    store.set(names[place.rank], json.dumps(_versions()))
    try:
        store.wait(names, timedelta(seconds=seconds))
    except RuntimeError:
        missing = [str(rank) for rank, name in enumerate(names) if not store.check([name])]
        raise TolkaError(_missing(f"missing: {', '.join(missing)}", place, where, seconds)) from None
    return Meeting(store, place)


def current(store: Store, place: Launch, *, new: bool = False) -> PrefixStore:
    """Return the part of the store that is this meeting's.

    The agent's store still has the addresses of the processes before a restart, and of the trainings before this one.
    new: whether this process begins another meeting.
    """
    number = store.add(f"meetings of {place.rank}, restart {restarts()}", int(new))
    return PrefixStore(f"restart {restarts()}, meeting {number}", store)


def _names(place: Launch) -> list[str]:
    return [f"versions {rank}" for rank in range(place.size)]


def _versions() -> dict[str, str]:
    return {"tolka": __version__, "torch": str(torch.__version__)}


def _unmet(error: str, place: Launch, where: str, seconds: float) -> str:
    """Return why there is no store at MASTER_ADDR and MASTER_PORT."""
    if "EADDRINUSE" in error or "address already in use" in error:
        return f"MASTER_PORT: another program uses {where}; set another port, the same for all processes"
    if place.rank == 0 and not has_agent() and "imed out" in error:
        return _missing("some are missing", place, where, seconds)
    words = " ".join(error.split())[:200]
    return f"process {place.rank} of {place.size} finds nobody at {where} (MASTER_ADDR, MASTER_PORT): {words}"


def _missing(who: str, place: Launch, where: str, seconds: float) -> str:
    return (
        f"the {place.size} processes of this training have not met at {where} within {seconds:g} s ({who}): start all "
        f"of them; {WAIT} sets another time, and WORLD_SIZE=1 trains in one process"
    )


def _wait_seconds() -> float:
    text = os.environ.get(WAIT, str(_WAIT_SECONDS))
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= 86400:
        raise ConfigError(f"the environment variable {WAIT} ({text}) must be a number of seconds from 1 to 86400")
    return seconds


def _at_most(seconds: float, call: Callable[[], None]) -> None:
    """Call a function that may not return, as the store may be in a process that is gone; errors are ignored."""

    def ignoring() -> None:
        with suppress(RuntimeError):  # the store is gone, or somebody did not come to say goodbye
            call()

    thread = threading.Thread(target=ignoring, daemon=True)
    thread.start()
    thread.join(seconds)
