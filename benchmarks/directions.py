"""One model for several directions against a model for each, which has its share of the minutes.

    OMP_NUM_THREADS=1 python benchmarks/directions.py CORPORA OUT --minutes 40 one
    OMP_NUM_THREADS=1 python benchmarks/directions.py CORPORA OUT --minutes 40 four
    python benchmarks/directions.py CORPORA OUT table

CORPORA: tatoeba_30k (en-de), libreoffice (en-ko), both as benchmarks/auto/corpora.py makes them, and flores, for the
direction that no text has. All is chosen by the text (model=auto). Minutes are those of CPU time, on one thread.
"""

from pathlib import Path

from cpu_minutes import cell, figures_of, run, train

TEXTS = {"tatoeba_30k": ("en", "de"), "libreoffice": ("en", "ko")}
COMMON = ["corpus=files", "trainer.threads=1", "trainer.samples=0", "metrics.names=[bleu,chrf]"]


def split_of(corpora: Path, split: str) -> str:
    """Return both texts of a split, each with its languages, as corpus.train and others take them."""
    texts = [f"{{text: {corpora / name / split}, source: {one}, target: {two}}}" for name, (one, two) in TEXTS.items()]
    if split == "test":
        files = ", ".join(str(corpora / f"flores/devtest.{code}") for code in ("deu_Latn", "kor_Hang"))
        texts.append(f"{{text: [{files}], source: de, target: ko}}")
    return f"[{', '.join(texts)}]"


def one(corpora: Path, out: Path, minutes: float) -> None:
    """Train one model of all directions."""
    texts = [f"corpus.{split}={split_of(corpora, split)}" for split in ("train", "valid", "test")]
    train([*COMMON, *texts, "corpus.both_directions=true"], out / "one", minutes)


def four(corpora: Path, out: Path, minutes: float) -> None:
    """Train a model of each direction, one after the other."""
    for name, languages in TEXTS.items():
        for source, target in (languages, languages[::-1]):
            settings = [
                *COMMON,
                *(f"corpus.root={corpora / name}", f"corpus.source={source}", f"corpus.target={target}"),
                *("corpus.train=train", "corpus.valid=valid", "corpus.test=test"),
            ]
            folder = out / f"{source}-{target}"
            train(settings, folder, minutes / (2 * len(TEXTS)))


def table(out: Path) -> None:
    """Print a line for each direction."""
    found = figures_of(out)
    print("| direction | one model for all | a model of its own |\n|---|---|---|")
    for name, test in found["one"]["tests"].items():
        direction = name.rpartition(".")[2]
        own = found.get(direction, {}).get("tests", {})
        print(f"| {name} | {cell(test)} | {', '.join(map(cell, own.values()))} |")
    print("\n".join(f"{name}: {each['updates']} updates, {each['seconds']:.0f} s" for name, each in found.items()))


if __name__ == "__main__":
    run(__doc__, {"one": one, "four": four}, table)
