"""What heads a report page: the verdict on a run and what to try next, or which of several runs is the best."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from tolka.evaluation.verdict import advice_of, figures_of, minutes_text
from tolka.metrics.tables import interval_text
from tolka.report.page_tables import SIGNIFICANCE
from tolka.report.runs import FinishedRun
from tolka.report.sweep_tables import System


def page_head(runs: Sequence[FinishedRun], systems: Sequence[System], folder: Path, page: str) -> dict[str, Any]:
    """Return a run's verdict with its figures and advice, or the order of several. page: name of their own ones."""
    verdict = runs[0].scores.get("verdict") if len(runs) == 1 else None  # of several, each has its own page
    return {
        "verdict": verdict,
        "verdict_figures": figures_of(verdict) if verdict else [],
        "advice": advice_of(verdict, folder) if verdict else [],
        "ranking": [_entry(each, common_facts(runs), folder, page) for each in systems],
    }


def _entry(system: System, common: Mapping[str, str], folder: Path, page: str) -> dict[str, Any]:
    """Return what is said of a system among several: its scores, and its best training's verdict and advice."""
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
        "page": f"{run.label}/{page}" if (own / page).is_file() else "",
        "words": verdict["sentences"][0],
        "advice": advice_of(verdict, own)[:1] if own.is_dir() else [],
    }


def common_facts(runs: Sequence[FinishedRun]) -> dict[str, str]:
    """Return the facts that all runs share."""
    facts = runs[0].card_facts if runs else {}
    return {label: fact for label, fact in facts.items() if all(run.card_facts.get(label) == fact for run in runs)}
