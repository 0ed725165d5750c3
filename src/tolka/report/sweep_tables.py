"""What several trainings say about the settings in which they differ: the best values, and how much each matters."""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import StatisticsError, correlation, fmean, stdev
from typing import Any

import numpy as np

from tolka.metrics.metric import SEED as SEED_OF_TRIALS
from tolka.metrics.options import MINIMIZED
from tolka.metrics.significance import holm, randomisation_p
from tolka.report.page_tables import Row, ScoreTable, figures_table
from tolka.report.runs import FinishedRun
from tolka.system.number_format import number_text

SEED = "run.seed"
_OWN = ("run.dir", "run.name", "run.prepared")  # of each training by nature
_TRIALS, _SIGNIFICANCE = 1000, 0.05
_FEWEST = 3  # trainings from which on a setting's importance is computed


def differing_settings(runs: Sequence[FinishedRun]) -> dict[str, list[str]]:
    """Return each setting in which the trainings differ -> its value in each of them, as text."""
    flat = [dict(_flat_settings(run.config)) for run in runs]
    keys = dict.fromkeys(key for settings in flat for key in settings if key not in _OWN)
    values = {key: [settings.get(key, "") for settings in flat] for key in keys}
    return {key: texts for key, texts in values.items() if len(set(texts)) > 1}


def _flat_settings(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for group, options in config.items():
        for name, value in options.items() if isinstance(options, Mapping) else ():
            # model.name is the choice that is typed as model=lstm; run.name is a setting.
            yield (group if name == "name" and group != "run" else f"{group}.{name}"), str(value)


def best_value(run: FinishedRun) -> float:
    """Return the best validation's trainer.metric."""
    metric = _metric(run)
    return float(run.scores.get("validation", {}).get("valid_loss" if metric == "nll" else metric, math.nan))


def _metric(run: FinishedRun) -> str:
    return str(run.config.get("trainer", {}).get("metric", "bleu"))


def are_comparable(runs: Sequence[FinishedRun]) -> bool:
    """Return whether there are several trainings, whose best validations have values of one metric."""
    return (
        len(runs) > 1 and len({_metric(run) for run in runs}) == 1 and not any(map(math.isnan, map(best_value, runs)))
    )


def sweep_tables(runs: Sequence[FinishedRun]) -> list[ScoreTable]:
    """Return the trainings from the best to the worst, means over seeds, and the importance of each setting.

    None where there are fewer than two trainings, or where they are selected by different metrics.
    """
    settings = differing_settings(runs)
    if not are_comparable(runs) or not settings:
        return []
    metric, values = _metric(runs[0]), [best_value(run) for run in runs]
    order = sorted(range(len(runs)), key=lambda number: values[number], reverse=metric not in MINIMIZED)
    name = f"{metric.upper() if metric == 'bleu' else metric}, validation"
    found = [[number_text(values[i]), *(texts[i] for texts in settings.values())] for i in order]
    columns = [name, *settings]
    if beside_best := chances([runs[i].lines for i in order]):
        columns.insert(1, "chrF2 beside the best")
        for row, chance in zip(found, beside_best, strict=True):
            row.insert(1, chance)
    ranked = [Row(runs[i].label, "", [(text, "") for text in row]) for i, row in zip(order, found, strict=True)]
    tables = [figures_table("from the best to the worst", "training", columns, ranked)]
    if SEED in settings:
        tables += _over_seeds(settings, values, name, metric)
    if len(runs) >= _FEWEST:
        importance = {key: share_of_variance(found, values) for key, found in settings.items()}
        rows = [
            Row(key, "", [(f"{100 * share:.0f} %", "")])
            for key, share in sorted(importance.items(), key=lambda each: -each[1])
        ]
        tables.append(figures_table("", "setting", ["importance"], rows))
    return tables


def chances(of_runs: Sequence[Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return for each training whether it differs from the first by more than chance; none without common test lines.

    By the mean chrF2 of the lines of the first test set, whose differences change their signs by coins (Riezler and
    Maxwell 2005), with Holm's correction for all trainings.
    """
    scored = [{line["source"]: line["chrf"] for line in lines} for lines in of_runs]
    if not scored[0] or any(scores.keys() != scored[0].keys() for scores in scored):
        return []
    signs = np.random.default_rng(SEED_OF_TRIALS).choice((-1.0, 1.0), size=(_TRIALS, len(scored[0])))
    changes = [np.array([scores[source] - value for source, value in scored[0].items()]) for scores in scored[1:]]
    adjusted = holm([randomisation_p(signs @ change, float(change.sum())) for change in changes])
    told = (
        f"{round(float(change.mean()), 1) + 0.0:+.1f}, p = {p:.3f}{': may be chance' if p >= _SIGNIFICANCE else ''}"
        for change, p in zip(changes, adjusted, strict=True)
    )
    return ["", *told]


def _over_seeds(
    settings: Mapping[str, Sequence[str]], values: Sequence[float], name: str, metric: str
) -> list[ScoreTable]:
    """Return the mean and deviation of trainings that differ in their seed alone; none where each has one seed."""
    others = {key: found for key, found in settings.items() if key != SEED}
    groups: dict[tuple[str, ...], list[float]] = {}
    for number, value in enumerate(values):
        groups.setdefault(tuple(found[number] for found in others.values()), []).append(value)
    if max(map(len, groups.values())) < 2:
        return []
    ranked = sorted(groups.items(), key=lambda group: fmean(group[1]), reverse=metric not in MINIMIZED)
    rows = [
        Row(
            ", ".join(f"{key}={value}" for key, value in zip(others, chosen, strict=True)) or "all",
            "",
            [
                (number_text(fmean(found)), ""),
                (number_text(stdev(found)) if len(found) > 1 else "", ""),
                (str(len(found)), ""),
            ],
        )
        for chosen, found in ranked
    ]
    return [figures_table("over seeds", "settings", [f"mean {name}", "deviation", "seeds"], rows)]


def share_of_variance(settings: Sequence[str], values: Sequence[float]) -> float:
    """Return the share of the values' variance that a setting explains, from 0 to 1.

    Eta squared, the variance between groups of equal settings, where these repeat; the squared rank correlation where
    every training has another number. 0 where all values are equal.
    """
    mean = fmean(values)
    total = sum((value - mean) ** 2 for value in values)
    if not total:
        return 0.0
    # With groups of one training each, eta squared would be 1 whatever the setting does.
    if len(set(settings)) == len(settings):
        try:
            return _rank_correlation([float(each) for each in settings], values) ** 2
        except ValueError:
            return 0.0  # names, each tried once: nothing can be told apart from chance
    groups: dict[str, list[float]] = {}
    for setting, value in zip(settings, values, strict=True):
        groups.setdefault(setting, []).append(value)
    return sum(len(group) * (fmean(group) - mean) ** 2 for group in groups.values()) / total


def _rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Return Spearman's rank correlation, 0 where one side is constant; equal values have the lowest of their ranks."""
    ranks = [[sorted(row).index(value) for value in row] for row in (one, other)]
    try:
        return correlation(*ranks)
    except StatisticsError:
        return 0.0
