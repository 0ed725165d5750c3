"""The memory of another process, looked at while it runs (Linux)."""

import threading
from collections.abc import Callable
from pathlib import Path

LOOK_EVERY = 0.2  # seconds


def peak_so_far(process: int | None) -> int:
    """The most resident bytes that a process had; 0 before it begins and after its end."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)


def family_now(root: int) -> int:
    """Resident bytes of a process and all that it has started, what they share counted once (Linux's Pss)."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:  # gone meanwhile
                continue
    family, found = {root}, 1
    while found:
        more = {process for process, parent in parents.items() if parent in family} - family
        family, found = family | more, len(more)
    memory = 0
    for process in family:
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        memory += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return memory


class Watch:
    """The most of what `look` gives, in bytes, for the length of a block."""

    def __init__(self, look: Callable[[], int]) -> None:
        self.peak, self._look, self._done = 0, look, threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(LOOK_EVERY):
            self.peak = max(self.peak, self._look())
