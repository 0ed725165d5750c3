"""A metric that a command computes, such as comet-score: it prints one number for each line."""

import math
import os
import re
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tolka.errors import ConfigError, DataError
from tolka.metrics.metric import Metric, Ratio, References

# Of the mean that a command prints in the end: relative to the largest score, and of four decimals near 0.
_ROUNDING, _DECIMALS = 0.01, 1e-4


def command_metric(name: str, command: str) -> Metric:
    """Return the mean of what a command prints for each line.

    It runs in a shell, in the current folder. {source}, {hypothesis} and {reference} in it are files, one sentence a
    line; several references stand side by side. What counts is the last word of each line that it prints; one line
    more, with their mean, is ignored, as comet-score ends with it. ConfigError when it fails, or {source} is not known;
    DataError for other counts and for what is no finite number.
    """

    def count(system: Sequence[str], references: References) -> list[tuple[float, float]]:
        return [(value, 1.0) for value in _numbers(command, system, references)]

    return Ratio(name, count, without_folders(command))


def without_folders(command: str) -> str:
    """Return a command with the last names of its paths alone, for signatures and whatever else may be published."""
    return re.sub(r"""[^\s'"=]*/(?=[^\s'"/])""", "", command)


def _numbers(command: str, system: Sequence[str], references: References) -> list[float]:
    """Run the command on one system, and return its numbers."""
    if "{source}" in command and references.sources is None:
        raise ConfigError("metrics.command has {source}, and the sources are not known: add source=FILE")
    with tempfile.TemporaryDirectory() as folder:
        filled = command
        files = {"hypothesis": [system], "reference": references.lists, "source": [references.sources or []]}
        for key, texts in files.items():
            paths = [Path(folder, f"{key}{number or ''}.txt") for number in range(len(texts))]
            for path, lines in zip(paths, texts, strict=True):
                # A carriage return ends a line for programs that read files as Python does by default: comet-score
                # would pair all lines behind it wrongly, and say nothing.
                path.write_bytes("".join(line.replace("\r", " ") + "\n" for line in lines).encode())
            filled = filled.replace(f"{{{key}}}", shlex.join(map(str, paths)))
        code, output, errors = _run(filled)
    if code:
        raise ConfigError(f"metrics.command ended with {code}: {(errors or ['it said nothing'])[-1]}")
    values = [_number(line, number) for number, line in enumerate(output, start=1)]
    wanted = len(system)
    if len(values) == wanted + 1:
        mean = math.fsum(values[:-1]) / wanted
        if abs(mean - values[-1]) <= max(_ROUNDING * max(map(abs, values)), _DECIMALS):
            values.pop()
    if len(values) != wanted:
        raise DataError(f"metrics.command printed {len(values)} lines for {wanted}: it must print one number a line")
    return values


def _run(command: str) -> tuple[int, list[str], list[str]]:
    """Return a command's exit code, the lines that it prints, and those on stderr.

    However this ends, no process that the command has started is left.
    """
    none, pipe = subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen(command, shell=True, stdin=none, stdout=pipe, stderr=pipe, start_new_session=True) as process:
        try:
            printed = process.communicate()
        except BaseException:
            with suppress(OSError, AttributeError):  # Windows has no groups of processes
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            raise
    output, errors = (text.decode(errors="replace").strip().splitlines() for text in printed)
    return process.returncode, output, errors


def _number(line: str, number: int) -> float:
    """Return the last word of a line as a number."""
    try:
        value = float((line.split() or [""])[-1])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"metrics.command printed {line[:100]!r} in line {number}: it must print one number a line")
    return value
