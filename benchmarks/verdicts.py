"""Verdicts on eight sound trainings and thirteen spoiled ones: is the first sentence the right one?

    python benchmarks/verdicts.py OUT --corpora DIR [NAME ...]

DIR has the folders tatoeba, tatoeba_1k, tatoeba_3k, tatoeba_10k, multi30k (en, de) and libreoffice (en, ko), each with
train, valid and test. Trains what OUT lacks, about two minutes of one core each, and prints the first sentence of each
verdict, by the rules of now from the figures in its scores.json; the same command again continues. `--again` measures
the figures of finished runs once more. NAME: only these runs.
"""

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tolka.evaluation.figures import Evidence
from tolka.evaluation.verdict import verdict

TEST_LINES, VALID_LINES = 500, 300
TINY = ["model=transformer_tiny", "model.dropout=0.3", "tokenizer.vocab_size=1000"]
RECURRENT = ["model=bilstm_attention", "model.dropout=0.3", "model.d_model=128", "tokenizer.vocab_size=1000"]
COMMON = [
    *("batching.tokens=1024", "optimizer.lr=0.002", "scheduler=linear", "scheduler.warmup=100"),
    *("trainer.validate_every=100", "trainer.threads=1", "trainer.precision=bf16", "trainer.patience=0"),
    *("report.plots=false", "search.beam_size=2", "cleaning.allow_loss=true"),
]

Sides = tuple[list[str], list[str]]
Spoil = Callable[[list[str], list[str]], Sides]


class Run(NamedTuple):
    """A training. expected: the causes of which the verdict is to begin with one; level: of the model, if it matters.

    spoil: what is done to the training text. test: the corpus of the test set, if it is another one.
    """

    corpus: str
    updates: int
    settings: list[str]
    expected: set[str]
    levels: set[str]
    spoil: Spoil = lambda source, target: (source, target)
    test: str = ""


def shuffled(source: list[str], target: list[str]) -> Sides:
    """Every target belongs to another source."""
    return source, random.Random(1).sample(target, len(target))


def half_shuffled(source: list[str], target: list[str]) -> Sides:
    """Half of the targets belong to another source."""
    rows = random.Random(1).sample(range(len(target)), len(target) // 2)
    target = list(target)
    for row, text in zip(rows, [target[row] for row in rows[1:] + rows[:1]], strict=True):
        target[row] = text
    return source, target


def shifted(source: list[str], target: list[str]) -> Sides:
    """From the middle on, every target stands a line too early."""
    half = len(target) // 2
    return source[:-1], target[:half] + target[half + 1 :]


def repeated(source: list[str], target: list[str]) -> Sides:
    """One target for all sources."""
    return source, [target[0]] * len(target)


USELESS, WEAK, GOOD = {"useless"}, {"weak", "rough"}, {"rough", "usable", "good"}
RUNS = {
    # Sound. The two largest are those of the tutorial and the README.
    "sample": Run("sample", 1250, ["experiment=sample", "trainer.updates=1250"], {"", "improving"}, {"good"}),
    "tatoeba": Run("tatoeba", 2500, [*TINY[:1], "tokenizer.vocab_size=8000"], {"", "improving"}, GOOD),
    "multi30k": Run("multi30k", 1200, TINY, {"", "improving"}, GOOD | WEAK),
    "multi30k_lstm": Run("multi30k", 400, RECURRENT, {"", "improving"}, GOOD | WEAK),
    "libreoffice": Run("libreoffice", 1500, TINY, {"", "improving"}, GOOD | WEAK),
    "tatoeba_10k": Run("tatoeba_10k", 500, TINY, {"", "improving"}, GOOD | WEAK),
    "tatoeba_3k": Run("tatoeba_3k", 400, TINY, {"little_text", "improving"}, WEAK),
    "tatoeba_1k": Run("tatoeba_1k", 400, TINY, {"little_text"}, WEAK | USELESS),
    # Spoiled.
    "shuffled": Run("tatoeba_10k", 600, TINY, {"unrelated"}, USELESS, shuffled),
    "shifted": Run("tatoeba_10k", 600, TINY, {"shift"}, WEAK | USELESS, shifted),
    "swapped": Run("tatoeba_10k", 250, TINY, {"sides"}, USELESS, lambda source, target: (target, source)),
    "short": Run(
        "multi30k", 50, [*TINY, "scheduler.warmup=10", "trainer.validate_every=10"], {"stopped_early"}, USELESS
    ),
    "few_subwords": Run(
        "tatoeba_10k",
        300,
        [*TINY[:2], "tokenizer.vocab_size=100", "tokenizer.byte_fallback=false"],
        {"subwords"},
        WEAK | USELESS,
    ),
    "noisy": Run("multi30k", 700, TINY, {"noisy"}, GOOD | WEAK | USELESS, half_shuffled),
    "copied": Run("tatoeba_10k", 200, TINY, {"copies", "sides"}, USELESS, lambda source, target: (source, source)),
    "other_domain": Run("multi30k", 600, TINY, {"other_domain"}, WEAK | USELESS, test="tatoeba_10k"),
    "by_heart": Run(
        "tatoeba_1k",
        600,
        [*TINY[:1], "tokenizer.vocab_size=1000", "model.dropout=0.0", "trainer.label_smoothing=0.0"],
        {"by_heart"},
        WEAK | USELESS,
    ),
    "small_model": Run(
        "tatoeba_3k",
        800,
        [*TINY[:1], "model.d_model=16", "model.layers=1", "model.heads=2", "tokenizer.vocab_size=1000"],
        {"small_model", "narrow"},
        WEAK | USELESS,
    ),
    "low_rate": Run("tatoeba_10k", 250, [*TINY, "optimizer.lr=0.00001"], {"low_rate"}, USELESS),
    "high_rate": Run("tatoeba_10k", 150, [*TINY, "optimizer.lr=1.0"], {"high_rate"}, USELESS),
    "one_target": Run("tatoeba_10k", 200, TINY, {"one_target"}, USELESS, repeated),
}


def make_text(run: Run, corpora: Path, folder: Path) -> str:
    """Write a run's texts into a folder, unless they are there; return the target's language."""
    target = "ko" if run.corpus == "libreoffice" else "de"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / f"test.{target}").exists():
        for name, origin, most in [
            ("train", run.corpus, None),
            ("valid", run.corpus, VALID_LINES),
            ("test", run.test or run.corpus, TEST_LINES),
        ]:
            paths = [corpora / origin / f"{name}.{language}" for language in ("en", target)]
            sides = [path.read_text(encoding="utf-8").splitlines()[:most] for path in paths]
            texts = run.spoil(sides[0], sides[1]) if name == "train" else (sides[0], sides[1])
            for language, lines in zip(("en", target), texts, strict=True):
                (folder / f"{name}.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return target


def train(name: str, run: Run, corpora: Path, out: Path) -> None:
    """Train, or measure a finished run again; what mt-train says is in the run's folder, and its last error in OUT."""
    settings = [f"run.dir={out / name}", f"run.prepared={out / 'prepared'}", *COMMON[-3:-1]]
    if run.corpus == "sample":
        settings += run.settings
    else:
        target = make_text(run, corpora, out / "texts" / name)
        files = [f"corpus.{split}={out / 'texts' / name / split}" for split in ("train", "valid", "test")]
        length = [f"trainer.updates={run.updates}", f"scheduler.horizon={run.updates}"]
        settings += ["corpus=files", "corpus.source=en", f"corpus.target={target}", *files, *COMMON, *run.settings]
        settings += length
    # What is typed twice is an error: the last one holds.
    last = {setting.partition("=")[0]: setting for setting in settings}
    ended = subprocess.run(
        [sys.executable, "-m", "tolka.cli.train", *last.values()], stderr=subprocess.PIPE, text=True, check=False
    )
    (out / f"{name}.err").write_text(ended.stderr if ended.returncode else "", encoding="utf-8")


def judged(name: str, out: Path) -> str:
    """Return the verdict in words, and whether it begins as it should; by the rules of now."""
    if error := (out / f"{name}.err").read_text(encoding="utf-8").strip():
        return f"{name}: not trained: {error.splitlines()[-1]}"
    scores = json.loads((out / name / "best" / "scores.json").read_text(encoding="utf-8"))
    found = verdict(Evidence(**scores["verdict"]["figures"]))
    is_right = found.cause in RUNS[name].expected and found.level in RUNS[name].levels
    word = "right" if is_right else "WRONG"
    return f"{name}: {word} ({found.level}, {found.cause or 'by its score'})\n  {found.sentences[0]}"


def main() -> None:
    """Train what is missing, and show the first sentence of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--corpora", type=Path, required=True)
    parser.add_argument("--again", action="store_true", help="measure finished runs again")
    arguments = parser.parse_intermixed_args()
    out = arguments.out.resolve()
    for name in arguments.names or RUNS:
        if arguments.again or not (out / f"{name}.err").exists():
            train(name, RUNS[name], arguments.corpora.resolve(), out)
        print(judged(name, out), flush=True)


if __name__ == "__main__":
    main()
