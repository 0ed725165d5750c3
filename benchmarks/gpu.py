"""All that a GPU can show, in one command that can be given again: what was measured before is not measured twice.

    python benchmarks/gpu.py OUT [--corpus MULTI30K] [--minutes 9] [--device cuda]

OUT/rows.jsonl gets a line for each thing measured, OUT/table.md all of them for people. First where an update waits
for the GPU; then mt-train itself, its update in a loop, and Hugging Face's Marian and a plain loop with the same
batches; the tests that need a GPU; decoding; with --corpus, Multi30k from the first update to its best BLEU. Each is a
process of its own; when the minutes are over no other is begun, and a further call goes on, with what failed too.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TASKS = [
    "limits",
    "waits",
    "mt-train:base",
    "training:base",
    "peers:base",
    "tests",
    "training:tiny",
    "multi30k",
    *(f"decoding:{size}:bf16:{beam}" for size in ("base", "tiny") for beam in (1, 5)),
    *(f"decoding:base:{number_format}:{beam}" for number_format in ("fp16", "fp32") for beam in (1, 5)),
    "training:big",
]
MOST_SECONDS = {"tests": 300, "multi30k": 400}
USUAL_SECONDS = 150
BLEU = re.compile(r"test_2016_flickr +BLEU +([\d.]+)")


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--corpus", type=Path, help="with train, valid and test_2016_flickr, as .en and .de")
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", action="append", metavar="TASK", help=f"of {', '.join(TASKS)}")
    return parser.parse_args()


def run(command: Sequence[str], seconds: float) -> tuple[int, str]:
    """Exit code and what was said, complaints too where it failed; 124 when it took too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as error:
        said = error.stdout or b""
        return 124, said.decode(errors="replace") if isinstance(said, bytes) else said
    return done.returncode, done.stdout if done.returncode == 0 else done.stdout + done.stderr[-2000:]


def measure(name: str, options: argparse.Namespace, seconds: float) -> dict[str, Any]:
    """One task's row."""
    if name == "tests":
        code, said = run([sys.executable, "-m", "pytest", "-m", "gpu", "-q", "-p", "no:cacheprovider"], seconds)
        (options.out / "tests.txt").write_text(said, encoding="utf-8")
        return {"rc": code, "summary": said.strip().splitlines()[-1] if said.strip() else ""}
    if name == "multi30k":
        return multi30k(options, seconds)
    if name.startswith("mt-train:"):
        return mt_train(name.partition(":")[2], options, seconds)
    code, said = run([sys.executable, str(HERE / "gpu_tasks.py"), name, options.device], seconds)
    lines = said.strip().splitlines()
    if code == 0 and lines and lines[-1].startswith("{"):
        found: dict[str, Any] = json.loads(lines[-1])
        return found
    return {"failed": f"exit code {code}: {' | '.join(lines[-3:])}"}


def mt_train(size: str, options: argparse.Namespace, seconds: float) -> dict[str, Any]:
    """Target tokens a second in each line of the log of mt-train, on text of random words."""
    folder = options.out / f"mt-train-{size}"
    code, said = run([sys.executable, str(HERE / "gpu_tasks.py"), f"text:{size}:{folder}", options.device], seconds)
    if code:
        return {"failed": said[-300:]}
    settings = json.loads(said.strip().splitlines()[-1])["settings"]
    main = "from tolka.cli import mt_train; mt_train()"
    code, said = run([sys.executable, "-c", main, *settings, f"trainer.device={options.device}"], seconds)
    (options.out / f"mt-train-{size}.txt").write_text(said, encoding="utf-8")
    metrics = folder / "run" / "metrics.jsonl"
    lines = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()] if metrics.exists() else []
    rates = [line["tokens_per_second"] for line in lines if "tokens_per_second" in line]
    if code or len(rates) < 2:
        return {"failed": f"exit code {code}: {said[-300:]}"}
    return {"tokens/s": statistics.median(rates[1:]), "spread": rates, "GB": 0.0}


def multi30k(options: argparse.Namespace, seconds: float) -> dict[str, Any]:
    """Seconds of training, validations included, and BLEU of the best model."""
    folder = options.out / "multi30k"
    settings = ["experiment=multi30k_best", f"corpus.root={options.corpus}", f"run.dir={folder}", "report.page=false"]
    settings += ["corpus.valid=valid", "corpus.test=test_2016_flickr"]
    minutes = max(0.5, seconds / 60 - 1)
    settings += [f"trainer.device={options.device}", "batching.tokens=16384", f"trainer.max_minutes={minutes:.1f}"]
    main = "from tolka.cli import mt_train; mt_train()"
    code, said = run([sys.executable, "-c", main, *settings], seconds)
    (options.out / "multi30k.txt").write_text(said, encoding="utf-8")
    score = BLEU.search(said)
    metrics = folder / "metrics.jsonl"
    lines = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()] if metrics.exists() else []
    best: dict[str, Any] = max((line for line in lines if "bleu" in line), key=lambda line: line["bleu"], default={})
    return {"rc": code, "test BLEU": float(score[1]) if score else None, "best": best}


def table(rows: dict[str, dict[str, Any]]) -> str:
    """For people."""
    limit = rows.get("limits", {}).get("FLOP/s in training")
    text = ["| what | target tokens/s | TFLOP/s | of the limit | ms an update | first pass | GB |", "|" + "---|" * 7]
    for name, row in rows.items():
        if "tokens/s" not in row:
            continue
        share = f"{row['FLOP/s'] / limit:.0%}" if limit and "FLOP/s" in row else ""
        tera = f"{row['FLOP/s'] / 1e12:.0f}" if "FLOP/s" in row else ""
        update = f"{row['ms an update']:.1f}" if "ms an update" in row else ""
        first = f"{row['first pass']:.1f} s" if "first pass" in row else ""
        text.append(f"| {name} | {row['tokens/s']:,.0f} | {tera} | {share} | {update} | {first} | {row['GB']:.1f} |")
    others = [f"{name}: {json.dumps(row)}" for name, row in rows.items() if "tokens/s" not in row]
    return "\n".join([*others, "", *text]) + "\n"


def failed(row: dict[str, Any]) -> bool:
    """Whether it is worth another try."""
    return "failed" in row or row.get("rc", 0) != 0


def main() -> None:
    """Whatever is not measured yet, as far as the minutes go."""
    options = parsed()
    options.out.mkdir(parents=True, exist_ok=True)
    kept, ends_at = options.out / "rows.jsonl", time.monotonic() + 60 * options.minutes
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
    rows = {entry["task"]: entry["found"] for entry in map(json.loads, lines) if not failed(entry["found"])}
    for name in options.only or TASKS:
        left = ends_at - time.monotonic()
        if name in rows or (name == "multi30k" and options.corpus is None) or left < 20:
            continue
        started_at = time.monotonic()
        rows[name] = measure(name, options, min(left, MOST_SECONDS.get(name, USUAL_SECONDS)))
        with kept.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"task": name, "found": rows[name]}) + "\n")
        print(f"{name} ({time.monotonic() - started_at:.0f} s): {json.dumps(rows[name])}", flush=True)
    (options.out / "table.md").write_text(table(rows), encoding="utf-8")
    print(table(rows))


if __name__ == "__main__":
    main()
