"""Peak memory and seconds of fine-tuning a large model for 20 updates in several ways.

    python benchmarks/nllb_shape.py NLLB
    python benchmarks/finetuning_memory.py NLLB CORPUS OUT [--ways adapters "trimmed, adapters"]

CORPUS: a folder with train.eng_Latn and train.tur_Latn, such as benchmarks/new_language.py takes. Each way is a process
of its own on one thread, in batches of 128 tokens; the kernel keeps its peak of resident memory. Nothing is added to
the vocabulary. A way that OUT has figures of is not run again.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

CODES = ("eng_Latn", "tur_Latn")
UPDATES = 20
LORA, ADAFACTOR, RECOMPUTE = "finetuning.lora_rank=8", "optimizer=adafactor", "trainer.recompute=true"
FROZEN = "finetuning.freeze=[target_embedding]"
WAYS: dict[str, list[str]] = {
    "trimmed, adapters": [LORA],
    "trimmed, adapters, recompute": [LORA, RECOMPUTE],
    "trimmed, Adafactor, recompute": [ADAFACTOR, RECOMPUTE],
    "trimmed, all weights": [],
    "adapters": [LORA],
    "adapters, recompute": [LORA, RECOMPUTE],
    "frozen embeddings, Adafactor, recompute": [FROZEN, ADAFACTOR, RECOMPUTE],
    "Adafactor, recompute": [ADAFACTOR, RECOMPUTE],
    "all weights": [],
}
COMMON = [
    *("corpus=files", f"corpus.source={CODES[0]}", f"corpus.target={CODES[1]}", "corpus.both_directions=false"),
    *("tokenizer.extend=0", "batching.tokens=128", "batching.max_length=100", "optimizer.lr=0.0001"),
    *("scheduler=constant", "scheduler.warmup=2", "trainer.metric=nll", "trainer.threads=1", "trainer.samples=0"),
    *(f"trainer.updates={UPDATES}", f"trainer.validate_every={UPDATES}", "trainer.log_every=10"),
    *("search=greedy", "search.max_length_factor=0", "search.max_length_extra=20"),
    *("report.page=false", "report.plots=false"),
]


def measured(arguments: list[str], log: Path) -> dict[str, float]:
    """Run mt-train; return its peak of resident memory in GB, and its seconds."""
    started, peak = time.monotonic(), 0.0
    with log.open("w", encoding="utf-8") as stream:
        process = subprocess.Popen([Path(sys.executable).with_name("mt-train"), *arguments], stderr=stream)
        while process.poll() is None:
            status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
            if found := re.search(r"VmHWM:\s+(\d+)", status):  # not of one that has just ended
                peak = max(peak, int(found[1]) * 1024 / 1e9)
            time.sleep(0.1)
    if process.returncode:
        raise SystemExit(f"mt-train {' '.join(arguments)} ended with {process.returncode}: see {log}")
    return {"peak, GB": peak, "seconds": time.monotonic() - started}


def prepare(corpus: Path, out: Path) -> None:
    """Write a validation set of four lines, and the files that the trimmed model must spell."""
    for code in CODES:
        with (corpus / f"train.{code}").open(encoding="utf-8") as lines:
            (out / f"valid.{code}").write_text("".join(islice(lines, 4)), encoding="utf-8")


def trimmed(model: Path, corpus: Path, out: Path) -> Path:
    """Import the model with the subwords of the corpus alone, unless that is done."""
    small = out / "small"
    if not small.exists():
        texts = ",".join(str(corpus / f"train.{code}") for code in CODES)
        # Random weights end no translation: a few lines compare as well as many.
        sample = ["--sample", str(out / f"valid.{CODES[0]}")]
        options = [f"languages=[{','.join(CODES)}]", f"text=[{texts}]", *sample]
        figures = measured(["import", str(model), "-o", str(small), *options], out / "import.log")
        print(f"import: {figures['peak, GB']:.1f} GB, {figures['seconds']:.0f} s", flush=True)
    return small


def main() -> None:
    """Measure each way and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    for name in ("model", "corpus", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    options = parser.parse_args()
    model, corpus, out = (path.resolve() for path in (options.model, options.corpus, options.out))
    out.mkdir(parents=True, exist_ok=True)
    prepare(corpus, out)
    for way in options.ways:
        kept = out / f"{way.replace(', ', '_').replace(' ', '_')}.json"
        if not kept.exists():
            start = trimmed(model, corpus, out) if way.startswith("trimmed") else model
            run = kept.with_suffix("")
            texts = [f"corpus.train=[{corpus / 'train'}]", f"corpus.valid=[{out / 'valid'}]"]
            places = [f"run.init_from={start}", f"run.dir={run}", f"run.prepared={out / 'prepared'}"]
            figures = measured([*places, *texts, *COMMON, *WAYS[way]], kept.with_suffix(".log"))
            lines = map(json.loads, (run / "metrics.jsonl").read_text("utf-8").splitlines())
            half, end = (line["seconds"] for line in lines if "train_loss" in line)
            figures["seconds of an update"] = (end - half) / (UPDATES / 2)
            kept.write_text(json.dumps(figures), encoding="utf-8")
        print(way, *(f"{key} {value:.1f}" for key, value in json.loads(kept.read_text("utf-8")).items()), flush=True)


if __name__ == "__main__":
    main()
