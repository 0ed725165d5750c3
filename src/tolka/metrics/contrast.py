"""How two systems differ: line by line, in which words each finds, and on which lengths of lines.

L lines. Words are those of BLEU's tokenizer for the language; a word of a reference is found if a translation has it,
as often as the reference does. With several references, the first is looked at.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from operator import and_
from typing import Any

import numpy as np
import regex

from tolka.metrics.languages import bleu_tokenizer, has_spaces
from tolka.metrics.metric import References, Values
from tolka.metrics.options import MetricsConfig
from tolka.metrics.scores import metrics_of

MOST_LINES = 5000
Gram = tuple[str, ...]
_DECIDING, _GRAMS, _LONGEST = 3, 8, 4  # lines and n-grams that are shown for each side, and the longest of these
_EQUAL = 1e-9  # difference of chrF2 of a line up to which it counts as none
_QUARTERS = 4
_COMMON = 10  # times in the test set from which on a word is common
_NUMBER, _MARK, _NAME = regex.compile(r"\p{N}"), regex.compile(r"^[\p{P}\p{S}]+$"), regex.compile(r"^\p{Lu}")


@dataclass(frozen=True)
class Part:
    """A part of a test set: what it is, how many lines or words it has, and the score of each of two systems."""

    name: str
    count: int
    a: float
    b: float


@dataclass(frozen=True)
class Contrast:
    """How b differs from a. lines: looked at. better, worse: of these, by chrF2; the others are equal.

    deciding: rows of the lines where b gains most, and where it loses most. gained, lost: n-grams of the references
    that one system finds more often than the other, with how much more often. lengths: chrF2 by length of the
    reference. words: the share of the references' words that is found, in percent, by kind and by frequency.
    """

    lines: int
    better: int
    worse: int
    deciding: tuple[list[int], list[int]]
    gained: list[tuple[str, int]]
    lost: list[tuple[str, int]]
    lengths: list[Part]
    words: list[Part]


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
    found = _Found(texts, looked_at.lists[0], BLEU(tokenize=bleu_tokenizer(config, language)).tokenizer)
    lengths = _parts_by_length(looked_at.lists[0], statistics, metric.value, has_spaces(language))
    words = found.shares()
    differing: list[Contrast] = []
    for a, b in combinations(range(len(systems)), 2):
        change = line_values[b] - line_values[a]
        order = np.argsort(change, kind="stable")
        best = [rows[place] for place in order[::-1][:_DECIDING] if change[place] > _EQUAL]
        worst = [rows[place] for place in order[:_DECIDING] if change[place] < -_EQUAL]
        parts = ([Part(name, n, each[a], each[b]) for name, n, each in listed] for listed in (lengths, words))
        differing.append(
            Contrast(
                len(rows),
                int((change > _EQUAL).sum()),
                int((change < -_EQUAL).sum()),
                (best, worst),
                _most(found.grams[b] - found.grams[a]),
                _most(found.grams[a] - found.grams[b]),
                *parts,
            )
        )
    return differing


def _most(counts: "Counter[Gram]") -> list[tuple[str, int]]:
    """Return the n-grams with the largest counts, longer ones in place of what they consist of."""
    chosen: list[tuple[Gram, int]] = []
    # Of equal counts the longest says most; one that only repeats a part of it says nothing new.
    for gram, count in sorted(counts.items(), key=lambda each: (-each[1], -len(each[0]), each[0])):
        if len(chosen) == _GRAMS:
            break
        if not any(f" {' '.join(gram)} " in f" {' '.join(longer)} " for longer, _ in chosen):
            chosen.append((gram, count))
    return [(" ".join(gram), count) for gram, count in chosen]


class _Found:
    """wanted: how often the references have each word. words: of each system, how many of them it finds.

    grams: of each system, the n-grams that it finds, less what all of them find.
    """

    def __init__(
        self, systems: Sequence[Sequence[str]], references: Sequence[str], tokenize: Callable[[str], str]
    ) -> None:
        """Count what the systems find, line by line."""
        self.wanted = Counter[str]()
        self.words = [Counter[str]() for _ in systems]
        self.grams = [Counter[Gram]() for _ in systems]
        for reference, *texts in zip(references, *systems, strict=True):
            tokens = tokenize(reference).split()
            self.wanted.update(tokens)
            cut = [tokenize(text).split() for text in texts]
            for own, found in zip(cut, self.words, strict=True):
                found.update(Counter(tokens) & Counter(own))
            if len({*texts}) > 1:  # else it says nothing of how they differ
                expected = _n_grams(tokens)
                matched = [expected & _n_grams(own) for own in cut]
                common = reduce(and_, matched)
                for each, mine in zip(self.grams, matched, strict=True):
                    each.update(mine - common)

    def shares(self) -> list[tuple[str, int, list[float]]]:
        """Return kinds of words, how many of each kind there are, and the percentage of them that each system finds."""
        kinds: dict[str, Callable[[str], object]] = {
            "numbers": _NUMBER.search,
            "punctuation": _MARK.match,
            "with a capital": _NAME.match,
            "once in the test set": lambda word: self.wanted[word] == 1,
            f"2 to {_COMMON - 1} times": lambda word: 1 < self.wanted[word] < _COMMON,
            f"{_COMMON} times or more": lambda word: self.wanted[word] >= _COMMON,
        }
        shares = []
        for name, belongs in kinds.items():
            chosen = [word for word in self.wanted if belongs(word)]
            if total := sum(self.wanted[word] for word in chosen):
                shares.append((name, total, [100 * sum(each[word] for word in chosen) / total for each in self.words]))
        return shares


def _n_grams(tokens: Sequence[str]) -> "Counter[Gram]":
    sizes = range(1, _LONGEST + 1)
    return Counter(tuple(tokens[start : start + size]) for size in sizes for start in range(len(tokens) + 1 - size))


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
