"""Ways to train in several processes over a slow network, side by side: tokens a second, and the loss at equal tokens.

    sudo python benchmarks/slow_network.py OUT [--rate 100] [--updates 300] [--only WAY ...] [key=value ...]

Two processes on the embedded corpus, in a network namespace of Linux whose loopback carries `rate` Mbit/s, both ways
together (ip and tc, of iproute2). Each way trains from the same weights on the same batches. First a training with no
limit shows what computation takes; from it benchmarks/cost_model.py predicts the rest, and without it nothing.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from cost_model import Training, bytes_sent, taken

RANKS = 2
NAMESPACE = "tolka-slow"
WAYS = {
    "ddp, no limit": ["trainer.parallel=ddp"],
    "ddp": ["trainer.parallel=ddp"],
    "fsdp": ["trainer.parallel=fsdp"],
}
GLOO_FSDP = 4 / 3  # gloo sums gradients on every rank, which sends them twice: four rounds and not three
COMMON = ["experiment=sample", "model=transformer_tiny", "trainer.precision=fp32", "trainer.log_every=10"]
COMMON += ["trainer.patience=0", "metrics.bootstrap=0", "report.page=false", "scheduler.warmup=100"]


@contextmanager
def namespace(rate: float) -> Iterator[list[str]]:
    """Yield the words that run a command where the loopback is slow; 0 for no limit."""
    inside = ["ip", "netns", "exec", NAMESPACE]
    subprocess.run(["ip", "netns", "add", NAMESPACE], check=True)
    try:
        subprocess.run([*inside, "ip", "link", "set", "lo", "up"], check=True)
        if rate:
            limit = ["rate", f"{rate}mbit", "burst", "256kb", "latency", "400ms"]
            subprocess.run([*inside, "tc", "qdisc", "add", "dev", "lo", "root", "tbf", *limit], check=True)
        yield inside
    finally:
        subprocess.run(["ip", "netns", "del", NAMESPACE], check=True)


def train(run: Path, rate: float, updates: int, settings: list[str]) -> dict[str, Any]:
    """Train once; return the median seconds of an update, tokens a second, bytes an update, and the last losses."""
    with namespace(rate) as inside:
        numbers = [f"trainer.updates={updates}", f"trainer.validate_every={updates}", f"trainer.devices={RANKS}"]
        command = [sys.executable, "-m", "tolka.cli.train", *COMMON, *numbers, *settings, f"run.dir={run}"]
        log = run.with_suffix(".log")
        with log.open("w") as stream:
            code = subprocess.run([*inside, *command], stderr=stream, env=dict(os.environ)).returncode
        if code:
            sys.exit(f"{log}: ended with {code}")
        counter = "/sys/class/net/lo/statistics/tx_bytes"
        sent = int(subprocess.run([*inside, "cat", counter], capture_output=True, text=True, check=True).stdout)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if "tokens_per_second" in line][1:]
    seconds = [b["seconds"] - a["seconds"] for a, b in pairwise(steps)]
    return {
        "update": statistics.mean(seconds) / 10,
        "tokens_per_second": 1 / statistics.mean(1 / line["tokens_per_second"] for line in steps),
        "sent": sent / updates,
        "train_loss": steps[-1]["train_loss"],
        "valid_loss": next(line["valid_loss"] for line in lines if "valid_loss" in line),
        "parameters": parameters(run),
    }


def parameters(run: Path) -> int:
    """The number of weights, as the log says."""
    words = next(line for line in (run / "train.log").read_text().splitlines() if "model: " in line)
    return int(words.split("model: ")[1].split()[0].replace(",", ""))


def predicted(count: int, computed: float, rate: float, settings: list[str]) -> float | None:
    """The seconds of an update by the cost model; None without a limit. One loopback carries what both ranks send."""
    if not rate:
        return None
    way = dict(word.split("=") for word in settings)["trainer.parallel"]
    sent = RANKS * bytes_sent(Training(count, 0, way), RANKS) * (GLOO_FSDP if way == "fsdp" else 1) / (rate * 1e6 / 8)
    return taken(computed, sent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--updates", type=int, default=300)
    parser.add_argument("--only", nargs="*", default=list(WAYS))
    options, settings = parser.parse_known_args()
    options.out.mkdir(parents=True, exist_ok=True)
    computed = 0.0
    print(f"{'way':<32}{'s/update':>10}{'predicted':>11}{'tokens/s':>10}{'MB/update':>11}{'train':>8}{'valid':>8}")
    for name in options.only:
        rate = 0.0 if name.endswith("no limit") else options.rate
        run = options.out / name.replace(", ", "-").replace(" ", "-")
        found = train(run, rate, options.updates, [*settings, *WAYS[name]])
        if not rate:
            computed = found["update"]
        guess = predicted(found["parameters"], computed, rate, WAYS[name]) if computed else None
        print(
            f"{name:<32}{found['update']:>10.3f}{guess or 0:>11.3f}{found['tokens_per_second']:>10.0f}"
            f"{found['sent'] / 1e6:>11.2f}{found['train_loss']:>8.3f}{found['valid_loss']:>8.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
