"""Runs that were stopped midway, kept so that every later version resumes them and translates with them as before.

    python tests/kept/interrupted/runs.py make       # writes the folders beside this file; only for a new form
    python tests/kept/interrupted/runs.py compare    # resumes copies; prints how far losses and translations differ

`make` trains with one validation every 150 updates, sends SIGTERM after at least 450 updates, copies the run folder,
and then lets the run go on for 20 updates, whose losses it writes down.
"""

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parent
TEXT = KEPT.parent / "text"
STOP_AFTER, NEXT = 450, 20

_COMMON = [
    "corpus=files", "corpus.source=xa", "corpus.target=xb", "run.prepared=prepared",
    "corpus.train=text/train", "corpus.valid=text/valid", "corpus.test=text/test",
    "cleaning=none", "tokenizer.byte_fallback=false", "tokenizer.vocab_size=60",
    "batching.tokens=256", "batching.max_length=64", "metrics.bootstrap=0", "report.page=false",
    "trainer.device=cpu", "trainer.precision=fp32", "trainer.threads=1", "trainer.samples=0",
    "trainer.log_every=1", "trainer.validate_every=150", "scheduler.warmup=30",
]  # fmt: skip
_TRANSFORMER = ["model=transformer_tiny", "model.d_model=16", "model.heads=2", "model.layers=2"]
SETTINGS = {
    "post_norm_adamw": [*_TRANSFORMER, "model.norm=post", "optimizer=adamw", "optimizer.lr=0.02"],
    "rotary_swiglu_muon": [
        *_TRANSFORMER, "model.norm=pre", "model.positions=rotary", "model.activation=swiglu",
        "model.normalization=rmsnorm", "optimizer=muon", "optimizer.lr=0.02", "tokenizer.shared=false",
    ],
    "lstm_attention_adafactor": [
        "model=lstm_attention", "model.d_model=16", "optimizer=adafactor", "optimizer.lr=0.02",
        "tokenizer.shared=false",
    ],
    "lora": [*_TRANSFORMER, "model.norm=post", "run.init_from=post_norm_adamw/best", "finetuning.lora_rank=2"],
    "ema_averaging": [*_TRANSFORMER, "trainer.ema=0.9", "trainer.average=2", "optimizer.lr=0.02"],
}  # fmt: skip


def arguments(name: str, updates: int) -> list[str]:
    """The settings of mt-train for one of the runs, in a working folder that has `text/` and the runs in it."""
    return [*_COMMON, *SETTINGS[name], f"run.dir={name}", f"trainer.updates={updates}"]


def losses(run: Path) -> list[tuple[int, float]]:
    """Update and training loss of each line of metrics.jsonl that has one."""
    if not (run / "metrics.jsonl").exists():
        return []
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    facts = [json.loads(line) for line in lines if line.endswith("}")]
    return [(line["update"], line["train_loss"]) for line in facts if "train_loss" in line]


def workplace(folder: Path) -> Path:
    """A working folder with the text and a copy of each run."""
    shutil.copytree(TEXT, folder / "text")
    for run in sorted(path for path in KEPT.iterdir() if (path / "config.yaml").is_file()):
        shutil.copytree(run, folder / run.name)
    return folder


def resumed(name: str, folder: Path) -> tuple[list[float], list[float]]:
    """The losses that were written down, and those of a copy of the run that goes on now, in a process of its own."""
    expected = json.loads((KEPT / f"{name}.json").read_text(encoding="utf-8"))
    _command("mt-train", *arguments(name, expected["stopped"] + NEXT), cwd=folder)
    now = [loss for update, loss in losses(folder / name) if update > expected["stopped"]]
    return expected["losses"], now


def translate(name: str, folder: Path) -> str:
    """What the best model of a run makes of the test text."""
    return _command("mt-translate", name, "text/test.xa", cwd=folder)


def scores(name: str, folder: Path) -> Any:
    """What `mt-eval --json` says of it."""
    return json.loads(_command("mt-eval", name, "source=text/test.xa", "reference=text/test.xb", "--json", cwd=folder))


def _script(command: str) -> str:
    return str(Path(sys.executable).with_name(command))


def _command(command: str, *given: str, cwd: Path) -> str:
    run = subprocess.run([_script(command), *given], cwd=cwd, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"{command} {' '.join(given)}: exit {run.returncode}\n{run.stderr}")
    return run.stdout


def _make(folder: Path) -> None:
    workplace(folder)
    for name in SETTINGS:
        shutil.rmtree(folder / name, ignore_errors=True)
        training = subprocess.Popen(
            [_script("mt-train"), *arguments(name, 5000)], cwd=folder, stderr=subprocess.DEVNULL
        )
        while len(losses(folder / name)) < STOP_AFTER:
            assert training.poll() is None, name
            time.sleep(0.005)
        training.send_signal(signal.SIGTERM)
        assert training.wait() == 128 + signal.SIGTERM
        shutil.rmtree(KEPT / name, ignore_errors=True)
        shutil.copytree(folder / name, KEPT / name, ignore=shutil.ignore_patterns(".lock", "*.log"))
        stopped = losses(KEPT / name)[-1][0]
        _command("mt-train", *arguments(name, stopped + NEXT), cwd=folder)
        after = [loss for update, loss in losses(folder / name) if update > stopped]
        assert len(after) == NEXT, (name, after)
        shutil.rmtree(folder / name)
        shutil.copytree(KEPT / name, folder / name)
        facts = {"stopped": stopped, "losses": after, "scores": scores(name, folder)}
        (KEPT / f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        (KEPT / f"{name}.xb").write_text(translate(name, folder), encoding="utf-8")


def _compare(folder: Path) -> None:
    workplace(folder)
    for name in SETTINGS:
        same = translate(name, folder) == (KEPT / f"{name}.xb").read_text(encoding="utf-8")
        before, now = resumed(name, folder)
        worst = max(abs(a - b) / abs(a) for a, b in zip(before, now, strict=True))
        print(
            f"{name}: translations {'equal' if same else 'DIFFER'}, largest relative difference of losses {worst:.1e}"
        )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        {"make": _make, "compare": _compare}[sys.argv[1]](Path(scratch) / "work")
