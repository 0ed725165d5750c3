"""Statistics of many lines, counted in several processes with the same result as in one."""

import os
import pickle
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from tolka.errors import TolkaError
from tolka.metrics.line_statistics import Statistics, line_statistics
from tolka.system.child_processes import Child, cores, start

_LINES_PER_PROCESS = 20_000  # of all systems: these take about four times as long as it takes to start a process
_Lines = Sequence[Sequence[str]]


def all_statistics(metric: Any, systems: _Lines, references: _Lines) -> list[Statistics]:
    """Return what `line_statistics` does, by as many processes as there are cores if there are many lines."""
    lines = len(references[0])
    count = min(cores(), len(systems) * lines // _LINES_PER_PROCESS)
    if count < 2:
        return line_statistics(metric, systems, references)
    ends = [lines * number // count for number in range(count + 1)]
    parts = [
        ([list(each[first:last]) for each in systems], [list(each[first:last]) for each in references])
        for first, last in pairwise(ends)
    ]
    children = [start(__name__, answers=True) for _ in parts[1:]]
    try:
        with ThreadPoolExecutor(len(children)) as threads:  # which only wait
            others = threads.map(_ask, children, [pickle.dumps((metric, *part)) for part in parts[1:]])
            try:
                found = [line_statistics(metric, *parts[0]), *others]
            except BaseException:  # an error or a signal: the threads' children are not waited for
                for child in children:
                    child.process.kill()
                raise
    finally:
        for child in children:
            child.end()
    return [np.concatenate(of_system) for of_system in zip(*found, strict=True)]


def _ask(child: Child, question: bytes) -> list[Statistics]:
    answer, _ = child.process.communicate(question)
    if child.process.returncode or not answer:
        raise TolkaError(f"a process that counted n-grams ended: {child.reason()}")
    statistics: list[Statistics] = pickle.loads(answer)  # of our own process
    return statistics


def main() -> None:
    """Count in a child process: metric and texts on standard input, statistics on standard output."""
    sys.stdout.buffer.write(pickle.dumps(line_statistics(*pickle.load(sys.stdin.buffer))))
    sys.stdout.buffer.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
