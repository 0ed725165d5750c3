"""How two systems differ: line by line, in the words that each finds, and on which lengths of lines.

L lines. Words are those of BLEU's tokenizer for the language; a word of a reference is found if a translation has it,
as often as the reference does. With several references, the first is looked at.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from tolka.metrics.languages import bleu_tokenizer, has_spaces
from tolka.metrics.metric import References, Values
from tolka.metrics.options import MetricsConfig
from tolka.metrics.scores import metrics_of

MOST_LINES = 5000
_DECIDING, _WORDS = 3, 8  # lines and words that are shown for each side
_EQUAL = 1e-9  # difference of chrF2 of a line up to which it counts as none
_QUARTERS = 4


@dataclass(frozen=True)
class Part:
    """A part of a test set: what it is, how many lines it has, and the score of each of two systems."""

    name: str
    count: int
    a: float
    b: float


@dataclass(frozen=True)
class Contrast:
    """How b differs from a. lines: looked at. better, worse: of these, by chrF2; the others are equal.

    deciding: rows of the lines where b gains most, and where it loses most. gained, lost: words of the references that
    b finds more often than a, and less often, with how much more or less. lengths: chrF2 by length of the reference.
    """

    lines: int
    better: int
    worse: int
    deciding: tuple[list[int], list[int]]
    gained: list[tuple[str, int]]
    lost: list[tuple[str, int]]
    lengths: list[Part]


def contrasts(
    systems: Sequence[Sequence[str]], references: References, config: MetricsConfig, language: str = ""
) -> list[Contrast]:
    """Return how every two of several systems differ, the later from the earlier. config: its tokenizer is used.

    Of more than 5000 lines as many are looked at, evenly spaced.
    """
    from sacrebleu.metrics.bleu import BLEU

    rows = range(0, len(references), -(-len(references) // MOST_LINES))
    looked_at = references.rows(rows)
    texts = [[system[row] for row in rows] for system in systems]
    (metric,) = metrics_of(MetricsConfig(names=["chrf"], bootstrap=0), language)
    statistics = metric.statistics(texts, looked_at)
    line_values = [metric.line_values(each) for each in statistics]
    tokenize = BLEU(tokenize=bleu_tokenizer(config, language)).tokenizer
    wanted = [Counter(tokenize(line).split()) for line in looked_at.lists[0]]
    found = [_found(wanted, system, tokenize) for system in texts]
    lengths = _parts_by_length(looked_at.lists[0], statistics, metric.value, has_spaces(language))
    differing: list[Contrast] = []
    for a, b in combinations(range(len(systems)), 2):
        change = line_values[b] - line_values[a]
        order = np.argsort(change, kind="stable")
        best = [rows[place] for place in order[::-1][:_DECIDING] if change[place] > _EQUAL]
        worst = [rows[place] for place in order[:_DECIDING] if change[place] < -_EQUAL]
        differing.append(
            Contrast(
                len(rows),
                int((change > _EQUAL).sum()),
                int((change < -_EQUAL).sum()),
                (best, worst),
                (found[b] - found[a]).most_common(_WORDS),
                (found[a] - found[b]).most_common(_WORDS),
                [Part(name, count, each[a], each[b]) for name, count, each in lengths],
            )
        )
    return differing


def _found(wanted: Sequence["Counter[str]"], system: Sequence[str], tokenize: Callable[[str], str]) -> "Counter[str]":
    """Return how often a system finds each word. wanted: the words of each line's reference."""
    found = Counter[str]()
    for words, text in zip(wanted, system, strict=True):
        found.update(words & Counter(tokenize(text).split()))
    return found


def _parts_by_length(
    references: Sequence[str], statistics: Sequence[Any], score: Callable[[Any], Any], of_words: bool
) -> list[tuple[str, int, list[float]]]:
    """Return chrF2 of the shortest to the longest quarter of the lines; lines of one length stay together."""
    lengths: Values = np.array([len(line.split() if of_words else line) for line in references])
    ends = np.unique(np.quantile(lengths, np.linspace(0, 1, _QUARTERS + 1)[1:], method="nearest"))
    parts = []
    for low, high in zip([-1, *ends[:-1]], ends, strict=True):
        rows = (lengths > low) & (lengths <= high)
        least = lengths[rows].min()
        span = f"{least:.0f} to {high:.0f}" if least < high else f"{high:.0f}"
        name = f"{span} {'words' if of_words else 'characters'}"
        parts.append((name, int(rows.sum()), [float(score(each[rows].sum(0).tolist())) for each in statistics]))
    return parts
