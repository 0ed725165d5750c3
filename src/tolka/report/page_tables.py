"""The tables of a report page: scores, costs, and changes by fine-tuning."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tolka.metrics.significance import PAIRED_TEST
from tolka.metrics.tables import interval_text, table
from tolka.report.glossary import Term, entry_of
from tolka.report.runs import FinishedRun
from tolka.system.number_format import number_text

SIGNIFICANCE = 0.05  # a difference with a smaller p counts as more than chance
_AFTER_METRICS = ("PPL per token", "sentences/s")


@dataclass(frozen=True)
class Row:
    """A row of a table. cells: texts, or (text, small text below it), one per column. small: below the label."""

    label: str
    cells: Sequence[str | tuple[str, str]]
    small: str = ""
    term: Term | None = None


@dataclass(frozen=True)
class ScoreTable:
    """A table of figures. heading: of the column of labels. columns: the names of the others."""

    title: str
    heading: str
    columns: Sequence[str]
    rows: Sequence[Row]

    @property
    def column_terms(self) -> list[Term | None]:
        """Each column's entry in the glossary."""
        return [*map(entry_of, self.columns)]

    @property
    def terms(self) -> set[str]:
        """Glossary anchors of all that the table shows."""
        anchors = {term.anchor for term in (*self.column_terms, *(row.term for row in self.rows)) if term}
        has_intervals = any(isinstance(cell, tuple) for row in self.rows for cell in row.cells)
        return anchors | ({"interval"} if has_intervals else set())

    def as_text(self) -> str:
        """Return the table for a terminal."""
        rows = [
            [row.label, *(cell if isinstance(cell, str) else f"{cell[0]} ({cell[1]})" for cell in row.cells)]
            for row in self.rows
        ]
        text = table(rows, [self.heading, *self.columns], f"l{'r' * len(self.columns)}")
        return f"{self.title}\n{text}" if self.title else text


def score_tables(runs: Sequence[FinishedRun]) -> list[ScoreTable]:
    """Return one table of all test sets for a single run; else one per test set, with a row per run."""
    tests = list(dict.fromkeys(test for run in runs for test in run.tests))
    # Rows are what a reader compares: test sets of one run, or runs on one test set.
    if len(runs) == 1:
        names = _names(runs, tests)
        rows = [_score_row(test, runs[0], test, names) for test in tests]
        return [ScoreTable("", "test set", names, rows)] if tests else []
    tables = []
    for test in tests:
        names = _names(runs, [test])
        rows = [_score_row(run.label, run, test, names) for run in runs if test in run.tests]
        tables.append(ScoreTable(test, "system", names, rows))
    return tables


def cost_table(runs: Sequence[FinishedRun], common: Mapping[str, str]) -> ScoreTable:
    """Return size and training cost of each run. common: facts that hold for every run and are not repeated."""
    rows = []
    for run in runs:
        own_facts = [fact for label, fact in run.card_facts.items() if label not in common and label != "architecture"]
        speed = "" if run.tokens_per_second is None else _rate(run.tokens_per_second)
        parameters = run.card_facts["architecture"].partition(", ")[2].removesuffix(" parameters")
        figures = [parameters, f"{run.updates:,}", f"{run.minutes:.1f}", speed]
        rows.append(Row(run.label, figures, "; ".join(own_facts)))
    return ScoreTable("", "system", ["parameters", "updates", "minutes", "target tokens/s"], rows)


def change_tables(tests: Mapping[str, Mapping[str, Any]], label: str = "") -> list[ScoreTable]:
    """Return scores before and after fine-tuning, for each test set that was scored with both.

    tests: as in scores.json. label: of the run, where there are several.
    """
    tables = []
    for test, result in tests.items():
        if changes := result.get("changes", []):
            title = f"{label}{', ' if label else ''}{test}, p by {PAIRED_TEST}"
            columns = "before", "after", "change", "p", "verdict"
            tables.append(ScoreTable(title, "score", columns, [*map(_change_row, changes)]))
    return tables


def _names(runs: Sequence[FinishedRun], tests: Sequence[str]) -> list[str]:
    """Return printed names of the scores, in the order configured."""
    scored = (run.tests.get(test, {}).get("metrics", []) for run in runs for test in tests)
    return [*dict.fromkeys(each["name"] for metrics in scored for each in metrics), *_AFTER_METRICS]


def _score_row(label: str, run: FinishedRun, test: str, names: Sequence[str]) -> Row:
    result, timed = run.tests[test], [line for line in run.metrics if line.get("test") == test]
    rate = _rate(timed[0]["sentences"] / timed[0]["decoding_seconds"]) if timed else ""
    cells: dict[str, str | tuple[str, str]] = {}
    for each in result["metrics"]:
        score, interval = f"{each['score']:.1f}", interval_text(each["interval"])
        cells[each["name"]] = (score, interval) if interval else score
    cells |= {"PPL per token": number_text(result["perplexity"]["ppl"]), "sentences/s": rate}
    return Row(label, [cells.get(name, "") for name in names])


def _change_row(change: Mapping[str, Any]) -> Row:
    before, after, p = change["before"], change["after"], change["p_value"]
    term = entry_of(change["name"])
    gain = (before - after) if term and term.better == "lower" else after - before
    verdict = "may be chance" if p >= SIGNIFICANCE else "better" if gain > 0 else "worse"
    # + 0.0, or a small loss would be -0.0.
    figures = [f"{before:.1f}", f"{after:.1f}", f"{round(after - before, 1) + 0.0:+.1f}", f"{p:.3f}", verdict]
    return Row(change["name"], figures, term=term)


def _rate(value: float) -> str:
    """Return a rate with at least two digits."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
