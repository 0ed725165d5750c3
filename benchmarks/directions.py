"""One model for several directions against a model for each, which has its share of the minutes.

    OMP_NUM_THREADS=1 python benchmarks/directions.py CORPORA OUT --minutes 40 one
    OMP_NUM_THREADS=1 python benchmarks/directions.py CORPORA OUT --minutes 40 four
    python benchmarks/directions.py CORPORA OUT table

CORPORA: tatoeba_30k (en-de), libreoffice (en-ko), both as benchmarks/auto/corpora.py makes them, and flores, for the
direction that no text has. All is chosen by the text (model=auto). Minutes are those of CPU time, on one thread.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

TEXTS = {"tatoeba_30k": ("en", "de"), "libreoffice": ("en", "ko")}
COMMON = ["corpus=files", "trainer.threads=1", "trainer.samples=0", "metrics.names=[bleu,chrf]"]


def split_of(corpora: Path, split: str) -> str:
    """Return both texts of a split, each with its languages, as corpus.train and others take them."""
    texts = [f"{{text: {corpora / name / split}, source: {one}, target: {two}}}" for name, (one, two) in TEXTS.items()]
    if split == "test":
        files = ", ".join(str(corpora / f"flores/devtest.{code}") for code in ("deu_Latn", "kor_Hang"))
        texts.append(f"{{text: [{files}], source: de, target: ko}}")
    return f"[{', '.join(texts)}]"


def train(settings: list[str], folder: Path, minutes: float) -> None:
    """Train and write down the scores of each test set, unless that is done."""
    if (folder / "figures.json").exists():
        return
    import tolka

    started = time.process_time()
    result = tolka.train([*COMMON, *settings, f"run.dir={folder}", f"trainer.max_minutes={minutes}"])
    tests: dict[str, Any] = {test.name: test.as_dict() for test in result.tests}
    figures = {"updates": result.state.update, "seconds": time.process_time() - started, "tests": tests}
    (folder / "figures.json").write_text(json.dumps(figures), encoding="utf-8")


def one(corpora: Path, out: Path, minutes: float) -> None:
    """Train one model of all directions."""
    texts = [f"corpus.{split}={split_of(corpora, split)}" for split in ("train", "valid", "test")]
    train([*texts, "corpus.both_directions=true", f"run.prepared={out / 'prepared'}"], out / "one", minutes)


def four(corpora: Path, out: Path, minutes: float) -> None:
    """Train a model of each direction, one after the other."""
    for name, languages in TEXTS.items():
        for source, target in (languages, languages[::-1]):
            settings = [
                *(f"corpus.root={corpora / name}", f"corpus.source={source}", f"corpus.target={target}"),
                *("corpus.train=train", "corpus.valid=valid", "corpus.test=test"),
            ]
            folder = out / f"{source}-{target}"
            train([*settings, f"run.prepared={out / 'prepared'}"], folder, minutes / (2 * len(TEXTS)))


def cell(test: dict[str, Any]) -> str:
    """Return each metric's score with its interval."""
    scores = [(metric["name"], metric["score"], *metric["interval"]) for metric in test["metrics"]]
    return ", ".join(f"{name} {score:.1f} ({low:.1f} to {high:.1f})" for name, score, low, high in scores)


def table(out: Path) -> None:
    """Print a line for each direction."""
    found = {path.parent.name: json.loads(path.read_text("utf-8")) for path in out.glob("*/figures.json")}
    print("| direction | one model for all | a model of its own |\n|---|---|---|")
    for name, test in found["one"]["tests"].items():
        direction = name.rpartition(".")[2]
        own = found.get(direction, {}).get("tests", {})
        print(f"| {name} | {cell(test)} | {', '.join(map(cell, own.values()))} |")
    print("\n".join(f"{name}: {each['updates']} updates, {each['seconds']:.0f} s" for name, each in found.items()))


def main() -> None:
    """Do one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("part", choices=["one", "four", "table"])
    parser.add_argument("--minutes", type=float, default=40)
    options = parser.parse_args()
    corpora, out = options.corpora.resolve(), options.out.resolve()
    if options.part == "table":
        return table(out)
    # On one thread CPU time is what the clock would show on an idle machine.
    time.perf_counter = time.process_time
    return {"one": one, "four": four}[options.part](corpora, out, options.minutes)


if __name__ == "__main__":
    main()
