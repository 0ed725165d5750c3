"""Processes by their id: on which machine an id counts, and whether the process still runs."""

import os
from contextlib import suppress
from pathlib import Path


def machine() -> str:
    """Return what tells machines, and the containers of one, apart; "" where the system does not say."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    return ""


def started(pid: int) -> str:
    """Return when a process of this machine started, as the system counts it; "" if there is none, or it has ended."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else fields[18]  # Z, X: it has ended
