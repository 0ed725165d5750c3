"""Whether a process has ended, as Linux shows it."""

import time
from pathlib import Path


def is_gone(process: int) -> bool:
    """Wait half a minute at most until a process is no longer there, or only waits to be collected."""
    for _ in range(600):
        try:
            if Path(f"/proc/{process}/stat").read_text().split()[2] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False
