"""How long mt-eval takes to score many lines, and how much memory.

    python benchmarks/scoring_speed.py TEXT WORK [--lines 20000 200000] [--replaced 0.3] [--only "all four"]

TEXT, one sentence a line, is repeated up to the number of lines; what is repeated is perturbed, so that it differs.
Hypotheses are these references with a share of the words replaced by others. Each row is a process of its own: its
wall time, its processor time and its peak of resident memory. WORK keeps the text.
"""

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

from tolka.metrics.tables import table
from tolka.text.lines import read_lines

PERTURBED = 0.1  # share of the words of a repeated line
COMMAND = [sys.executable, "-c", "from tolka.cli import mt_eval; mt_eval()"]
JOBS = {
    "BLEU, chrF": ["metrics.names=[bleu,chrf]", "metrics.bootstrap=0"],
    "BLEU, chrF, intervals": ["metrics.names=[bleu,chrf]"],
    "compare: BLEU, chrF": ["metrics.names=[bleu,chrf]"],
    "TER, intervals": ["metrics.names=[ter]"],
    "all four, intervals": [],
}


def replace_words(lines: Sequence[str], share: float, words: Sequence[str], seed: int) -> list[str]:
    """The lines with that share of their words replaced."""
    draw = random.Random(seed)
    return [" ".join(draw.choice(words) if draw.random() < share else w for w in line.split()) for line in lines]


def write_lines(text: Path, work: Path, count: int, replaced: float) -> list[Path]:
    """The files a, b and reference, of so many lines."""
    lines = list(islice(read_lines(text), count))
    words = [word for line in lines[:5000] for word in line.split()]
    again = list(islice(cycle(lines), count - len(lines)))
    references = [*lines, *replace_words(again, PERTURBED, words, 0)]
    a, b = (replace_words(references, share, words, seed) for share, seed in ((replaced, 1), (replaced - 0.02, 2)))
    paths = [work / f"{name}.{count}" for name in ("a", "b", "reference")]
    for path, content in zip(paths, (a, b, references), strict=True):
        path.write_text("".join(f"{line}\n" for line in content), encoding="utf-8")
    return paths


def measure(arguments: Sequence[str]) -> list[str]:
    """Cells: seconds of wall time and of processors, MB at the peak."""
    started_at = time.perf_counter()
    process = subprocess.Popen([*COMMAND, *arguments, "--json"], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"mt-eval {' '.join(arguments)} failed")
    seconds = time.perf_counter() - started_at
    return [f"{seconds:.1f}", f"{used.ru_utime + used.ru_stime:.1f}", f"{used.ru_maxrss / 1024:.0f}"]


def main() -> None:
    """Write the text, then a row for each job."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--lines", type=int, nargs="+", default=[20_000, 200_000])
    parser.add_argument("--replaced", type=float, default=0.3, help="share of the words of a hypothesis")
    parser.add_argument("--only", nargs="+", choices=JOBS, default=list(JOBS))
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    rows = []
    for count in options.lines:
        a, b, reference = map(str, write_lines(options.text, options.work, count, options.replaced))
        for name in options.only:
            systems = ["compare", a, b] if name.startswith("compare") else [f"hypothesis={a}"]
            rows.append([f"{count}", name, *measure([*systems, f"reference={reference}", "language=de", *JOBS[name]])])
    print(table(rows, ["lines", "scores", "seconds", "CPU seconds", "MB"], "rlrrr"))


if __name__ == "__main__":
    main()
