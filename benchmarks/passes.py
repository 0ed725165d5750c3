"""A program that translates, by the clock: a file's lines for the first time, and again; needs no library.

New memory counts in the first pass alone, and so does what a program prepares on the way, unless it begins later.
"""

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

MOST, ENOUGH = 4, 6.0  # later passes, and seconds after which none begins


def measure(translate: Callable[[list[str]], tuple[list[str], int]], source: Path, out: Path) -> None:
    """Write the translations to `out`, print a JSON line: sentences, tokens, seconds of the first pass, and the median
    of those after it, and the sum of these. translate: lines -> their translations, and the tokens of these."""
    lines = source.read_text(encoding="utf-8").split("\n")[:-1]
    translate(lines[:2])
    started_at = time.perf_counter()
    text, tokens = translate(lines)
    first, again = time.perf_counter() - started_at, list[float]()
    while not again or (len(again) < MOST and sum(again) < ENOUGH):
        started_at = time.perf_counter()
        translate(lines)
        again.append(time.perf_counter() - started_at)
    out.write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    facts = {"sentences": len(text), "tokens": tokens}
    print(json.dumps({**facts, "seconds": first, "again": statistics.median(again), "later": sum(again)}))
