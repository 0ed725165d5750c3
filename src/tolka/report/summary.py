"""The last lines of mt-train: scores with their signatures, and what to type next."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tolka.evaluation.verdict import advice_of
from tolka.evaluation.verdict_evidence import USELESS, WEAK
from tolka.metrics.tables import interval_text, table
from tolka.report.page import PAGE
from tolka.report.page_tables import change_tables, cost_table, score_tables
from tolka.report.runs import FinishedRun
from tolka.system.number_format import number_text


def closing_words(
    model: Path,
    facts: Mapping[str, str],
    tests: Mapping[str, Mapping[str, Any]],
    verdict: Mapping[str, Any],
    command: str,
) -> str:
    """Return the closing lines for a terminal.

    facts: label -> value. tests, verdict: as in scores.json. command: translates with the model.
    """
    rows: list[list[str]] = []
    signatures: dict[str, dict[str, None]] = {}  # of a metric several, where target languages have their own
    for test, result in tests.items():
        name = f"{test} (zero-shot)" if result.get("zero_shot") else test
        for entry in result["metrics"]:
            rows.append([name, entry["name"], f"{entry['score']:.2f}", interval_text(entry["interval"])])
            signatures.setdefault(entry["name"], {})[entry["signature"]] = None
        perplexity = result["perplexity"]
        rows.append([name, "PPL per token", number_text(perplexity["ppl"]), ""])
        if perplexity["words"]:  # none in languages without spaces between words
            rows.append([name, "PPL per word", number_text(perplexity["ppl_word"]), ""])
    width = max(map(len, facts))
    lines = ["", *(f"{label:<{width}}  {value}" for label, value in facts.items()), ""]
    if rows:
        lines += [table(rows, ["test set", "metric", "score", "95% interval"], "llrr"), ""]
        lines += [f"{metric}: {signature}" for metric, each in signatures.items() for signature in each]
        lines += [f"\nagainst the model before, {each.as_text()}" for each in change_tables(tests)]
    else:
        lines.append("no test set was given: name one with corpus.test")
    if verdict:
        lines += ["", *verdict["sentences"]]
    advice = [line for words, typed in advice_of(verdict, model) for line in (words, f"  {typed}" if typed else "")]
    if verdict.get("level") not in (USELESS, WEAK):  # with which it is no use to translate
        targets = list(dict.fromkeys(result["direction"][1] for result in tests.values() if "direction" in result))
        target = f" target={targets[0]}" if len(targets) > 1 else ""
        advice = [command + target, *advice]
    page = [f"all of it on one page: {model / PAGE}"] if (model / PAGE).is_file() else []
    return "\n".join([*lines, "", "next:", *(f"  {each}" for each in advice if each), *page])


def comparison_table(runs: Sequence[FinishedRun]) -> str:
    """Return tables of several finished runs for a terminal, with the signatures of their scores."""
    scored = (each for run in runs for result in run.tests.values() for each in result["metrics"])
    signatures = dict.fromkeys(f"{each['name']}: {each['signature']}" for each in scored)
    tables = [cost_table(runs, {}), *score_tables(runs)]
    return "\n".join(["", *(f"{each.as_text()}\n" for each in tables), *signatures])
