"""The report page about one run, or several side by side: HTML that needs nothing else."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, ClassVar

from tolka.errors import TolkaError
from tolka.evaluation.verdict import advice_of, minutes_text
from tolka.metrics.tables import interval_text
from tolka.report.curves import Picture, draw_curves
from tolka.report.glossary import entry, ordered_terms
from tolka.report.page_tables import SIGNIFICANCE, change_tables, cost_table, score_tables
from tolka.report.render import render
from tolka.report.runs import FinishedRun, worst_and_best
from tolka.report.sweep_tables import System, ranked_systems, sweep_tables
from tolka.system.atomic import replace_text
from tolka.training.saved_settings import with_origins

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
    """whether the page has learning curves and other pictures, also in plots/, where matplotlib is installed"""


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
        pictures, note = draw_curves(runs, folder / "plots") if plots else [], ""
    except TolkaError as error:
        pictures, note = [], str(error)
    values = {
        "title": title,
        "labels": [run.label for run in runs],
        "languages": [runs[0].config["corpus"][side] for side in ("source", "target")] if runs else ["", ""],
        "failed": failed,
        "note": note,
        "pictures": pictures,
        "signatures": _signatures(runs, pictures),
        "settings": [(run.label, with_origins(run.config)) for run in runs],
        **(head := page_head(runs, folder)),
        **(tables := _tables(runs)),
        **(texts := _texts(runs)),
    }
    used = {anchor for name in ("scores", "changes", "sweep") for table in tables[name] for anchor in table.terms}
    used |= tables["costs"].terms | {picture.term.anchor for picture in pictures}
    used |= {term.anchor for term in texts["map_terms"]}
    used |= {"p"} if tables["changes"] or any(each["chance"] for each in head["ranking"]) else set()
    values |= {"glossary": [term for term in ordered_terms(used) if term.more]}
    for name, template in ((SHORT_PAGE, "page.md"), (PAGE, "page.html")):
        replace_text(folder / name, render(template, **values))
    return folder / PAGE


def page_head(runs: Sequence[FinishedRun], folder: Path) -> dict[str, Any]:
    """Return a run's verdict with its advice, or the order of several."""
    verdict = runs[0].scores.get("verdict") if len(runs) == 1 else None  # of several, each has its own page
    return {
        "verdict": verdict,
        "advice": advice_of(verdict, folder) if verdict else [],
        "ranking": [_entry(each, _common_facts(runs), folder) for each in ranked_systems(runs)],
    }


def _entry(system: System, common: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """Return the entry of a system among several: its scores, and its best training's verdict and advice."""
    run = system.runs[system.scores.index(max(system.scores))]
    verdict, own = run.scores.get("verdict") or {"sentences": [""]}, folder / run.label
    firsts = [each.tests[system.test]["metrics"][0] for each in system.runs]
    figures = {system.name: system.scores, firsts[0]["name"]: [each["score"] for each in firsts]}
    score = ", ".join(
        f"{name} {fmean(scores):.1f}" + (f" ± {stdev(scores):.1f}" if len(scores) > 1 else "")
        for name, scores in figures.items()
    )
    interval = interval_text(firsts[0]["interval"], 1) if len(firsts) == 1 else f"{len(firsts)} seeds"
    # The machine is below, with size and cost.
    own_facts = [fact for label, fact in run.card_facts.items() if label not in {*common, "trained on"}]
    change, p = system.beside or (0.0, 1.0)
    beside = f"{round(change, 1) + 0.0:+.1f} (p = {p:.3f}{', may be chance' if p >= SIGNIFICANCE else ''})"
    return {
        "label": system.label,
        "what": "; ".join([*own_facts, f"{run.updates:,} updates in {minutes_text(run.minutes)}"]),
        "test": system.test,
        "score": f"{score} ({interval})" if interval else score,
        "chance": beside if system.beside else "",
        "page": f"{run.label}/{PAGE}" if (own / PAGE).is_file() else "",
        "words": verdict["sentences"][0],
        "advice": advice_of(verdict, own)[:1] if own.is_dir() else [],
    }


def _common_facts(runs: Sequence[FinishedRun]) -> dict[str, str]:
    """Return the facts that all runs share."""
    facts = runs[0].card_facts if runs else {}
    return {label: fact for label, fact in facts.items() if all(run.card_facts.get(label) == fact for run in runs)}


def _tables(runs: Sequence[FinishedRun]) -> dict[str, Any]:
    """Return all tables of figures, and the terms and facts beside them."""
    common = _common_facts(runs)
    scores, costs = score_tables(runs), cost_table(runs, common)
    return {
        "facts": common,
        "scores": scores,
        "score_terms": ordered_terms(term for table in scores for term in table.terms),
        "costs": costs,
        "cost_terms": ordered_terms(costs.terms),
        "sweep": sweep_tables(runs),
        "changes": [table for run in runs for table in change_tables(run.tests, run.label if len(runs) > 1 else "")],
        "origins": list(dict.fromkeys(filter(None, (run.config.get("run", {}).get("init_from") for run in runs)))),
        "p": entry("p"),
    }


def _texts(runs: Sequence[FinishedRun]) -> dict[str, Any]:
    """Return the translations that the page shows, and what their maps are."""
    tests = [_test_lines(runs[0], name) for name in runs[0].tests if runs[0].lines_of(name)] if len(runs) == 1 else []
    shown = {line["source"] for _, lines in (tests[0]["extremes"] if tests else ()) for line in lines}
    sentences = list(_sentences(runs, shown))
    maps = (each for sentence in sentences for _, example in sentence["translations"] for each in example["maps"])
    terms = {"gradient" if each.get("map") == "gradient" else "attention" for each in maps}
    return {
        "test_lines": tests,
        "sentences": sentences,
        "map_terms": ordered_terms(terms),
        "most_subwords": _MOST_SUBWORDS,
    }


def _test_lines(run: FinishedRun, test: str) -> dict[str, Any]:
    """Return the lines of a test set, the worst and the best of them, and its languages."""
    lines = run.lines_of(test)
    both = zip(("worst", "best"), worst_and_best(lines), strict=True)
    languages = run.tests[test].get("direction") or [run.config["corpus"][side] for side in ("source", "target")]
    extremes = [(words, each) for words, each in both if each]
    return {"name": test, "languages": languages, "lines": lines, "extremes": extremes}


def _signatures(runs: Sequence[FinishedRun], pictures: Sequence[Picture]) -> dict[str, list[str]]:
    """Return name of a score -> its signatures, one unless the runs are scored differently."""
    signatures: dict[str, dict[str, None]] = {}  # keys of a dict have an order, and no duplicates
    for scored in (each for run in runs for test in run.tests.values() for each in test["metrics"]):
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
