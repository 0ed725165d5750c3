"""The tables of a report page: scores, costs, and changes by fine-tuning."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tolka.metrics.significance import PAIRED_TEST
from tolka.metrics.tables import interval_text
from tolka.report.glossary import Term, entry_of
from tolka.report.runs import FinishedRun
from tolka.system.number_format import number_text

SIGNIFICANCE = 0.05  # a difference with a smaller p counts as more than chance
_AFTER_METRICS = ("PPL per token", "sentences/s")


@dataclass(frozen=True)
class Column:
    """A column's printed name, and its entry in the glossary, if it has one."""

    name: str
    term: Term | None


@dataclass(frozen=True)
class Row:
    """A row of a table. small: below the label. cells: (text, small text below it), one per column."""

    label: str
    small: str
    cells: list[tuple[str, str]]
    term: Term | None = None


@dataclass(frozen=True)
class ScoreTable:
    """A table of figures. heading: of the column of labels."""

    title: str
    heading: str
    columns: list[Column]
    rows: list[Row]

    @property
    def terms(self) -> set[str]:
        """Glossary anchors of all that the table shows."""
        terms = [*(column.term for column in self.columns), *(row.term for row in self.rows)]
        anchors = {term.anchor for term in terms if term}
        return anchors | ({"interval"} if any(small for row in self.rows for _, small in row.cells) else set())


def score_tables(runs: Sequence[FinishedRun]) -> list[ScoreTable]:
    """Return one table of all test sets for a single run; else one per test set, with a row per run."""
    tests = list(dict.fromkeys(test for run in runs for test in run.tests))
    # Rows are what a reader compares: test sets of one run, or runs on one test set.
    if len(runs) == 1:
        names = _names(runs, tests)
        rows = [_score_row(test, runs[0], test, names) for test in tests]
        return [figures_table("", "test set", names, rows)] if tests else []
    tables = []
    for test in tests:
        names = _names(runs, [test])
        rows = [_score_row(run.label, run, test, names) for run in runs if test in run.tests]
        tables.append(figures_table(test, "system", names, rows))
    return tables


def cost_table(runs: Sequence[FinishedRun], common: Mapping[str, str]) -> ScoreTable:
    """Return size and training cost of each run. common: facts that hold for every run and are not repeated."""
    rows = []
    for run in runs:
        own_facts = [fact for label, fact in run.card_facts.items() if label not in common and label != "architecture"]
        speed = "" if run.tokens_per_second is None else _rate(run.tokens_per_second)
        figures = [run.parameters, f"{run.updates:,}", f"{run.minutes:.1f}", speed]
        rows.append(Row(run.label, "; ".join(own_facts), [(figure, "") for figure in figures]))
    return figures_table("", "system", ["parameters", "updates", "minutes", "target tokens/s"], rows)


def change_tables(runs: Sequence[FinishedRun]) -> list[ScoreTable]:
    """Return scores before and after fine-tuning, for each run and test set that was scored with both."""
    tables = []
    for run in runs:
        for test, result in run.tests.items():
            changes = result.get("changes", [])
            rows = [_change_row(change) for change in changes]
            if rows:
                title = f"{test}, p by {PAIRED_TEST}"
                title = title if len(runs) == 1 else f"{run.label}, {title}"
                tables.append(figures_table(title, "score", ["before", "after", "change", "p", "verdict"], rows))
    return tables


def _names(runs: Sequence[FinishedRun], tests: Sequence[str]) -> list[str]:
    """Return printed names of the scores, in the order configured."""
    scored = (run.tests.get(test, {}).get("metrics", []) for run in runs for test in tests)
    return [*dict.fromkeys(each["name"] for metrics in scored for each in metrics), *_AFTER_METRICS]


def figures_table(title: str, heading: str, names: Sequence[str], rows: list[Row]) -> ScoreTable:
    """Return a table. names: of its columns, with their entries in the glossary where they have one."""
    return ScoreTable(title, heading, [Column(name, entry_of(name)) for name in names], rows)


def _score_row(label: str, run: FinishedRun, test: str, names: Sequence[str]) -> Row:
    result, rate = run.tests[test], run.sentences_per_second(test)
    scores = {each["name"]: (f"{each['score']:.1f}", interval_text(each["interval"])) for each in result["metrics"]}
    more = {
        "PPL per token": (number_text(result["perplexity"]["ppl"]), ""),
        "sentences/s": (_rate(rate) if rate else "", ""),
    }
    return Row(label, "", [{**scores, **more}.get(name, ("", "")) for name in names])


def _change_row(change: Mapping[str, Any]) -> Row:
    before, after, p = change["before"], change["after"], change["p_value"]
    term = entry_of(change["name"])
    gain = (before - after) if term and term.better == "lower" else after - before
    verdict = "may be chance" if p >= SIGNIFICANCE else "better" if gain > 0 else "worse"
    # + 0.0, or a small loss would be -0.0.
    figures = [f"{before:.1f}", f"{after:.1f}", f"{round(after - before, 1) + 0.0:+.1f}", f"{p:.3f}", verdict]
    return Row(change["name"], "", [(figure, "") for figure in figures], term)


def _rate(value: float) -> str:
    """Return a rate with at least two digits."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
