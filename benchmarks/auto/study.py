"""Run the trials of a table that have no result yet, two at a time on one thread each; add one line of JSON for each.

    python benchmarks/auto/study.py TABLE CORPORA OUT [--workers 2]

TABLE: lines `corpus minutes [key=value ...]`, and lines `base NAME key=value ...`; `@NAME` in a trial stands for a
base's settings, of which the trial's own replace those of the same key. Results go to OUT/results.jsonl. A trial that
was interrupted starts anew; the table may grow while it is read. Two studies may share OUT.
"""

import argparse
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

TRIAL = Path(__file__).with_name("trial.py")
Trial = tuple[str, str, tuple[str, ...]]  # corpus, minutes, settings


def trials(table: Path) -> list[Trial]:
    """Return the table's trials in order, with bases filled in."""
    bases: dict[str, list[str]] = {}
    found: list[Trial] = []
    for line in table.read_text("utf-8").splitlines():
        words = line.partition("#")[0].split()
        if words and words[0] == "base":
            bases[words[1]] = resolved(words[2:], bases)
        elif words:
            found.append((words[0], words[1], tuple(resolved(words[2:], bases))))
    return list(dict.fromkeys(found))


def resolved(words: list[str], bases: dict[str, list[str]]) -> list[str]:
    """Return settings with `@NAME` filled in; a later setting of a key replaces an earlier one."""
    chosen: dict[str, str] = {}
    for word in words:
        for setting in bases[word[1:]] if word.startswith("@") else [word]:
            chosen[setting.partition("=")[0]] = setting
    return list(chosen.values())


def results(out: Path) -> dict[Trial, dict[str, Any]]:
    """Return the figures of the trials that are done."""
    path = out / "results.jsonl"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    records = map(json.loads, lines)
    return {(each["corpus"], each["minutes"], tuple(each["settings"])): each for each in records}


def run(trial: Trial, corpora: Path, out: Path) -> str:
    """Run one trial in a process of its own and record it; return a line about it."""
    corpus, minutes, settings = trial
    started, folder = time.time(), out / f"trial-{os.getpid()}-{time.monotonic_ns()}"
    command = [sys.executable, str(TRIAL), str(corpora / corpus), str(folder), minutes, *settings]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    shutil.rmtree(folder, ignore_errors=True)
    record: dict[str, Any] = {"corpus": corpus, "minutes": minutes, "settings": list(settings)}
    if done.returncode:
        record["error"] = done.stderr.strip().splitlines()[-1:]
    else:
        record |= json.loads(done.stdout.splitlines()[-1])
    with (out / "results.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
    took = f"{(time.time() - started) / 60:.1f} min"
    return f"{took} {record.get('test', record.get('error'))} {corpus} {minutes} {' '.join(settings)}"


def work(table: Path, corpora: Path, out: Path) -> None:
    """Take trials, first the first that nobody has taken, until none is left; locks show which are being run."""
    (out / "locks").mkdir(parents=True, exist_ok=True)
    while True:
        done = results(out)
        for number, trial in enumerate(trials(table)):
            if trial in done:
                continue
            name = f"{trial[0]}-{trial[1]}-{hash_of(trial)}"
            with (out / "locks" / name).open("w") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                if trial in results(out):
                    continue
                print(number, run(trial, corpora, out), flush=True)
                break
        else:
            return


def hash_of(trial: Trial) -> int:
    """Return the same number for a trial in every process."""
    return int.from_bytes(json.dumps(trial).encode("utf-8")) % (2**61 - 1)


def main() -> None:
    """Run all trials of the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(args.workers) as pool:
        for future in [pool.submit(work, args.table, args.corpora, args.out) for _ in range(args.workers)]:
            future.result()


if __name__ == "__main__":
    main()
