"""An imported Marian model goes on with a little text of a domain: what it gains there, and what it forgets.

    python benchmarks/finetune_marian.py FOLDER --new multi30k --old tatoeba [--pairs 2000]
        [--out runs/finetune_marian] [trainer.updates=500 ...]

FOLDER: of Hugging Face's Marian (marian_base.py trains one). --new and --old: folders with train, valid (of the new)
and a test set, as .LANGUAGE files, plain or gzip. Goes on with --pairs pairs of the new text in each of the ways of
forgetting.py, and trains from nothing on the same pairs. Prints BLEU and chrF of both test sets before and after, with
the p-value of the paired test and the signatures. What is finished is kept in --out.
"""

import argparse
from pathlib import Path

from forgetting import REPLAY, WAYS
from kept_runs import cell, signatures, trained, write_pairs
from tolka.interchange.huggingface import import_huggingface
from tolka.system.progress import say
from tolka.text.direction import Direction

FINETUNING = ["trainer.validate_every=25", "trainer.updates=1000", "trainer.patience=8"]
"""2000 captions are about ten updates an epoch."""
FROM_NOTHING = [
    *("model=transformer_tiny", "model.layers=4", "model.d_ff=512", "model.dropout=0.3", "tokenizer.vocab_size=2000"),
    *("optimizer.lr=0.003", "scheduler=linear", "scheduler.warmup=200", "scheduler.horizon=2000"),
    *("trainer.updates=2000", "trainer.validate_every=100", "trainer.patience=10", "cleaning=none"),
]
"""A small model with much dropout, which 2000 pairs suit better than a large one."""


def files(folder: Path, split: str, languages: tuple[str, str]) -> list[Path]:
    """Return the two files of a split, plain or gzip."""
    found = []
    for language in languages:
        plain = folder / f"{split}.{language}"
        found.append(plain if plain.is_file() else Path(f"{plain}.gz"))
    return found


def main() -> None:
    """Import the model, train in every way, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("settings", nargs="*", metavar="key=value", help="as for mt-train, for all that go on")
    parser.add_argument("--new", type=Path, required=True)
    parser.add_argument("--old", type=Path, required=True)
    parser.add_argument("--new-test", default="test_2016_flickr")
    parser.add_argument("--old-test", default="test")
    parser.add_argument("--languages", nargs=2, default=["en", "de"])
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--from-nothing", nargs="*", default=[], metavar="key=value", help="for the fresh model alone")
    parser.add_argument("--out", type=Path, default=Path("runs/finetune_marian"))
    options = parser.parse_intermixed_args()
    languages, out = (options.languages[0], options.languages[1]), options.out.resolve()
    text = out / "text"
    new = write_pairs(files(options.new, "train", languages), languages, text / "new", options.pairs)
    valid = write_pairs(files(options.new, "valid", languages), languages, text / "valid")
    old = write_pairs(files(options.old, "train", languages), languages, text / "old")
    tests = [
        write_pairs(files(folder, split, languages), languages, text / name)
        for folder, split, name in (
            (options.new, options.new_test, "new_test"),
            (options.old, options.old_test, "old_test"),
        )
    ]
    imported = out / "imported"
    if not imported.exists():
        import_huggingface(options.folder, imported, Direction(*languages), [], say)
    common = [
        *("corpus=files", f"corpus.source={languages[0]}", f"corpus.target={languages[1]}"),
        *(f"corpus.valid=[{valid}]", f"corpus.test=[{tests[0]},{tests[1]}]", f"run.prepared={out / 'prepared'}"),
    ]
    ways = {}
    for way, own in WAYS.items():
        given = [f"corpus.train=[{new},{old}]", "corpus.weights=[1,1]"] if way == REPLAY else [f"corpus.train=[{new}]"]
        ways[way] = [*given, f"run.init_from={imported}", *FINETUNING, *own, *options.settings]
    ways["from nothing"] = [f"corpus.train=[{new}]", *FROM_NOTHING, *options.from_nothing]
    print("| trained | best update | minutes | new test set | old test set |\n|---|---|---|---|---|")
    results = []
    for number, (way, own) in enumerate(ways.items(), 1):
        result = trained(out / f"{number}", [*common, *own])
        results.append(result)
        cells = " | ".join(cell(result["tests"][name]) for name in ("new_test", "old_test"))
        print(f"| {way} | {result['update']} of {result['updates']} | {result['minutes']:.1f} | {cells} |", flush=True)
    print(f"\n{'; '.join(signatures(results))}: before and after; the best update on the new validation set.")


if __name__ == "__main__":
    main()
