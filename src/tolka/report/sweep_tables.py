"""What several trainings say about the settings in which they differ: which are the best, by more than chance."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from tolka.metrics.options import MINIMIZED
from tolka.metrics.significance import gaps_to_best
from tolka.report.page_tables import Row, ScoreTable
from tolka.report.runs import FinishedRun
from tolka.system.number_format import number_text
from tolka.training.saved_settings import flat

SEED = "run.seed"
_OWN = ("run.dir", "run.name", "run.prepared", "run.origins")  # of each training by nature
_LACKING = "–"


def differing_settings(runs: Sequence[FinishedRun]) -> dict[str, list[str]]:
    """Return each setting in which the trainings differ -> its value in each of them, as text.

    Those that have it differ in it; models of another kind, which lack it, have "–".
    """
    # model.name is the choice that is typed as model=lstm.
    settings_of_runs = [
        {key.removesuffix(".name"): str(value) for key, value in flat(run.config).items() if not key.startswith(_OWN)}
        for run in runs
    ]
    keys = dict.fromkeys(key for settings in settings_of_runs for key in settings)
    return {
        key: [settings.get(key, _LACKING) for settings in settings_of_runs]
        for key in keys
        if len({settings[key] for settings in settings_of_runs if key in settings}) > 1
    }


@dataclass(frozen=True)
class System:
    """Trainings that differ in their seed alone.

    name: of the score on the test set that ranks several systems. scores: of each training. beside: difference from the
    best system and p, as of `gaps_to_best`; None of the best, and where trainings do not share test lines.
    """

    label: str
    runs: list[FinishedRun]
    test: str
    name: str
    scores: list[float]
    beside: tuple[float, float] | None


def ranked_systems(runs: Sequence[FinishedRun]) -> list[System]:
    """Return the systems of the trainings, the best first on the first test set that all have; none without one.

    By the mean chrF2 of its lines, on which the tests are; by its first score where the trainings do not share lines.
    """
    test = next((name for name in runs[0].tests if all(name in run.tests for run in runs)), "") if runs else ""
    if len(runs) < 2 or not test:
        return []
    settings = [found for key, found in differing_settings(runs).items() if key != SEED]
    groups: dict[tuple[str, ...], list[FinishedRun]] = {}
    for run, *chosen in zip(runs, *settings, strict=True):
        groups.setdefault(tuple(chosen), []).append(run)
    firsts = [[run.tests[test]["metrics"][0] for run in group] for group in groups.values()]
    name, scores = firsts[0][0]["name"], [[float(each["score"]) for each in own] for own in firsts]
    beside: list[tuple[float, float] | None] = [None] * len(groups)
    texts = [[line["source"] for line in run.lines_of(test)] for run in runs]
    if texts[0] and all(each == texts[0] for each in texts):
        chrf = [np.array([[x["chrf"] for x in run.lines_of(test)] for run in group]) for group in groups.values()]
        name, scores, beside = "chrF2 of a line", [each.mean(1).tolist() for each in chrf], [*gaps_to_best(chrf)]
    systems = [
        System(_common_label([run.label for run in group]), group, test, name, own, told)
        for group, own, told in zip(groups.values(), scores, beside, strict=True)
    ]
    best, *others = sorted(systems, key=lambda each: fmean(each.scores), reverse=name != "TER")
    return [replace(best, beside=None), *others]


def _common_label(labels: Sequence[str]) -> str:
    """Return the label of a training, or of several without the seeds, unless they have nothing else."""
    common = re.sub(r"-?seed=\d+", "", labels[0]).strip("-") if len(labels) > 1 else ""
    return common or ", ".join(labels)


def sweep_tables(runs: Sequence[FinishedRun]) -> list[ScoreTable]:
    """Return the trainings from the best validation to the worst.

    None where there are fewer than two trainings, or where they are selected by different metrics.
    """
    settings = differing_settings(runs)
    metric, *others = dict.fromkeys(str(run.config.get("trainer", {}).get("metric", "bleu")) for run in runs) or [""]
    key = "valid_loss" if metric == "nll" else metric
    values = [float(run.scores.get("validation", {}).get(key, math.nan)) for run in runs]
    if not settings or others or any(map(math.isnan, values)):
        return []
    order = sorted(range(len(runs)), key=lambda number: values[number], reverse=metric not in MINIMIZED)
    name = f"{metric.upper() if metric == 'bleu' else metric}, validation"
    rows = [Row(runs[i].label, [number_text(values[i]), *(texts[i] for texts in settings.values())]) for i in order]
    return [ScoreTable("from the best to the worst", "training", [name, *settings], rows)]
