"""Reading a finished run's files: settings, scores, measurements and example sentences."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from tolka.errors import CheckpointError
from tolka.system.whole_files import read_text

EXAMPLES = "shown"
"""Folder within a run's folder: a JSON file per example sentence (`report.attention.write_numbers`)."""
LINES = "lines.jsonl"
"""File in it: a JSON object per line of the test sets, with its texts and its chrF2."""
_EXTREMES = 3


@dataclass(frozen=True)
class FinishedRun:
    """The content of a run's files. label: distinguishes it from the runs beside it. lines: of its test sets."""

    label: str
    config: Mapping[str, Any]
    scores: Mapping[str, Any]
    metrics: list[dict[str, Any]]
    examples: list[dict[str, Any]]
    lines: list[dict[str, Any]] = field(default_factory=list)

    @property
    def tests(self) -> Mapping[str, Mapping[str, Any]]:
        """Test set -> its entry in scores.json."""
        return dict(self.scores.get("test", {}))

    def lines_of(self, test: str) -> list[dict[str, Any]]:
        """Return the lines of a test set."""
        return [line for line in self.lines if line["test"] == test]

    @property
    def card_facts(self) -> Mapping[str, str]:
        """What the model card says of the model: label -> value."""
        return dict(self.scores["facts"])

    @property
    def updates(self) -> int:
        """Number of updates that the run has done."""
        return max((int(line["update"]) for line in self.metrics), default=0)

    @property
    def minutes(self) -> float:
        """Minutes of training, validations included."""
        return max((line["seconds"] for line in self.metrics if "seconds" in line), default=0.0) / 60

    @property
    def tokens_per_second(self) -> float | None:
        """Median target tokens per second in training; None for a run too short to log it."""
        # The median, since a busy machine slows single lines down.
        rates: list[float] = [line["tokens_per_second"] for line in self.metrics if "tokens_per_second" in line]
        return median(rates) if rates else None

    @property
    def validations(self) -> list[dict[str, Any]]:
        """One line per validation, those of averaged models left out."""
        # These are measured at the end, and would be a second point at the last update.
        return [line for line in self.metrics if "valid_loss" in line and "mean_of_updates" not in line]

    def by_direction(self) -> "list[FinishedRun]":
        """Return the run with its validations in each direction, labelled by it; itself alone where there is only one.

        Their keys are those of the mean over all directions.
        """
        names = dict.fromkeys(name for line in self.validations for name in line.get("directions", {}))
        runs = []
        for name in names:
            of_it = ((line, line.get("directions", {}).get(name)) for line in self.validations)
            lines = [{**line, **values, "valid_loss": values["nll"]} for line, values in of_it if values]
            runs.append(replace(self, label=name, metrics=lines))
        return runs or [self]

    @property
    def without_attention(self) -> bool:
        """Whether the decoder has one fixed vector of the source instead of attention."""
        return bool(self.config["model"].get("attention") == "none")


def worst_and_best(lines: Sequence[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Return three lines with the lowest chrF2 and three with the highest, of equal ones the longest; none of few."""
    if len(lines) < 2 * _EXTREMES:
        return [], []
    # One short sentence that is all right or all wrong says little.
    worst = sorted(lines, key=lambda line: (line["chrf"], -len(line["source"])))
    best = sorted(lines, key=lambda line: (-line["chrf"], -len(line["source"])))
    return worst[:_EXTREMES], best[:_EXTREMES]


def read_run(folder: Path, label: str) -> FinishedRun:
    """Read a run's folder; CheckpointError when a file is missing or damaged."""
    try:
        return FinishedRun(
            label,
            yaml.safe_load(read_text(folder / "config.yaml")),
            json.loads(read_text(folder / "best" / "scores.json")),
            [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()],
            [json.loads(read_text(path)) for path in sorted((folder / EXAMPLES).glob("*.json"))],
            # Not splitlines, which also cuts where a text has U+2028.
            [json.loads(each) for path in (folder / EXAMPLES).glob(LINES) for each in read_text(path).split("\n")[:-1]],
        )
    except OSError as error:
        raise CheckpointError(f"{folder} is not a finished run: {error.filename} cannot be read") from None
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise CheckpointError(f"{folder} is damaged ({' '.join(str(error).split())})") from None
