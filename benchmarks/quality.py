"""Whether what makes training and decoding fast changes what is learnt: BLEU with and without it, several seeds.

    python benchmarks/quality.py OUT [--seeds 3] [--jobs 2] [key=value ...]

Trains the embedded corpus (`experiment=sample`) with tolka as it is, in fp32 and in bf16, and with each of its own
parts replaced by torch's: the masks of dropout, the library of fp32 products, the attention between short sentences
(in bf16), the fused optimiser. Every model is tested in fp32 and in int8. Prints BLEU of each test set, mean and
standard deviation over the seeds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
FORMATS = ("fp32", "int8")
TESTS = ("fresh", "unseen")


def torchs_dropout() -> None:
    """nn.functional.dropout, whose masks come number by number from one generator."""
    import torch.nn.functional as F

    from tolka.kernels import attention
    from tolka.nn import dropout

    dropout.dropout = attention.dropout = lambda x, rate, training: F.dropout(x, rate, training)  # type: ignore[attr-defined]


def torchs_optimizer() -> None:
    """AdamW one parameter after the other, not fused."""
    import torch

    from tolka.optim.optimizers import of_torch as optim

    def plain(groups: Any, **options: Any) -> torch.optim.Optimizer:
        return torch.optim.AdamW(groups, **{**options, "fused": False, "foreach": False})

    optim.AdamW = plain  # type: ignore[attr-defined, assignment]


def torchs_products() -> None:
    """By the library that torch takes for nn.functional.linear."""
    from tolka.kernels import matmul as products

    products.onednn_is_faster = lambda: False  # type: ignore[assignment]


def torchs_attention() -> None:
    """nn.functional.scaled_dot_product_attention, whatever the length."""
    from tolka.kernels import attention

    attention.suits_short = lambda _query, _key: False  # type: ignore[assignment]


VARIANTS: dict[str, tuple[str, Callable[[], None]]] = {
    "tolka": ("fp32", lambda: None),
    "tolka-bf16": ("bf16", lambda: None),
    "torch-dropout": ("fp32", torchs_dropout),
    "torch-products": ("fp32", torchs_products),
    "torch-attention-bf16": ("bf16", torchs_attention),
    "torch-optimizer": ("fp32", torchs_optimizer),
}
"""Precision of training, and what is replaced."""


def train(out: Path, variant: str, seed: int, settings: list[str]) -> None:
    """In a process of its own, with one thread; nothing where that was done before."""
    folder = out / f"{variant}-{seed}"
    if (folder / "best" / "scores.json").exists() and "test" in (folder / "best" / "scores.json").read_text("utf-8"):
        return
    arguments = ["experiment=sample", f"run.seed={seed}", f"run.dir={folder}", f"run.prepared={out / 'prepared'}"]
    arguments.append(f"trainer.precision={VARIANTS[variant][0]}")
    code = (
        f"import sys\nsys.path.insert(0, {str(HERE)!r})\nimport quality\nquality.VARIANTS[{variant!r}][1]()\n"
        f"from tolka.cli.train import run\nsys.exit(run({[*arguments, 'report.page=false', *settings]!r}))"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{variant}, seed {seed} failed:\n{done.stderr[-2000:]}")
    print(f"{variant}, seed {seed}: trained", file=sys.stderr, flush=True)


def score(out: Path, variant: str, seed: int, test: str, precision: str) -> float:
    """BLEU of a test set, by mt-eval."""
    sample = ROOT / "data" / "sample"
    command = [sys.executable, "-c", "import sys; from tolka.cli.evaluate import run; sys.exit(run(sys.argv[1:]))"]
    command += [str(out / f"{variant}-{seed}"), f"source={sample / f'test_{test}.en'}", "--json"]
    command += [f"reference={sample / f'test_{test}.ko'}", f"decoding.precision={precision}", "metrics.bootstrap=0"]
    found = json.loads(subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL))
    return float(next(one["score"] for one in found["metrics"] if one["name"] == "BLEU"))


def main() -> None:
    """Train all, score all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("settings", nargs="*", metavar="key=value", help="of mt-train")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2, help="trainings side by side, of one thread each")
    parser.add_argument("--variant", action="append", choices=list(VARIANTS), help="all unless named")
    options = parser.parse_args()
    out, seeds = options.out.resolve(), range(1, options.seeds + 1)
    chosen = options.variant or list(VARIANTS)
    train(out, chosen[0], 1, options.settings)  # prepares the text for all
    with ThreadPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(train, out, *job, options.settings) for job in product(chosen, seeds)]
        for job in jobs:
            job.result()
    print("| trained with | decoded in | " + " | ".join(f"BLEU, {test}" for test in TESTS) + " |\n|---|---|---|---|")
    for variant, precision in product(chosen, FORMATS):
        cells = []
        for test in TESTS:
            scores = [score(out, variant, seed, test, precision) for seed in seeds]
            spread = f" ± {statistics.stdev(scores):.1f}" if len(scores) > 1 else ""
            cells.append(f"{statistics.mean(scores):.1f}{spread}")
        print(f"| {variant} | {precision} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
