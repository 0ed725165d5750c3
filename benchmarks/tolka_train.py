"""tolka's mt-train on the work of all, with a tap where it writes its metrics.

    python benchmarks/tolka_train.py WORK UPDATES WINDOW fp32|bf16 FAMILY [key=value ...]

Prints what plain.py prints. The whole command runs as a user's would, to the update asked for.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from tolka.cli.train import run
from tolka.training.run_folder import RunFolder
from work import DROPOUT, INNER, PEAK, SMOOTHING, TOKENS, WARMUP, WIDTH


def settings(work: Path, folder: Path, family: str = "transformer") -> list[str]:
    """Of mt-train; family: one of FAMILIES.

    The batches' ceiling counts padding, which the others' does not, so that it is a little higher.
    """
    sizes = ["model=transformer_small", f"model.d_ff={INNER}"]
    if family != "transformer":
        sizes = [f"model={family}_attention"]
    return [
        *("corpus=files", f"corpus.root={work}", "corpus.train=train", "corpus.valid=test", "corpus.test=[]"),
        *("corpus.source=en", "corpus.target=de", "cleaning=none", f"tokenizer.model={work / 'spm.model'}"),
        *(*sizes, f"model.d_model={WIDTH}", f"model.dropout={DROPOUT}"),
        *(f"batching.tokens={TOKENS + 128}", "batching.max_length=100", f"trainer.label_smoothing={SMOOTHING}"),
        *(f"optimizer.lr={PEAK}", f"scheduler.warmup={WARMUP}", "trainer.log_every=1", "trainer.samples=0"),
        *("trainer.validate_every=1000000", f"run.dir={folder}", f"run.prepared={work / 'prepared'}"),
    ]


def main(work: Path, updates: int, window: int, precision: str, family: str, others: list[str]) -> None:
    """Train, and say how fast."""
    write, tokens, seconds, since = RunFolder.record, 0.0, 0.0, 0.0

    def tapped(folder: RunFolder, facts: Mapping[str, Any]) -> None:
        nonlocal tokens, seconds, since
        write(folder, facts)
        if "tokens_per_second" not in facts:
            return
        took = facts["seconds"] - seconds
        tokens, seconds = tokens + facts["tokens_per_second"] * took, facts["seconds"]
        if facts["update"] == 1 or facts["update"] % window == 0:
            now = time.perf_counter()
            print(json.dumps({"update": facts["update"], "tokens": tokens, "seconds": now - since}), flush=True)
            tokens, since = 0.0, now
        if facts["update"] == updates:
            os._exit(0)  # neither validated nor saved: training alone is measured

    since = time.perf_counter()
    mock.patch.object(RunFolder, "record", tapped).start()
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(run([*settings(work, Path(folder) / "run", family), f"trainer.precision={precision}", *others]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5], sys.argv[6:])
