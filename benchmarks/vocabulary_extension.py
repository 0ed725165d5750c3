"""What new subwords are worth to a model that goes on with a language or a domain that it has never seen.

    python benchmarks/vocabulary_extension.py MODEL --languages en ko --train SRC TGT --valid SRC TGT --test SRC TGT
        [--pairs 5000] [--extend 2000] [--out runs/vocabulary_extension] [trainer.updates=2000 ...]

MODEL: a model or run directory, or a folder of Marian. Files may be compressed by gzip. Goes on from the model with the
same text and settings: with the vocabulary as it is, in which the new text is spelt as bytes (or unknown, where the
model has none), and with --extend subwords added (tokenizer.extend, from the target's text and from both). Prints
scores with their signatures, subwords a sentence of the test set, and time. What is finished is kept in --out.
"""

import argparse
from pathlib import Path

from kept_runs import cell, lines, signatures, trained, write_pairs
from tolka.model_directory.read import load_model

RECIPE = ["optimizer.lr=0.0005", "scheduler.warmup=200", "trainer.updates=3000", "trainer.patience=8"]
"""More than for a domain: the decoder learns to write another language."""


def subwords_per_sentence(folder: Path, prefix: Path, languages: tuple[str, str]) -> str:
    """Return "source, target" of the test set."""
    tokenizer = load_model(folder).tokenizer
    sources, targets = (lines(Path(f"{prefix}.{language}")) for language in languages)
    encoded = tokenizer.encode_source(sources), tokenizer.encode_target(targets)
    return ", ".join(f"{sum(map(len, rows)) / len(rows):.1f}" for rows in encoded)


def main() -> None:
    """Every way, then the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("settings", nargs="*", metavar="key=value", help="as for mt-train, for all runs")
    parser.add_argument("--languages", nargs=2, default=["en", "ko"])
    for split in ("train", "valid", "test"):
        parser.add_argument(f"--{split}", type=Path, nargs=2, required=True, metavar=("SRC", "TGT"))
    parser.add_argument("--pairs", type=int, default=5000, help="of the training text; 0 = all")
    parser.add_argument("--extend", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=Path("runs/vocabulary_extension"))
    options = parser.parse_intermixed_args()
    languages, out = (options.languages[0], options.languages[1]), options.out.resolve()
    prefixes = {
        split: write_pairs(
            getattr(options, split), languages, out / "text" / split, options.pairs if split == "train" else 0
        )
        for split in ("train", "valid", "test")
    }
    settings = [
        *(f"run.init_from={options.model}", f"run.prepared={out / 'prepared'}", "corpus=files"),
        *(f"corpus.source={languages[0]}", f"corpus.target={languages[1]}"),
        *(f"corpus.{split}=[{prefix}]" for split, prefix in prefixes.items()),
        *RECIPE,
        *options.settings,
    ]
    ways = {
        "as it is": [],
        f"{options.extend} new subwords": [f"tokenizer.extend={options.extend}"],
    }
    print("| vocabulary | subwords | subwords a test sentence: source, target | best update | minutes | test set |")
    print("|---|---|---|---|---|---|")
    results = []
    for number, (way, own) in enumerate(ways.items(), 1):
        folder = out / f"{number}"
        result = trained(folder, [*settings, *own])
        results.append(result)
        (scores,) = result["tests"].values()
        spelt = subwords_per_sentence(folder, prefixes["test"], languages)
        place = f"{result['update']} of {result['updates']}"
        print(
            f"| {way} | {result['subwords']} | {spelt} | {place} | {result['minutes']:.1f} | {cell(scores)} |",
            flush=True,
        )
    print(f"\n{'; '.join(signatures(results))}: before and after, p of the paired test.")


if __name__ == "__main__":
    main()
