"""Kill processes of a training with trainer.devices=2; see whether it ends as if nothing had happened.

    python benchmarks/kills.py                    # 20 kills, then SIGTERM; about 15 minutes
    python benchmarks/kills.py WORK --kills 5 --seed 3

`chaos.py` interrupts trainings of one process and starts them again itself; here the others go on from `last/` by
themselves. The training is one of chaos.py's, with dropout. A random process gets SIGKILL at a random moment of the
training, or shortly before a validation and its saves. Then the command gets SIGTERM and is run again. At the end
weights, optimizer, generators and metrics must be those of a training that nobody disturbed, bit for bit. Printed as a
table.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chaos import MODELS, SETTINGS, VALIDATE_EVERY, differences, write_text

UPDATES = 180
LOGGED = 5  # updates between two lines of the log, in chaos.py's settings
PATIENCE = 300.0  # seconds for a training; one takes some 15


@dataclass
class Life:
    """One call of mt-train with two processes."""

    run: Path
    command: subprocess.Popen[str]

    def workers(self) -> list[int]:
        """The ids of its processes, the first one first; fewer while they are started."""
        children = Path(f"/proc/{self.command.pid}/task/{self.command.pid}/children")
        if not children.exists():
            return []
        found = map(int, children.read_text(encoding="utf-8").split())
        return sorted(pid for pid in found if b"spawn_main" in _command_line(pid))

    def wait_for(self, line: str) -> bool:
        """Wait until the log has a line; False if the command ends before."""
        until = time.monotonic() + PATIENCE
        while self.command.poll() is None and time.monotonic() < until:
            log = self.run / "train.log"
            if log.exists() and line in log.read_text(encoding="utf-8"):
                return True
            time.sleep(0.005)
        return False

    def send(self, number: signal.Signals, rank: int) -> None:
        """Send a signal to one of the two processes."""
        workers = self.workers()
        if len(workers) == 2:
            os.kill(workers[rank], number)

    def end(self) -> tuple[int, str]:
        """Wait for the command; return its exit code and what it said."""
        try:
            said = self.command.communicate(timeout=PATIENCE)[1]
        except subprocess.TimeoutExpired:
            self.command.kill()
            return -1, f"it did not end within {PATIENCE:.0f} s"
        return self.command.returncode, said


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@dataclass
class Harness:
    """Trainings in one folder, and what is wrong with them."""

    work: Path
    rng: random.Random
    rows: list[tuple[str, str, float]]

    def start(self, run: Path, *settings: str) -> Life:
        """Begin, or resume, a training in two processes."""
        names = {"train": "train", "valid": "valid", "test": "valid"}
        text = [f"corpus.{key}={self.work / 'text' / name}" for key, name in names.items()]
        own = [f"run.dir={run}", f"run.prepared={self.work / 'prepared'}", "trainer.devices=2", "model.dropout=0.1"]
        arguments = [*SETTINGS, *MODELS["transformer"], *text, f"trainer.updates={UPDATES}", *own, *settings]
        script = "from tolka.cli import mt_train; mt_train()"
        command = [sys.executable, "-c", script, *arguments]
        return Life(run, subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))

    def fresh(self, name: str) -> Path:
        """A run's folder that does not exist yet."""
        shutil.rmtree(self.work / name, ignore_errors=True)
        return self.work / name

    def check(
        self, what: str, began: float, life: Life, say: Callable[[str], None], code: int = 0, restarts: int = 0
    ) -> None:
        """Compare a training that has ended with the undisturbed one, and print a line of the table."""
        found, said = life.end()
        wrong = "" if found == code else f"exit code {found}: {said[-300:]}"
        if said.count("all of them begin again from last/") != restarts:
            wrong = f"not restarted {restarts} times: {said[-300:]}"
        if "Traceback" in said:
            wrong = f"a traceback: {said[-500:]}"
        if not wrong and code == 0:
            wrong = ", ".join(differences(self.work / "whole", life.run))
        self.rows.append((what, wrong, time.monotonic() - began))
        say(f"{what:55} {self.rows[-1][2]:6.1f} s  {wrong or 'as it should be'}")

    def kill(self, number: int, say: Callable[[str], None]) -> None:
        """Kill one process once, at a moment at which the training is under way."""
        life, began, rank = self.start(self.fresh("killed")), time.monotonic(), self.rng.randrange(2)
        if number % 2:
            update = self.rng.randrange(VALIDATE_EVERY, UPDATES, VALIDATE_EVERY)
            near, when = update - update % LOGGED, f"at the validation of update {update}"
            reached = life.wait_for(f"update {near} of {UPDATES}")
            time.sleep(self.rng.uniform(0.0, 0.2))
        else:
            near = self.rng.randrange(LOGGED, UPDATES - LOGGED, LOGGED)
            reached, when = life.wait_for(f"update {near} of {UPDATES}"), f"after update {near}"
        assert reached, life.end()[1]
        life.send(signal.SIGKILL, rank)
        self.check(f"SIGKILL of process {rank} {when}", began, life, say, restarts=1)


def disturb(work: Path, kills: int, seed: int, say: Callable[[str], None]) -> Harness:
    """Run all of it."""
    write_text(work)
    harness = Harness(work, random.Random(seed), [])
    began = time.monotonic()
    harness.check("undisturbed", began, harness.start(harness.fresh("whole")), say)
    for number in range(kills):
        harness.kill(number, say)

    life = harness.start(harness.fresh("ended"))
    assert life.wait_for(f"update {UPDATES // 2} of {UPDATES}"), life.end()[1]
    began = time.monotonic()
    life.command.send_signal(signal.SIGTERM)
    harness.check("SIGTERM of the command", began, life, say, 128 + signal.SIGTERM)
    saved = (life.run / "train.log").read_text(encoding="utf-8").count("training ends at update")
    if saved != 1:
        harness.rows.append(("SIGTERM of the command", f"ended {saved} times", 0.0))
    harness.check("the same command again", time.monotonic(), harness.start(life.run), say)
    return harness


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, nargs="?", help="a folder for it; left out, one that is deleted")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = disturb(options.work or Path(folder), options.kills, options.seed, lambda line: print(line, flush=True))
    wrong = [what for what, fault, _ in rows.rows if fault]
    print(f"{len(rows.rows) - len(wrong)} of {len(rows.rows)} ended as they should")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
