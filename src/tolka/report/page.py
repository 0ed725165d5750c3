"""One page about a run, or about several side by side: HTML that opens from disk, with nothing to fetch."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tolka.atomic import replace_text
from tolka.errors import ConfigError, TolkaError
from tolka.report.comparison import compare_runs
from tolka.report.render import render
from tolka.report.runs import FinishedRun
from tolka.report.tables import between

PAGE = "report.html"
_MOST_PIECES = 80  # on a side of a map that is laid out; longer ones are in the run's folder


@dataclass(frozen=True)
class ReportConfig:
    """The page about a finished run."""

    page: bool = True
    """whether report.html is written: scores, curves, and some sentences with their translation and attention"""
    sentences: list[str] = field(default_factory=list)
    """sentences to show, in the source language; [] = three of the test set: a short, a middling and a long one"""

    def __post_init__(self) -> None:
        if not all(sentence.strip() for sentence in self.sentences):
            raise ConfigError("report.sentences has a blank one: leave it out, or write [] for three of the test set")
        if len(set(self.sentences)) < len(self.sentences):
            raise ConfigError("report.sentences has a sentence twice: name each once")


def write_page(folder: Path, title: str, runs: Sequence[FinishedRun], failed: Mapping[str, str]) -> Path:
    """Write report.html into a folder, its pictures as PNG into `plots/` there and into the page; returns its path.

    runs: in the order of the table. failed: label -> what was wrong, of those that did not finish. Without matplotlib
    the page has no pictures, and says so.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        pictures, note = compare_runs(runs, folder / "plots"), ""
    except TolkaError as error:
        pictures, note = [], str(error)
    common = _common_facts(runs)
    tests = list(dict.fromkeys(test for run in runs for test in run.tests))
    text = render(
        "page.html",
        title=title,
        languages=[runs[0].config["corpus"][side] for side in ("source", "target")] if runs else ["", ""],
        facts=common,
        most_pieces=_MOST_PIECES,
        metrics={test: _metrics(runs, test) for test in tests},
        rows=[_row(run, tests, common) for run in runs],
        signatures=_signatures(runs),
        failed=failed,
        pictures=[(picture, base64.b64encode(picture.path.read_bytes()).decode("ascii")) for picture in pictures],
        note=note,
        sentences=list(_sentences(runs)),
        settings=[(run.label, yaml.safe_dump(dict(run.config), allow_unicode=True, sort_keys=False)) for run in runs],
    )
    replace_text(folder / PAGE, text)
    return folder / PAGE


def _common_facts(runs: Sequence[FinishedRun]) -> dict[str, str]:
    """What holds for every run."""
    common = dict(runs[0].facts) if runs else {}
    return {label: fact for label, fact in common.items() if all(run.facts.get(label) == fact for run in runs)}


def _metrics(runs: Sequence[FinishedRun], test: str) -> list[str]:
    """Printed names of a test set's scores, in the order that they were asked for."""
    return list(dict.fromkeys(entry["name"] for run in runs for entry in run.tests.get(test, {}).get("metrics", [])))


def _row(run: FinishedRun, tests: Sequence[str], common: Mapping[str, str]) -> dict[str, Any]:
    """A line of the table. common: facts that hold for every run and are not repeated."""
    rate = run.tokens_per_second
    own = [fact for label, fact in run.facts.items() if label not in common and label != "architecture"]
    return {
        "label": run.label,
        "own_facts": "; ".join(own),
        "parameters": run.parameters,
        "updates": run.updates,
        "minutes": f"{run.minutes:.1f}",
        "tokens_per_second": "" if rate is None else _rate(rate),
        "tests": {test: _scored(run, test) for test in tests if test in run.tests},
    }


def _rate(value: float) -> str:
    """Two digits at least."""
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _scored(run: FinishedRun, test: str) -> dict[str, Any]:
    found, rate = run.tests[test], run.sentences_per_second(test)
    return {
        "scores": {entry["name"]: (entry["score"], between(entry["interval"])) for entry in found["metrics"]},
        "ppl": found["perplexity"]["ppl"],
        "sentences_per_second": "" if rate is None else _rate(rate),
    }


def _signatures(runs: Sequence[FinishedRun]) -> dict[str, list[str]]:
    """Printed name -> its signatures, which are one unless the runs are scored in unlike ways."""
    found: dict[str, list[str]] = {}
    for run in runs:
        for test in run.tests.values():
            for entry in test["metrics"]:
                if entry["signature"] not in found.setdefault(entry["name"], []):
                    found[entry["name"]].append(entry["signature"])
    return found


def _sentences(runs: Sequence[FinishedRun]) -> Iterator[dict[str, Any]]:
    """Each sentence shown, with what every run made of it."""
    sources = dict.fromkeys(shown["source"] for run in runs for shown in run.shown)
    for source in sources:
        made = [(run, shown) for run in runs for shown in run.shown if shown["source"] == source]
        references = [shown["reference"] for _, shown in made if "reference" in shown]
        yield {"source": source, "reference": next(iter(references), ""), "made": made}
