"""Print the results row of a run, or of several runs that differ in their seed: mean and deviation.

    python scripts/results_row.py runs/multi30k
    python scripts/results_row.py runs/tiny-1 runs/tiny-2 runs/tiny-3
    python scripts/results_row.py --each runs/plain runs/r_drop

Reads what mt-train left: best/scores.json, best/config.yaml and metrics.jsonl. A number is never shown without its
signature: those follow the table.
"""

import argparse
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

HEADER = "| run | test set | parameters | updates | training | BLEU | lower-cased BLEU | chrF2++ | PPL per word |"
RULE = "|---|---|---|---|---|---|---|---|---|"
METRICS = ("BLEU", "BLEU-4 lc tok", "chrF2++")


class Run:
    """One finished run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scores = json.loads((folder / "best" / "scores.json").read_text(encoding="utf-8"))
        self.config = yaml.safe_load((folder / "best" / "config.yaml").read_text(encoding="utf-8"))
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
        self.updates = max(line["update"] for line in lines)
        self.minutes = max(line["seconds"] for line in lines if "seconds" in line) / 60

    def metrics(self, test: str) -> dict[str, dict[str, Any]]:
        """Printed name -> entry of scores.json."""
        return {entry["name"]: entry for entry in self.scores["test"][test]["metrics"]}

    def signatures(self, test: str) -> dict[str, str]:
        """Printed name -> how it was computed."""
        return {name: entry["signature"] for name, entry in self.metrics(test).items()}


def spread(values: Sequence[float], digits: int) -> str:
    """'37.12', or 'mean ± standard deviation' of several."""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{statistics.mean(values):.{digits}f} ± {statistics.stdev(values):.{digits}f}"


def row(runs: Sequence[Run], test: str) -> str:
    """One line of the table; the interval is shown where there is one run."""
    found = [run.metrics(test) for run in runs]
    cells = []
    for name in METRICS:
        text = spread([metrics[name]["score"] for metrics in found], 2) if name in found[0] else ""
        interval = found[0].get(name, {}).get("interval")
        if name == "BLEU" and interval and len(runs) == 1:
            text += f" ({interval[0]:.1f} to {interval[1]:.1f})"
        cells.append(text)
    parameters = runs[0].scores["facts"]["architecture"].split(", ", 1)[1].removesuffix(" parameters")
    perplexity = spread([run.scores["test"][test]["perplexity"]["ppl_word"] for run in runs], 2)
    facts = [
        ", ".join(run.folder.name for run in runs),
        test,
        parameters,
        spread([run.updates for run in runs], 0),
        spread([run.minutes for run in runs], 1) + f" min, {runs[0].scores['facts']['trained on']}",
    ]
    return f"| {' | '.join([*facts, *cells, perplexity])} |"


def main() -> None:
    """Rows for every test set, then the signatures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--each", action="store_true", help="a row for each run, in place of the mean")
    arguments = parser.parse_args()
    runs = [Run(folder) for folder in arguments.runs]
    print(HEADER, RULE, sep="\n")
    signatures = {}
    for test in runs[0].scores["test"]:
        if any(run.signatures(test) != runs[0].signatures(test) for run in runs):
            parser.error(f"scored in different ways on {test}, so no one table holds them: {arguments.runs}")
        for group in [[run] for run in runs] if arguments.each else [runs]:
            print(row(group, test))
        signatures |= runs[0].signatures(test)
    print()
    for name, signature in signatures.items():
        print(f"- {name}: `{signature}`")


if __name__ == "__main__":
    main()
