"""What several trainings say about the settings in which they differ: the best values, and how much each matters."""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import StatisticsError, correlation, fmean, stdev
from typing import Any

from tolka.metrics.options import MINIMIZED
from tolka.report.page_tables import Row, ScoreTable, figures_table
from tolka.report.runs import FinishedRun
from tolka.system.number_format import number_text

SEED = "run.seed"
_OWN = ("run.dir", "run.name", "run.prepared")  # of each training by nature
_LACKING = "–"
_MOST_COLUMNS = 6  # that fit beside a label
_FEWEST = 3  # trainings from which on a setting's importance is computed


def differing_settings(runs: Sequence[FinishedRun]) -> dict[str, list[str]]:
    """Return each setting in which the trainings differ -> its value in each of them, as text.

    Those that have it differ in it; models of another kind, which lack it, have "–".
    """
    flat = [dict(_flat_settings(run.config)) for run in runs]
    keys = dict.fromkeys(key for settings in flat for key in settings if key not in _OWN)
    return {
        key: [settings.get(key, _LACKING) for settings in flat]
        for key in keys
        if len({settings[key] for settings in flat if key in settings}) > 1
    }


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
    labels, heading, title = [runs[i].label for i in order], "training", "from the best to the worst"
    if len(columns) > max(_MOST_COLUMNS, len(runs)):  # as of models of different kinds: one setting below the other
        labels, columns, found, heading = columns, labels, [list(row) for row in zip(*found, strict=True)], "setting"
    ranked = [Row(label, "", [(text, "") for text in row]) for label, row in zip(labels, found, strict=True)]
    tables = [figures_table(title, heading, columns, ranked)]
    if SEED in settings:
        tables += _over_seeds(settings, values, name, metric)
    if len(runs) >= _FEWEST:
        of_all = {key: found for key, found in settings.items() if _LACKING not in found}
        importance = {key: share_of_variance(found, values) for key, found in of_all.items()}
        rows = [
            Row(key, "", [(f"{100 * share:.0f} %", "")])
            for key, share in sorted(importance.items(), key=lambda each: -each[1])
        ]
        tables.append(figures_table("", "setting", ["importance"], rows))
    return tables


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
