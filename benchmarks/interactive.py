"""mt-translate as a filter: seconds until a line is answered, and memory over the size of the text (Linux).

    python benchmarks/interactive.py MODEL TEXT [search=greedy ...]
    python benchmarks/interactive.py MODEL TEXT --megabytes 2,20 [search=greedy ...]

Without --megabytes, the lines of TEXT are written to the command one after the other, each after the answer to the one
before; printed are the seconds from the start of the command to the first answer, and the median and the most of the
others. With --megabytes, TEXT is repeated to that size and piped through the command; printed are the peak resident
memory, the lines in and out, and lines per second.
"""

import argparse
import os
import statistics
import subprocess
import sys
import threading
import time
from itertools import cycle
from pathlib import Path

from memory import Watch, peak_so_far

MAIN = [sys.executable, "-c", "from tolka.cli import mt_translate; mt_translate()"]
LINES = 50


def answers(model: str, lines: list[bytes], settings: list[str]) -> list[float]:
    """Seconds until each line is answered; the first are counted from the start of the command."""
    seconds = []
    started_at = time.perf_counter()
    with subprocess.Popen([*MAIN, model, *settings], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in lines:
            os.write(process.stdin.fileno(), line)
            process.stdout.readline()
            now = time.perf_counter()
            seconds.append(now - started_at)
            started_at = now
    return seconds


def write(handle: int, lines: list[bytes], size: int) -> int:
    """Write the lines again and again, until that many bytes are written; return how many lines."""
    count = 0
    with open(handle, "wb") as stream:
        for line in cycle(lines):
            if size <= 0:
                break
            stream.write(line)
            size, count = size - len(line), count + 1
    return count


def flow(model: str, lines: list[bytes], megabytes: float, settings: list[str]) -> str:
    """Pipe a text of that size through the command; return what was measured."""
    started_at = time.perf_counter()
    counts: list[int] = []
    with subprocess.Popen([*MAIN, model, *settings], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        handle = os.dup(process.stdin.fileno())
        process.stdin.close()
        writer = threading.Thread(target=lambda: counts.append(write(handle, lines, int(megabytes * 1e6))))
        writer.start()
        with Watch(lambda: peak_so_far(process.pid)) as watch:
            answered = sum(1 for _ in process.stdout)
        writer.join()
    seconds = time.perf_counter() - started_at
    return (
        f"{megabytes:g} MB: peak {watch.peak / 1e6:.0f} MB, {counts[0]} lines in, {answered} lines out, "
        f"{answered / seconds:.0f} lines/s"
    )


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("text", type=Path)
    parser.add_argument("--megabytes", default="", help="sizes, joined by commas")
    options, settings = parser.parse_known_args()
    lines = options.text.read_bytes().splitlines(keepends=True)
    for megabytes in filter(None, options.megabytes.split(",")):
        print(flow(options.model, lines, float(megabytes), settings), flush=True)
    if not options.megabytes:
        first, *others = answers(options.model, lines[:LINES], settings)
        print(f"first answer {first:.2f} s; others: median {statistics.median(others):.3f} s, most {max(others):.3f} s")


if __name__ == "__main__":
    main()
