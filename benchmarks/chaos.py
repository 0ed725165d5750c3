"""Interrupt small trainings, again and again, in every way; see whether each ends as if nothing had happened.

    python benchmarks/chaos.py WORK               # 100 interruptions of a Transformer, and of an LSTM with attention
    python benchmarks/chaos.py WORK --interruptions 10 --model lstm_attention
    mount -t tmpfs -o size=8m tmpfs DISK && python benchmarks/chaos.py WORK --disk DISK

Each training is interrupted at random moments and at chosen ones: SIGKILL, SIGTERM, SIGINT in an update, at an epoch's
end, in a validation, in the middle of a save and between its two renames; a disk that is full for a while, by errors
planted where files are written, or, with --disk, by filling a small disk on which the trainings are; between two lives
of the training a byte flipped, a file cut short or deleted in `last/`, which must be refused, and is then put back. In
half of the trainings the loss of one batch is NaN or inf. After each interruption what is on disk must be whole,
and no older than before. At the end weights, optimiser, generators and metrics must be those of a training that nobody
disturbed, bit for bit.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from errno import ENOSPC
from functools import partial
from pathlib import Path
from typing import Any

UPDATES, VALIDATE_EVERY = 60, 12
NAN_AT = 17
SETTINGS = [
    "corpus=files",
    "corpus.source=en",
    "corpus.target=ko",
    "cleaning=none",
    "tokenizer.vocab_size=800",
    "tokenizer.type=unigram",
    "batching.tokens=160",
    "batching.max_length=60",
    "batching.sampling=0.1",
    "model.d_model=32",
    f"trainer.updates={UPDATES}",
    f"trainer.validate_every={VALIDATE_EVERY}",
    "trainer.log_every=5",
    "trainer.patience=0",
    "trainer.metric=nll",
    "trainer.precision=fp32",
    "trainer.threads=1",
    "trainer.ema=0.9",
    "trainer.average=2",
    "trainer.keep_best=2",
    "scheduler.warmup=10",
    "metrics.bootstrap=0",
    "report.page=false",
    "report.plots=false",
]
MODELS = {
    "transformer": ["model=transformer_tiny", "model.heads=2", "model.layers=1"],
    "lstm_attention": ["model=lstm_attention"],
}
POINTS = ("update", "epoch", "validate", "write", "exchange")
SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT")
LARGEST_DISK = 256 * 2**20  # bytes
DAMAGES = ("a byte flipped", "a file cut short", "a file deleted")


# In the training's own process ---------------------------------------------------------------------------------------


def live(point: str, count: int, what: str, nan_at: int, settings: list[str]) -> None:
    """Train; at the `count`th time that a point is reached, do what is asked for: a signal, or ENOSPC."""
    import tolka.cli  # first, for its word on Ctrl-C  # noqa: F401
    from tolka.cli.common import exit_code
    from tolka.cli.train import run
    from tolka.evaluation.validator import Validator
    from tolka.losses.cross_entropy import Objective
    from tolka.model_directory import write as snapshot
    from tolka.system import atomic, interrupts
    from tolka.training.data_position import DataPosition
    from tolka.training.trainer import Trainer

    reached = 0

    def reach(here: str) -> None:
        nonlocal reached
        if here != point:
            return
        reached += 1
        if what == "ENOSPC" and count <= reached < count + 3:
            raise OSError(ENOSPC, os.strerror(ENOSPC), "model.safetensors")
        if what != "ENOSPC" and reached == count:
            os.kill(os.getpid(), getattr(signal, what))
            time.sleep(0.2)  # the signal is delivered here, not somewhere behind

    def before(owner: Any, name: str, here: str) -> None:
        real = getattr(owner, name)

        def called(*given: Any, **others: Any) -> Any:
            reach(here)
            return real(*given, **others)

        setattr(owner, name, called)

    before(Trainer, "_train_step", "update")
    before(Validator, "__call__", "validate")
    before(snapshot, "save_tensors", "write")
    rename, shares, loss = Path.rename, DataPosition.shares, Objective.forward

    def renamed(path: Path, target: Any) -> Any:
        done = rename(path, target)
        if str(target).endswith(".old"):
            reach("exchange")
        return done

    def next_shares(reading: DataPosition, state: Any) -> Any:
        epoch = state.epoch
        found = shares(reading, state)
        if state.epoch != epoch:
            reach("epoch")
        current[0] = state.update + 1
        return found

    def forward(objective: Objective, batch: Any) -> Any:
        sums = loss(objective, batch)
        if objective.training and current[0] == nan_at:
            sums = type(sums)(sums.loss * float("nan"), sums.nll, sums.tokens)
        return sums

    current = [0]
    Path.rename, DataPosition.shares, Objective.forward = renamed, next_shares, forward  # type: ignore[method-assign, assignment]
    assert atomic.Path is Path  # type: ignore[attr-defined]
    interrupts.handle_signals_until_exit()
    sys.exit(exit_code(run, settings))


# In the process that interrupts --------------------------------------------------------------------------------------


@dataclass
class Harness:
    """One model's trainings, in one folder."""

    work: Path
    model: str
    rng: random.Random
    disk: Path | None = None
    counts: Counter[str] = field(default_factory=Counter)
    seconds_to_save: list[float] = field(default_factory=list)
    equal: int = 0
    faults: list[str] = field(default_factory=list)
    length: float = 10.0  # seconds that an undisturbed training takes

    def settings(self, run: Path) -> list[str]:
        """Of mt-train."""
        names = {"train": "train", "valid": "valid", "test": "valid"}
        text = [f"corpus.{key}={self.work / 'text' / name}" for key, name in names.items()]
        return [*SETTINGS, *MODELS[self.model], *text, f"run.dir={run}", f"run.prepared={self.work / 'prepared'}"]

    def start(self, run: Path, point: str, count: int, what: str, nan_at: int) -> subprocess.Popen[bytes]:
        """One life of a training."""
        arguments = [sys.executable, __file__, "--live", point, str(count), what, str(nan_at), *self.settings(run)]
        return subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def undisturbed(self, nan_at: int) -> Path:
        """The training that all others must equal."""
        run = self.work / f"{self.model}-{nan_at}"
        shutil.rmtree(run, ignore_errors=True)
        started_at = time.perf_counter()
        child = self.start(run, "", 0, "", nan_at)
        _, said = child.communicate()
        if child.returncode:
            raise SystemExit(f"the undisturbed training failed:\n{said.decode()}")
        self.length = time.perf_counter() - started_at
        return run

    def one_training(self, number: int, most: int) -> None:
        """Interrupt it until it is done, `most` times at most."""
        nan_at = NAN_AT if number % 2 else 0
        expected, run = self.work / f"{self.model}-{nan_at}", (self.disk or self.work) / f"{self.model}-run"
        shutil.rmtree(run, ignore_errors=True)
        done, saved = False, -1
        for _ in range(most):
            done = self._one_life(run, nan_at)
            saved = self.look(run, saved)
            if done:
                break
            if saved >= 0 and self.rng.random() < 0.25:
                self._damage(run, nan_at)
        if not done:
            child = self.start(run, "", 0, "", nan_at)
            _, said = child.communicate()
            if child.returncode:
                self.faults.append(f"went not on: {said.decode()[-500:]}")
                return
        differing = differences(expected, run)
        self.faults += [f"training {number}: {what}" for what in differing]
        if differing:
            shutil.copytree(run, self.work / f"{self.model}-differs-{number}", dirs_exist_ok=True)
        self.equal += not differing

    def _one_life(self, run: Path, nan_at: int) -> bool:
        """Whether it came to its end."""
        kind = self.rng.choice(("random", "random", "point", "point", "point", "full disk"))
        what = "ENOSPC" if kind == "full disk" else self.rng.choice(SIGNALS)
        if kind == "full disk" and self.disk:
            child = self.start(run, "", 0, "", nan_at)
            time.sleep(self.rng.uniform(0.0, self.length))
            at_work = child.poll() is None
            self._fill(self.disk, seconds=self.rng.uniform(0.1, self.length / 2))
            self.counts["a disk really full for a while"] += at_work
            sent_at = 0.0
        elif kind == "random":
            child = self.start(run, "", 0, "", nan_at)
            try:
                child.wait(self.rng.uniform(0.0, self.length))
            except subprocess.TimeoutExpired:
                child.send_signal(getattr(signal, what))
                self.counts[f"{what} at a random moment"] += 1
            sent_at = time.perf_counter()
        else:
            point = "write" if kind == "full disk" else self.rng.choice(POINTS)
            most = {"update": UPDATES // 2, "epoch": 2, "validate": 3, "write": 12, "exchange": 3}[point]
            child = self.start(run, point, self.rng.randint(1, most), what, nan_at)
            sent_at = 0.0
        _, said = child.communicate()
        code, text = child.returncode, said.decode(errors="replace")
        if kind == "random" and what == "SIGTERM" and code == 143:
            self.seconds_to_save.append(time.perf_counter() - sent_at)
        wanted = {"SIGKILL": (-9,), "SIGTERM": (143, -15), "SIGINT": (130, -2), "ENOSPC": (0, 1)}[what]
        if kind != "random" and code and not (kind == "full disk" and self.disk):
            self.counts[f"{what} {'in a save' if kind == 'full disk' else 'at: ' + point}"] += 1
        if "Traceback" in text and code not in (130, -2):
            self.faults.append(f"{kind}, {what}: a traceback: {text[-700:]}")
        if code not in (0, *wanted):
            self.faults.append(f"{kind}, {what}: exit code {code}: {text[-500:]}")
        return code == 0

    def _fill(self, disk: Path, seconds: float) -> None:
        """Leave no room on it for so long."""
        ballast, until = disk / "ballast", time.perf_counter() + seconds
        with ballast.open("wb", buffering=0) as stream:
            while time.perf_counter() < until:
                for size in (2**20, 2**12, 1):
                    with suppress(OSError):
                        while stream.write(bytes(size)):
                            pass
                time.sleep(0.005)
        ballast.unlink()

    def look(self, run: Path, before: int) -> int:
        """The update of what is saved, which must be whole and no older than it was; -1 where nothing is yet."""
        from tolka.errors import TolkaError
        from tolka.model_directory.read import load_model, load_state
        from tolka.system.atomic import readable_folder

        last = readable_folder(run / "last")
        if not last.is_dir():
            if before >= 0:
                self.faults.append("last/ is lost")
            return -1
        try:
            load_model(last)
            saved = int(load_state(last).facts["train"]["update"])
        except TolkaError as error:
            self.faults.append(f"what is saved is not whole: {error}")
            return before
        if saved < before:
            self.faults.append(f"last/ went back from update {before} to {saved}")
        return saved

    def _damage(self, run: Path, nan_at: int) -> None:
        """Spoil a file of last/, see it refused, and put it back."""
        from tolka.system.atomic import readable_folder

        last, what = readable_folder(run / "last"), self.rng.choice(DAMAGES)
        files = sorted(path for path in last.rglob("*") if path.is_file())
        path = self.rng.choice(files)
        content = path.read_bytes()
        if what == "a file deleted":
            path.unlink()
        elif what == "a file cut short":
            path.write_bytes(content[: self.rng.randrange(len(content))])
        else:
            place = self.rng.randrange(len(content))
            flipped = content[place] ^ (1 << self.rng.randrange(8))
            path.write_bytes(content[:place] + bytes([flipped]) + content[place + 1 :])
        child = self.start(run, "", 0, "", nan_at)
        _, said = child.communicate()
        self.counts[what] += 1
        text = said.decode(errors="replace")
        if child.returncode not in (1, 2) or "Traceback" in text:
            self.faults.append(f"{what} ({path.relative_to(run)}) was not refused: {child.returncode}, {text[-500:]}")
        (readable_folder(run / "last") / path.relative_to(last)).write_bytes(content)


def differences(expected: Path, run: Path) -> list[str]:
    """What is not the same in two finished trainings."""
    files = ["last/model.safetensors", "best/model.safetensors", "last/state/tensors.safetensors"]
    kept = sorted(path.name for path in (expected / "checkpoints").iterdir())
    found = [] if kept == sorted(path.name for path in (run / "checkpoints").iterdir()) else ["checkpoints/"]
    files += [f"checkpoints/{name}/model.safetensors" for name in kept]
    found += [name for name in files if _bytes(expected / name) != _bytes(run / name)]
    if facts(expected) != facts(run):
        found.append("last/state/state.json")
    if measured(expected) != measured(run):
        found.append("metrics.jsonl")
    return found


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def facts(run: Path) -> Any:
    """Of last/, but for the time."""
    found = json.loads((run / "last" / "state" / "state.json").read_text(encoding="utf-8"))
    for time_taken in ("seconds", "validation_seconds", "validations_seconds", "paced_from"):
        found["train"].pop(time_taken)
    return found


def measured(run: Path) -> list[dict[str, Any]]:
    """metrics.jsonl, but for the time."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [{key: value for key, value in line.items() if "second" not in key} for line in lines if "test" not in line]


def write_text(work: Path) -> None:
    """The beginning of the embedded corpus."""
    from tolka.system.package_data import sample_dir

    (work / "text").mkdir(parents=True, exist_ok=True)
    for name, most in (("train", 120), ("valid", 12)):
        for language in ("en", "ko"):
            lines = (sample_dir() / f"{name}.{language}").read_text(encoding="utf-8").splitlines(keepends=True)
            (work / "text" / f"{name}.{language}").write_text("".join(lines[:most]), encoding="utf-8")


def torment(
    work: Path, model: str, interruptions: int, seed: int, say: Callable[[str], None], disk: Path | None = None
) -> Harness:
    """Trainings of one model until there were so many interruptions. disk: a small one to have them on, and to fill."""
    write_text(work)
    harness = Harness(work, model, random.Random(seed), disk)
    for nan_at in (0, NAN_AT):
        harness.undisturbed(nan_at)
    number = told = 0
    while sum(harness.counts.values()) < interruptions:
        harness.one_training(number, most=12)
        number += 1
        say(f"{model}: {number} trainings, {sum(harness.counts.values())} interruptions, {len(harness.faults)} faults")
        for fault in harness.faults[told:]:
            say(f"FAULT {fault}")
        told = len(harness.faults)
    if harness.equal != number and not harness.faults:
        harness.faults.append("a training differs")
        say("FAULT a training differs")
    say(f"\n{model}: {harness.equal} of {number} trainings ended as if nothing had happened")
    for what, count in sorted(harness.counts.items()):
        say(f"  {count:4} {what}")
    if harness.seconds_to_save:
        say(f"  SIGTERM to the end of the process: {max(harness.seconds_to_save):.1f} s at most")
    return harness


def main() -> None:
    """The command."""
    if sys.argv[1:2] == ["--live"]:
        point, count, what, nan_at, *settings = sys.argv[2:]
        live(point, int(count), what, int(nan_at), settings)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, nargs="?", help="a folder for it; left out, one that is deleted")
    parser.add_argument("--model", choices=MODELS, action="append")
    parser.add_argument("--interruptions", type=int, default=100, help="of each model's trainings")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--disk", type=Path, help="a small file system of its own, to have the trainings on and to fill"
    )
    options = parser.parse_args()
    if options.disk and not (options.disk.is_mount() and shutil.disk_usage(options.disk).total <= LARGEST_DISK):
        parser.error(
            f"--disk {options.disk} must be a file system of its own of at most {LARGEST_DISK >> 20} MB: it is filled"
        )
    say = partial(print, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        work = options.work or Path(folder)
        faults = [
            fault
            for model in options.model or MODELS
            for fault in torment(work, model, options.interruptions, options.seed, say, options.disk).faults
        ]
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
