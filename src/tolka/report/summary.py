"""The last lines of mt-train: scores with their signatures, and what to type next."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tolka.evaluation.verdict import advice_of
from tolka.evaluation.verdict_evidence import USELESS, WEAK
from tolka.metrics.significance import PAIRED_TEST
from tolka.metrics.tables import interval_text, table
from tolka.report.page import PAGE
from tolka.report.runs import FinishedRun
from tolka.system.number_format import number_text

_CHANGES = ["test set", "metric", "before", "after", "change", "p"]
_SYSTEMS = [
    *("system", "parameters", "updates", "minutes", "test set", "metric", "score"),
    "95% interval",
    "PPL per token",
]


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
        lines += _changes(tests)
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
    """Return a table of several finished runs for a terminal, with the signatures of its scores."""
    rows: list[list[str]] = []
    signatures: dict[str, None] = {}
    for run in runs:
        cost = [run.parameters, str(run.updates), f"{run.minutes:.1f}"]
        for name, result in run.tests.items():
            # One score a line, to fit a terminal: BLEU, or the first that was computed.
            (metric, *_) = [entry for entry in result["metrics"] if entry["name"] == "BLEU"] or result["metrics"]
            score, interval = f"{metric['score']:.2f}", interval_text(metric["interval"])
            rows.append(
                [run.label, *cost, name, metric["name"], score, interval, number_text(result["perplexity"]["ppl"])]
            )
            signatures[f"{metric['name']}: {metric['signature']}"] = None
        if not run.tests:
            rows.append([run.label, *cost, *[""] * 5])
    return "\n".join(["", table(rows, _SYSTEMS, "lrrrllrrr"), "", *signatures])


def _changes(tests: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return what fine-tuning changed, test set by test set."""
    changes = [(name, change) for name, result in tests.items() for change in result.get("changes", [])]
    if not changes:
        return []
    rows = []
    for name, change in changes:
        before, after, p = change["before"], change["after"], change["p_value"]
        rows.append([name, change["name"], f"{before:.2f}", f"{after:.2f}", f"{after - before:+.2f}", f"{p:.4f}"])
    return ["", f"against the model before (p: {PAIRED_TEST}):", table(rows, _CHANGES, "llrrrr")]
