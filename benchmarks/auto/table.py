"""Print the results of a study as tables in Markdown, one for each corpus and number of minutes, the best first.

    python benchmarks/auto/table.py OUT

Settings that all trials of a table share stand above it.
"""

import json
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

_SHORT = ("trainer.precision=", "trainer.updates=100000", "trainer.patience=0")


def short(settings: list[str]) -> str:
    """Return settings as code, without those of every trial."""
    return " ".join(f"`{each}`" for each in settings if not each.startswith(_SHORT)) or "nothing"


def row(result: dict[str, Any], shared: set[str]) -> str:
    """Return the row of one trial."""
    own = [each for each in result["settings"] if each not in shared]
    old = f"{result['old']['BLEU']:.1f}" if "old" in result else ""
    figures = [
        f"{result['test']['BLEU']:.1f}",
        f"{result['test']['chrF2']:.1f}",
        f"{result['ppl']['bits_per_character']:.2f}",
        f"{result['updates']}",
        f"{result['training_seconds'] / 60:.1f}",
        old,
    ]
    return f"| {short(own)} | {' | '.join(figures)} |"


def main(out: Path) -> None:
    """Print the tables of the trials that had a result."""
    lines = (out / "results.jsonl").read_text("utf-8").splitlines()
    done = [each for each in map(json.loads, lines) if "test" in each]
    done.sort(key=lambda each: (each["corpus"], float(each["minutes"]), -each["test"]["BLEU"]))
    for (corpus, minutes), group in groupby(done, lambda each: (each["corpus"], each["minutes"])):
        trials = list(group)
        shared = set.intersection(*(set(each["settings"]) for each in trials))
        print(f"\n{corpus}, {minutes} minutes; all with {short([s for s in trials[0]['settings'] if s in shared])}:\n")
        print(
            "| settings | BLEU | chrF2 | bits a character | updates | minutes | old BLEU |", "|---" * 7 + "|", sep="\n"
        )
        print("\n".join(row(each, shared) for each in trials))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
