"""What a model forgets of its old text while it learns a new one, in each of the ways to go on from it.

    python benchmarks/forgetting.py runs/multi30k_tiny-1 --new tatoeba --old multi30k [trainer.updates=2000]

--new: a folder with train, valid and test; --old: one with train and test_2016_flickr (or --old-test); each as
.LANGUAGE files, plain or gzip, in the model's languages. Goes on from the model once in each way, as mt-train does,
and prints both test sets' BLEU before and after, with the p-value of the paired test and the signature.
Runs are kept as runs/forgetting-1 and so on: the same command again goes on where it stopped.
"""

import argparse
from pathlib import Path

from tolka.api.train import TrainResult, train
from tolka.config.command_line import train_config
from tolka.model_directory.settings import direction_of, load_settings

REPLAY = "all weights, old text beside the new"
WAYS: dict[str, list[str]] = {
    "all weights": [],
    "encoder at rest": ["finetuning.freeze=[encoder]"],
    "adapters of rank 8": ["finetuning.lora_rank=8", "optimizer.lr=0.001"],
    REPLAY: [],
}


def go_on(number: int, way: str, arguments: argparse.Namespace) -> TrainResult:
    """One run."""
    source, target = direction_of(load_settings(arguments.model))
    new, old = arguments.new.resolve(), arguments.old.resolve()
    text = [new / "train", old / "train"] if way == REPLAY else [new / "train"]
    settings = [
        *(f"run.init_from={arguments.model}", f"run.name=forgetting-{number}"),
        *("corpus=files", f"corpus.source={source}", f"corpus.target={target}", f"corpus.valid=[{new / 'valid'}]"),
        f"corpus.train=[{','.join(map(str, text))}]",
        f"corpus.test=[{new / 'test'},{old / arguments.old_test}]",
        *WAYS[way],
        *arguments.settings,
    ]
    return train(train_config(settings))


def main() -> None:
    """Every way, then the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("settings", nargs="*", metavar="key=value", help="as for mt-train, for all runs")
    parser.add_argument("--new", type=Path, required=True, help="folder of the new text")
    parser.add_argument("--old", type=Path, required=True, help="folder of the text that the model was trained on")
    parser.add_argument("--old-test", default="test_2016_flickr", help="its test set")
    arguments = parser.parse_intermixed_args()
    print("| trained | updates | minutes | new test set | old test set |\n|---|---|---|---|---|")
    signature = ""
    for number, way in enumerate(WAYS, 1):
        result = go_on(number, way, arguments)
        cells = []
        for test in result.tests:
            change = next(change for change in test.changes if change.name == "BLEU")
            cells.append(f"{change.a.value:.1f} to {change.b.value:.1f} (p {change.p_value:.3f})")
            signature = change.signature
        minutes = f"{result.state.seconds / 60:.1f}"
        print(f"| {way} | {result.state.best_update} | {minutes} | {' | '.join(cells)} |", flush=True)
    print(f"\nBLEU `{signature}`, before and after; the best update on the new validation set.")


if __name__ == "__main__":
    main()
