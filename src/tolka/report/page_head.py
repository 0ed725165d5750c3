"""What heads a report page: the verdict on a run and what to try next, or which of several runs is the best."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tolka.evaluation.verdict import advice_of, figures_of, minutes_text
from tolka.metrics.metric import SEED
from tolka.metrics.significance import holm, randomisation_p
from tolka.metrics.tables import interval_text
from tolka.report.runs import FinishedRun

_TRIALS, _SIGNIFICANCE = 1000, 0.05


def page_head(runs: Sequence[FinishedRun], folder: Path, page: str) -> dict[str, Any]:
    """Return a run's verdict with its figures and advice, or the order of several. page: name of their own ones."""
    verdict = runs[0].scores.get("verdict") if len(runs) == 1 else None  # of several, each has its own page
    return {
        "verdict": verdict,
        "verdict_figures": figures_of(verdict) if verdict else [],
        "advice": advice_of(verdict, folder) if verdict else [],
        "ranking": _ranking(runs, folder, page),
    }


def _ranking(runs: Sequence[FinishedRun], folder: Path, page: str) -> list[dict[str, Any]]:
    """Return each of several runs, the best on the first test set first: its score, verdict and advice."""
    test = next((name for name in runs[0].tests if all(name in run.tests for run in runs)), "") if runs else ""
    if len(runs) < 2 or not test:
        return []
    scores = [run.tests[test]["metrics"][0] for run in runs]
    lower_is_better = scores[0]["name"] == "TER"
    order = sorted(range(len(runs)), key=lambda n: scores[n]["score"], reverse=not lower_is_better)
    beside = chances([runs[number].lines_of(test) for number in order]) or [""] * len(order)
    ranking, common = [], common_facts(runs)
    for number, chance in zip(order, beside, strict=True):
        run, own = runs[number], folder / runs[number].label
        verdict = run.scores.get("verdict") or {"sentences": [""]}
        text = f"{scores[number]['name']} {scores[number]['score']:.1f}"
        if interval := interval_text(scores[number]["interval"], 1):
            text += f" ({interval})"
        advice = advice_of(verdict, own)[:1] if own.is_dir() else []
        link = f"{run.label}/{page}" if (own / page).is_file() else ""
        # The machine is below, with size and cost.
        own_facts = [fact for label, fact in run.card_facts.items() if label not in {*common, "trained on"}]
        what = "; ".join([*own_facts, f"{run.updates:,} updates in {minutes_text(run.minutes)}"])
        found = {"label": run.label, "what": what, "test": test, "score": text, "chance": chance, "page": link}
        ranking.append({**found, "words": verdict["sentences"][0], "advice": advice})
    return ranking


def common_facts(runs: Sequence[FinishedRun]) -> dict[str, str]:
    """Return the facts that all runs share."""
    facts = runs[0].card_facts if runs else {}
    return {label: fact for label, fact in facts.items() if all(run.card_facts.get(label) == fact for run in runs)}


def chances(of_runs: Sequence[Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return for each training whether it differs from the first by more than chance; none without common test lines.

    of_runs: the lines of one test set. By the mean of their chrF2, whose differences change their signs by coins
    (Riezler and Maxwell 2005), with Holm's correction for all trainings.
    """
    scored = [{line["source"]: line["chrf"] for line in lines} for lines in of_runs]
    if not scored[0] or any(scores.keys() != scored[0].keys() for scores in scored):
        return []
    signs = np.random.default_rng(SEED).choice((-1.0, 1.0), size=(_TRIALS, len(scored[0])))
    changes = [np.array([scores[source] - value for source, value in scored[0].items()]) for scores in scored[1:]]
    adjusted = holm([randomisation_p(signs @ change, float(change.sum())) for change in changes])
    told = (
        f"{round(float(change.mean()), 1) + 0.0:+.1f} (p = {p:.3f}{', may be chance' if p >= _SIGNIFICANCE else ''})"
        for change, p in zip(changes, adjusted, strict=True)
    )
    return ["", *told]
