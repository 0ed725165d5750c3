"""The report page about one run, or several side by side: HTML that needs nothing else."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import yaml

from tolka.errors import TolkaError
from tolka.evaluation.figures import FIGURES
from tolka.evaluation.verdict import advice_of
from tolka.metrics.tables import interval_text
from tolka.report.comparison import Picture, compare_runs
from tolka.report.glossary import entry, in_order
from tolka.report.page_tables import change_tables, cost_table, score_tables
from tolka.report.render import render
from tolka.report.runs import FinishedRun, worst_and_best
from tolka.report.sweep_tables import chances, sweep_tables
from tolka.system.atomic import replace_text

PAGE = "report.html"
SHORT_PAGE = "report.md"  # its verdict, lines and tables, to be pasted elsewhere
_MOST_SUBWORDS = 80  # on a side of a map that is laid out; longer ones are in the run's folder


@dataclass(frozen=True)
class ReportConfig:
    """Options of the report page about a finished run."""

    RESUMABLE: ClassVar[bool] = True

    page: bool = True
    """whether report.html is written: scores, curves, and three test sentences with their attention"""
    plots: bool = True
    """whether plots/ are drawn, where matplotlib is installed: learning curves, gradient flow"""


def write_page(
    folder: Path, title: str, runs: Sequence[FinishedRun], failed: Mapping[str, str], plots: bool = True
) -> Path:
    """Write report.html into a folder, and report.md, its verdict, lines and tables; return the first one's path.

    Plots are SVG in the page and PNG in `plots/`.

    runs: in the order of the table. failed: label -> what was wrong, of those that did not finish. plots: whether there
    are pictures (report.plots). Without matplotlib the page has a note in their place.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        pictures, note = compare_runs(runs, folder / "plots") if plots else [], ""
    except TolkaError as error:
        pictures, note = [], str(error)
    common = _common_facts(runs)
    scores, costs, changes = score_tables(runs), cost_table(runs, common), change_tables(runs)
    sweep = sweep_tables(runs)
    lines = runs[0].lines if len(runs) == 1 else []
    worst, best = worst_and_best(lines)
    sentences = list(_sentences(runs, {line["source"] for line in (*worst, *best)}))
    has_maps = any(example["maps"] for sentence in sentences for _, example in sentence["translations"])
    score_terms = in_order(term for table in scores for term in table.terms)
    cost_terms = in_order(costs.terms)
    used = {*score_terms, *cost_terms, *(picture.term for picture in pictures)}
    used |= {entry("p")} if changes else set()
    used |= {entry(anchor) for table in sweep for anchor in table.terms}
    used |= {entry("attention")} if has_maps else set()
    verdict = runs[0].scores.get("verdict") if len(runs) == 1 else None  # of several, each has its own page
    figures = verdict["figures"] if verdict else {}
    values = {
        "title": title,
        "labels": [run.label for run in runs],
        "languages": [runs[0].config["corpus"][side] for side in ("source", "target")] if runs else ["", ""],
        "facts": common,
        "verdict": verdict,
        "ranking": _ranking(runs, folder),
        "advice": advice_of(verdict, folder) if verdict else [],
        "verdict_figures": [(label, figures[key]) for key, label in FIGURES.items() if figures.get(key) is not None],
        "most_subwords": _MOST_SUBWORDS,
        "scores": scores,
        "costs": costs,
        "sweep": sweep,
        "changes": changes,
        "origins": list(
            dict.fromkeys(origin for run in runs if (origin := run.config.get("run", {}).get("init_from")))
        ),
        "signatures": _signatures(runs, pictures),
        "failed": failed,
        "pictures": pictures,
        "note": note,
        "sentences": sentences,
        "extremes": [(words, each) for words, each in (("worst", worst), ("best", best)) if each],
        "lines": lines,
        "score_terms": score_terms,
        "cost_terms": cost_terms,
        "p": entry("p"),
        "attention": entry("attention") if has_maps else None,
        "glossary": [term for term in in_order(term.anchor for term in used) if term.more],
        "settings": [
            (run.label, yaml.safe_dump(dict(run.config), allow_unicode=True, sort_keys=False)) for run in runs
        ],
    }
    for name, template in ((SHORT_PAGE, "page.md"), (PAGE, "page.html")):
        replace_text(folder / name, render(template, **values))
    return folder / PAGE


def _ranking(runs: Sequence[FinishedRun], folder: Path) -> list[dict[str, Any]]:
    """Return each of several runs, the best on the first test set first: its score, verdict and advice."""
    test = next((name for name in runs[0].tests if all(name in run.tests for run in runs)), "") if runs else ""
    if len(runs) < 2 or not test:
        return []
    scores = [run.tests[test]["metrics"][0] for run in runs]
    lower_is_better = scores[0]["name"] == "TER"
    order = sorted(range(len(runs)), key=lambda n: scores[n]["score"], reverse=not lower_is_better)
    beside = chances([runs[number].lines for number in order]) or [""] * len(order)
    ranking = []
    for number, chance in zip(order, beside, strict=True):
        run, own = runs[number], folder / runs[number].label
        verdict = run.scores.get("verdict") or {"sentences": [""]}
        text = f"{scores[number]['name']} {scores[number]['score']:.1f}"
        if interval := interval_text(scores[number]["interval"], 1):
            text += f" ({interval})"
        advice = advice_of(verdict, own)[:1] if own.is_dir() else []
        page = f"{run.label}/{PAGE}" if (own / PAGE).is_file() else ""
        found = {"label": run.label, "test": test, "score": text, "chance": chance, "page": page}
        ranking.append({**found, "words": verdict["sentences"][0], "advice": advice})
    return ranking


def _common_facts(runs: Sequence[FinishedRun]) -> dict[str, str]:
    """Return the facts that all runs share."""
    facts = runs[0].card_facts if runs else {}
    return {label: fact for label, fact in facts.items() if all(run.card_facts.get(label) == fact for run in runs)}


def _signatures(runs: Sequence[FinishedRun], pictures: Sequence[Picture]) -> dict[str, list[str]]:
    """Return name of a score -> its signatures, one unless the runs are scored differently."""
    signatures: dict[str, dict[str, None]] = {}  # keys of a dict have an order, and no duplicates
    for run in runs:
        for test in run.tests.values():
            for scored in test["metrics"]:
                signatures.setdefault(scored["name"], {})[scored["signature"]] = None
    # Validation is greedy and has one signature for all of its curves: named only where it differs from the tests'.
    of_tests = {signature for each in signatures.values() for signature in each}
    for picture in pictures:
        for signature in picture.signatures:
            if signature not in of_tests:
                name = "BLEU by length" if picture.term.anchor == "length" else "BLEU in validation"
                signatures.setdefault(name, {})[signature] = None
    return {name: list(each) for name, each in signatures.items()}


def _sentences(runs: Sequence[FinishedRun], first: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield each example sentence with every run's translation. first: sources that come before the others.

    Of several runs, only what all of them have chosen, unless they share nothing.
    """
    # By the source itself: runs with other test sets have chosen other sentences, as each has its own worst and best.
    counts = Counter(example["source"] for run in runs for example in run.examples)
    shared = [source for source, count in counts.items() if count == len(runs)]
    for source in sorted(shared or counts, key=lambda source: source not in first):
        translations = [(run, each) for run in runs for each in run.examples if each["source"] == source]
        references = [example["reference"] for _, example in translations if "reference" in example]
        yield {"source": source, "reference": next(iter(references), ""), "translations": translations}
