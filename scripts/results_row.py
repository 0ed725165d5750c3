"""Print the results row of a run, or of several runs that differ in their seed: mean and deviation.

    python scripts/results_row.py runs/multi30k
    python scripts/results_row.py runs/tiny-1 runs/tiny-2 runs/tiny-3
    python scripts/results_row.py --each runs/plain runs/wider

Reads what mt-train left: config.yaml, best/scores.json and metrics.jsonl. A number is never shown without its
signature: those follow the table.
"""

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tolka.errors import TolkaError
from tolka.report.runs import FinishedRun, read_run
from tolka.system.number_format import number_text

HEADER = "| run | test set | parameters | updates | training | BLEU | lower-cased BLEU | chrF2++ | PPL per word |"
RULE = "|---|---|---|---|---|---|---|---|---|"
METRICS = ("BLEU", "BLEU-4 lc tok", "chrF2++")


def metrics(run: FinishedRun, test: str) -> dict[str, dict[str, Any]]:
    """Printed name -> entry of scores.json."""
    return {entry["name"]: entry for entry in run.tests[test]["metrics"]}


def signatures_of(run: FinishedRun, test: str) -> dict[str, str]:
    """Printed name -> how it was computed."""
    return {name: entry["signature"] for name, entry in metrics(run, test).items()}


def spread(values: Sequence[float], digits: int) -> str:
    """'37.12', or 'mean ± standard deviation' of several."""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{statistics.mean(values):.{digits}f} ± {statistics.stdev(values):.{digits}f}"


def row(runs: Sequence[FinishedRun], test: str) -> str:
    """One line of the table; the interval is shown where there is one run."""
    found = [metrics(run, test) for run in runs]
    cells = []
    for name in METRICS:
        text = spread([entries[name]["score"] for entries in found], 2) if name in found[0] else ""
        interval = found[0].get(name, {}).get("interval")
        if name == "BLEU" and interval and len(runs) == 1:
            text += f" ({interval[0]:.1f} to {interval[1]:.1f})"
        cells.append(text)
    surprise = [run.tests[test]["perplexity"]["ppl_word"] for run in runs]
    beyond = None in surprise
    perplexity = number_text(None) if beyond else number_text(surprise[0]) if len(runs) == 1 else spread(surprise, 2)
    facts = [
        ", ".join(run.label for run in runs),
        test,
        runs[0].card_facts["architecture"].partition(", ")[2].removesuffix(" parameters"),
        spread([run.updates for run in runs], 0),
        spread([run.minutes for run in runs], 1) + f" min, {runs[0].card_facts['trained on']}",
    ]
    return f"| {' | '.join([*facts, *cells, perplexity])} |"


def main() -> None:
    """Rows for every test set, then the signatures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--each", action="store_true", help="a row for each run, in place of the mean")
    arguments = parser.parse_args()
    try:
        runs = [read_run(folder, folder.resolve().name) for folder in arguments.runs]
    except TolkaError as error:
        parser.error(str(error))
    print(HEADER, RULE, sep="\n")
    signatures: dict[str, str] = {}
    for test in runs[0].tests:
        if any(signatures_of(run, test) != signatures_of(runs[0], test) for run in runs):
            parser.error(f"scored in different ways on {test}, so no one table holds them: {arguments.runs}")
        for group in [[run] for run in runs] if arguments.each else [runs]:
            print(row(group, test))
        signatures |= signatures_of(runs[0], test)
    print()
    for name, signature in signatures.items():
        print(f"- {name}: `{signature}`")


if __name__ == "__main__":
    main()
