"""The last thing that mt-train shows: scores with their signatures, and what to type next."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tolka.report.tables import between, table


def closing_words(model: Path, facts: Mapping[str, str], tests: Mapping[str, Mapping[str, Any]]) -> str:
    """Lines for a terminal. facts: label -> value; tests: as scores.json holds them under "test"."""
    rows, signatures = [], {}
    for name, result in tests.items():
        for entry in result["metrics"]:
            rows.append([name, entry["name"], f"{entry['score']:.2f}", between(entry["interval"])])
            signatures[entry["name"]] = entry["signature"]
        rows.append([name, "PPL per token", f"{result['perplexity']['ppl']:.2f}", ""])
    width = max(map(len, facts))
    lines = ["", *(f"{label:<{width}}  {value}" for label, value in facts.items()), ""]
    if rows:
        lines += [table(rows, ["test set", "metric", "score", "95% interval"], "llrr"), ""]
        lines += [f"{metric}: {signature}" for metric, signature in signatures.items()]
    else:
        lines.append("no test set was given: name one with corpus.test")
    return "\n".join([*lines, "", "next:", f"  mt-translate {shlex.quote(str(model))} FILE"])
