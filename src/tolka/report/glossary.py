"""The glossary: what each figure on a page means, which way is better, and its source. The text is glossary.yaml."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from tolka.system.package_data import table_beside


@dataclass(frozen=True)
class Term:
    """An entry. better: "higher", "lower" or "". sentence: what it is. more: its limits and source."""

    anchor: str
    name: str
    sentence: str
    better: str = ""
    more: str = ""

    @property
    def arrow(self) -> str:
        """An arrow that shows which way is better."""
        return {"higher": "↑", "lower": "↓"}.get(self.better, "")


@cache
def _terms() -> dict[str, Term]:
    """Return anchor -> entry, in the glossary's order."""
    return {anchor: Term(anchor, **fields) for anchor, fields in table_beside(__file__).items()}


def entry(anchor: str) -> Term:
    """Return the entry of an anchor; KeyError if there is none."""
    return _terms()[anchor]


def entry_of(column: str) -> Term | None:
    """Return the entry of a table's column by its printed name ("PPL per token" is a kind of PPL); None if unknown."""
    by_name = {term.name: term for term in _terms().values()}
    return by_name.get(column) or by_name.get(column.split()[0])


def ordered_terms(anchors: Iterable[str]) -> list[Term]:
    """Return the entries of these anchors, each once, in the glossary's order."""
    wanted = set(anchors)
    return [term for anchor, term in _terms().items() if anchor in wanted]
