"""Training: target tokens a second of each system, in turn; memory; seconds from the command to the first update."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memory import Watch, peak_so_far
from toolkits import TOOLKITS
from work import GATES, Work

HERE = Path(__file__).parent
SCRIPTS = {"tolka": "tolka_train.py", "plain": "plain.py", "marian": "marian_train.py"}
RECURRENT = "plain_recurrent.py"
SYSTEMS = [*SCRIPTS, *TOOLKITS]


@dataclass
class Measured:
    """Of one system: target tokens a second in each counted window; GB; seconds."""

    rates: list[float] = field(default_factory=list)
    memory: float = 0.0
    first: list[float] = field(default_factory=list)
    last: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Of the rates."""
        return statistics.median(self.rates)


@dataclass(frozen=True)
class Plan:
    """What is measured how long: rounds of so many updates, in windows, of which the first ones warm up."""

    rounds: int
    updates: int
    window: int
    warm_up: int
    threads: int
    family: str
    settings: Sequence[str]


@dataclass
class Turn:
    """One round of one system. process: its number, once it runs."""

    name: str
    python: str
    precision: str
    plan: Plan
    process: int | None = None

    def run(self, work: Work, folder: Path) -> Iterator[tuple[float, float | None]]:
        """(seconds since the command, target tokens a second) for each window; None for the first update."""
        command, pattern = self._command(work, folder), TOOLKITS.get(self.name, (None, None))[1]
        environment = {**os.environ, "OMP_NUM_THREADS": str(self.plan.threads)}
        started_at = time.perf_counter()
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, cwd=folder
        ) as child:
            self.process = child.pid
            assert child.stdout is not None
            said = []
            for line in child.stdout:
                said.append(line)
                seconds = time.perf_counter() - started_at
                if pattern is not None and (found := pattern.search(line)):
                    yield seconds, float(found["rate"])
                elif pattern is None and line.startswith('{"update"'):
                    facts = json.loads(line)
                    first = facts["update"] == 1
                    yield seconds, None if first else facts["tokens"] / facts["seconds"]
        if child.returncode:
            raise SystemExit(f"{self.name} failed:\n{''.join(said[-30:])}")

    def _command(self, work: Work, folder: Path) -> list[str]:
        plan = self.plan
        if self.name in SCRIPTS:
            name = RECURRENT if self.name == "plain" and plan.family in GATES else SCRIPTS[self.name]
            script = [self.python, str(HERE / name), str(work.folder), str(plan.updates), str(plan.window)]
            return [*script, self.precision, plan.family, *(plan.settings if self.name == "tolka" else [])]
        configure = TOOLKITS[self.name][0]
        program, *arguments = configure(work, folder, plan.updates, plan.window)
        if program.startswith("-"):
            return [self.python, program, *arguments]
        return [str(Path(self.python).parent / program), *arguments]


def one_turn(turn: Turn, work: Work, into: Measured) -> None:
    """Add what it came to."""
    watch = Watch(lambda: peak_so_far(turn.process))
    with tempfile.TemporaryDirectory(dir=work.folder) as folder, watch as memory:
        rates, seconds = [], 0.0
        for seconds, rate in turn.run(work, Path(folder)):
            if rate is None:
                into.first.append(seconds)
            else:
                rates.append(rate)
    into.memory = max(into.memory, memory.peak / 1e9)
    into.last.append(seconds)
    into.rates += rates[turn.plan.warm_up :]
    print(f"{turn.precision} {turn.name}: {' '.join(f'{rate:.0f}' for rate in rates)}", file=sys.stderr, flush=True)


def measure(pythons: Mapping[str, str], work: Work, plan: Plan, precision: str) -> dict[str, Measured]:
    """All systems in turn, each in the Python named for it. In bf16 only those that the scripts here drive: the
    toolkits calculate in fp32 on a CPU."""
    systems = [name for name in pythons if precision == "fp32" or name in SCRIPTS]
    if plan.family in GATES:
        systems = [name for name in systems if name in ("tolka", "plain")]
    found = {name: Measured() for name in systems}
    for _ in range(plan.rounds):
        for name in systems:
            one_turn(Turn(name, pythons[name], precision, plan), work, found[name])
    return found


def table(found: dict[str, Measured], precision: str, limit: float, flop: float, updates: int) -> str:
    """For people; the first system is what the others are compared with."""
    base = next(iter(found.values())).median
    rows = ["| system | target tokens/s | ratio | of the limit | peak memory | first update | last |", "|" + "---|" * 7]
    for name, measured in found.items():
        spread = f"{measured.median:.0f} ({min(measured.rates):.0f} to {max(measured.rates):.0f})"
        first = f"{statistics.median(measured.first):.1f} s" if measured.first else ""
        last = f"{statistics.median(measured.last):.0f} s"
        share = measured.median * flop / limit / 1e9
        ratio = measured.median / base
        rows.append(f"| {name} | {spread} | {ratio:.2f} | {share:.0%} | {measured.memory:.2f} GB | {first} | {last} |")
    head = f"{precision}, {updates} updates a round; {flop / 1e6:.1f} MFLOP a target token, limit {limit:.0f} GFLOP/s"
    return "\n".join([head, "", *rows])
