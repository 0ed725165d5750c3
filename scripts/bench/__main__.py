"""How fast tolka trains and translates, beside others and beside the machine's own limit.

    python scripts/bench CORPUS WORK                                  # tolka and the frozen plain loop
    python scripts/bench CORPUS WORK --python opennmt-py=ONMT/bin/python --python marian=HF/bin/python ...

CORPUS holds train and test_2016_flickr, as .en and .de (Multi30k). WORK keeps what is prepared. Each system is a
process of its own in the Python that is named for it: tolka, plain, marian (Hugging Face), opennmt-py, eole, joeynmt;
tolka and plain run in this one. They take turns, round after round; the first windows of a round warm up and do not
count. Printed as a table, and kept in WORK/training.json: median, least and most target tokens a second over all
windows, the ratio of the medians, the share of the machine's limit in matrix products, peak memory, seconds from the
command to the first update and to the last.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from toolkits import TOOLKITS
from work import Work, flop_per_target_token, prepare

HERE = Path(__file__).parent
SCRIPTS = {"tolka": "tolka_train.py", "plain": "plain.py", "marian": "marian_train.py"}
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


@dataclass
class Turn:
    """One round of one system. process: its number, once it runs."""

    name: str
    python: str
    precision: str
    updates: int
    window: int
    threads: int
    settings: list[str]
    process: int | None = None

    def run(self, work: Work, folder: Path) -> Iterator[tuple[float, float | None]]:
        """(seconds since the command, target tokens a second) for each window; None for the first update."""
        command, pattern = self._command(work, folder), TOOLKITS.get(self.name, (None, None))[1]
        environment = {**os.environ, "OMP_NUM_THREADS": str(self.threads)}
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
        if self.name in SCRIPTS:
            script = [self.python, str(HERE / SCRIPTS[self.name]), str(work.folder), str(self.updates)]
            return [*script, str(self.window), self.precision, *(self.settings if self.name == "tolka" else [])]
        configure = TOOLKITS[self.name][0]
        program, *arguments = configure(work, folder, self.updates, self.window)
        if program.startswith("-"):
            return [self.python, program, *arguments]
        return [str(Path(self.python).parent / program), *arguments]


class MemoryWatch:
    """The most resident memory of a process, read while it runs (Linux)."""

    def __init__(self, turn: Turn) -> None:
        self.peak, self._turn, self._done = 0.0, turn, threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> "MemoryWatch":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.2):
            try:
                lines = Path(f"/proc/{self._turn.process}/status").read_text(encoding="ascii").splitlines()
            except OSError:
                continue
            peak = next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)
            self.peak = max(self.peak, peak * 1024 / 1e9)


def one_turn(turn: Turn, work: Work, warm_up: int, into: Measured) -> None:
    """Add what it came to."""
    with tempfile.TemporaryDirectory(dir=work.folder) as folder, MemoryWatch(turn) as memory:
        rates, seconds = [], 0.0
        for seconds, rate in turn.run(work, Path(folder)):
            if rate is None:
                into.first.append(seconds)
            else:
                rates.append(rate)
    into.memory = max(into.memory, memory.peak)
    into.last.append(seconds)
    into.rates += rates[warm_up:]
    print(f"{turn.precision} {turn.name}: {' '.join(f'{rate:.0f}' for rate in rates)}", file=sys.stderr, flush=True)


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


def main() -> None:
    """Rounds of all systems in turn, then the table."""
    parser = argparse.ArgumentParser(
        prog="python scripts/bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--python", action="append", default=[], metavar="SYSTEM=PYTHON", help="also measure this one")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=60, help="of each round")
    parser.add_argument("--window", type=int, default=10, help="updates of which a speed is the mean")
    parser.add_argument("--warm-up", type=int, default=2, help="windows of a round that do not count")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--precision", action="append", choices=["fp32", "bf16"], help="fp32 unless named")
    parser.add_argument("--set", action="append", default=[], metavar="key=value", help="of tolka's mt-train")
    parser.add_argument("--test", default="test_2016_flickr")
    options = parser.parse_args()
    pythons = {"tolka": sys.executable, "plain": sys.executable}
    for text in options.python:
        name, _, python = text.partition("=")
        if name not in SYSTEMS:
            parser.error(f"--python {text}: {name} is none of {', '.join(SYSTEMS)}")
        pythons[name] = os.path.abspath(python)
    work = prepare(options.corpus, options.work.resolve(), options.test)
    limits = json.loads(subprocess.check_output([sys.executable, str(HERE / "limits.py"), str(options.threads)]))
    kept = {"limits": limits}
    print("the machine: " + ", ".join(f"{name} {value:.0f}" for name, value in limits.items()))
    for precision in options.precision or ["fp32"]:
        # The toolkits calculate in fp32 here, as their options for a CPU are.
        systems = [name for name in pythons if precision == "fp32" or name in SCRIPTS]
        found = {name: Measured() for name in systems}
        for _ in range(options.rounds):
            for name in systems:
                turn = Turn(
                    name, pythons[name], precision, options.updates, options.window, options.threads, options.set
                )
                one_turn(turn, work, options.warm_up, found[name])
        kept[precision] = {name: asdict(measured) for name, measured in found.items()}
        limit = limits[f"{precision} square GFLOP/s"]
        print(f"\n{table(found, precision, limit, flop_per_target_token(work), options.updates)}", flush=True)
        (work.folder / "training.json").write_text(json.dumps(kept, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
