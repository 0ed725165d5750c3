"""Where the markup of a text belongs in its translation, by the model's own alignment.

A span goes to the words whose alignment is most inside of it: to the run of them that has the largest sum of (share of
its alignment inside of the span - threshold), which is one piece, and inside of the span around it. So no markup is
lost, doubled or unbalanced, wherever the alignment points.

Shapes: T units of the translation, S subwords of the source.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from tolka.documents.text import Node, Text
from tolka.text.scripts import UNSPACED

# A word with its apostrophes and hyphens, a letter of a script without blanks between words, or a mark.
_UNIT = regex.compile(rf"(?V1)[{UNSPACED}]|[\w--[{UNSPACED}]]+(?:['’‑-][\w--[{UNSPACED}]]+)*|[^\w\s]")
_WORD, _LATIN = regex.compile(r"\w"), re.compile(r"[A-Za-z0-9_ .-]+")
_OPENING = " ([{«“‘„¿¡"  # behind which no blank stands
_LEAST = 0.65  # share of the largest share that a word of the span has
# Share of the alignment inside of the span that its words have on average, below which somebody should look: of 402
# spans in translations from English to German 9 % were below it, and half of these were wrong.
_SURE = 0.3
_ALIKE = 0.5  # similarity of kept text and what the model makes of it
_FAINT = 0.1  # share of a word's alignment below which no word of the translation is its own
_WIDTH = 0.15  # of the diagonal that stands for an alignment, in shares of the length


class SoftAlignment(NamedTuple):
    """Soft alignment of a translation. weights: (target subwords, source subwords), each row sums to 1.

    sources, targets: from which to which character each subword is.
    """

    sources: Sequence[tuple[int, int]]
    targets: Sequence[tuple[int, int]]
    weights: NDArray[np.float64]


@dataclass
class _Unit:
    """A word or mark of the translation. kept: the markup that takes its place."""

    start: int
    end: int
    kept: Node | None = None


def place(text: Text, target: str, alignment: SoftAlignment | None) -> list[str]:
    """Write a translation with the markup of its text; return what a person should look at: markup, or kept text.

    alignment: None = a diagonal, whose every use is to be looked at.
    """
    if target == text.source:  # nothing changes, not even how it is written
        return []
    placing = _Placing(text, target, alignment)
    # Most texts have no markup, for which the words of the translation are not needed.
    last = len(placing.units) if text.nodes else 0
    text.written = text.finish(placing.render(text.nodes, 0, len(target), 0, last))
    return sorted({*placing.doubts})


def lacks_kept_text(text: Text, target: str) -> bool:
    """Return whether a translation lacks kept text."""
    return any(not any(_matches(node.code.text, target)) for node in all_kept(text.nodes))


def needs_alignment(text: Text, target: str) -> bool:
    """Return whether anything in a text has no place in its translation that is clear without an alignment."""
    # A code is in the translation once, or it has no place of its own; where two are alike, either will do.
    return any(node.kind != "kept" or not any(_matches(node.code.text, target)) for node in text.nodes)


class _Placing:
    """The places of one text's markup in its translation."""

    def __init__(self, text: Text, target: str, alignment: SoftAlignment | None) -> None:
        self._text, self._target, self._alignment = text, target, alignment
        self._fixed, self.doubts = text.arrange(target)

    # Most texts have no markup, and need none of these.
    @cached_property
    def units(self) -> list[_Unit]:
        """The words and marks of the translation."""
        return _units(self._target, all_kept(self._text.nodes))

    @cached_property
    def _are_words(self) -> NDArray[np.bool_]:
        units = ((unit, _WORD.search(self._target, unit.start, unit.end)) for unit in self.units)
        return np.array([bool(unit.kept or word) for unit, word in units], bool)

    @cached_property
    def _sources(self) -> NDArray[np.int64]:
        """The source's subwords: from which to which character, (S, 2)."""
        sources = self._alignment.sources if self._alignment else [m.span() for m in _UNIT.finditer(self._text.source)]
        return np.array(sources, np.int64).reshape(-1, 2)

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        """The alignment of each unit to each subword of the source, (T, S); each row sums to 1."""
        spans = np.array([(unit.start, unit.end) for unit in self.units], np.int64).reshape(-1, 2)
        if self._alignment:
            targets = np.array(self._alignment.targets, np.int64).reshape(-1, 2)
            weights = np.stack([_overlap(targets, *span) for span in spans]) @ self._alignment.weights
        else:  # a diagonal: each to those at about the same share of the length
            rows = spans.mean(axis=1) / max(len(self._target), 1)
            columns = self._sources.mean(axis=1) / max(len(self._text.source), 1)
            weights = np.exp(-(((rows[:, None] - columns) / _WIDTH) ** 2))
        self._copy_rows(weights)
        weights /= weights.sum(axis=1, keepdims=True).clip(min=1e-9)
        return weights

    def _copy_rows(self, weights: NDArray[np.float64]) -> None:
        """Align words that both sides have once, as names and numbers, to themselves, and kept text to its place."""
        words = [(match[0].casefold(), match.span()) for match in _UNIT.finditer(self._text.source)]
        of_source = Counter(word for word, _ in words)
        places, targets = dict(words), [self._target[unit.start : unit.end].casefold() for unit in self.units]
        of_target = Counter(targets)
        for unit, row, word in zip(self.units, weights, targets, strict=True):
            span = places.get(word) if of_source[word] == of_target[word] == 1 else None
            if unit.kept:
                span = unit.kept.start, unit.kept.end
            if span:
                row[:] = _overlap(self._sources, *span)

    def _shares(self, start: int, end: int) -> NDArray[np.float64]:
        """Return the share of each unit's alignment that is between two characters of the source, (T,)."""
        overlap = _overlap(self._sources, start, end) / np.diff(self._sources)[:, 0].clip(min=1)
        inside = np.flatnonzero(overlap)  # few of thousands, in a long text
        shares: NDArray[np.float64] = self._weights[:, inside] @ overlap[inside]
        return shares

    def render(self, nodes: Sequence[Node], start: int, end: int, first: int, last: int) -> str:
        """Return the translation from one character to another with the markup that belongs there.

        first, last: the units of that part.
        """
        if not nodes:
            return self._characters(start, end)
        free = np.zeros(len(self.units), bool)
        free[first:last] = True
        placed: list[tuple[int, int, str]] = []
        # What the model has copied is at a known place, and spans take the words that they are of from what is left.
        for node in sorted(nodes, key=lambda each: ("kept", "span", "point").index(each.kind)):
            run = self._run(node, free) if node.kind != "point" and free.any() else None
            if run is None:
                at = self._beside(node, start, end, first, last)
                placed.append((at, at, self._spaced(node, at)))
                continue
            free[slice(*run)] = False
            a, b = self.units[run[0]].start, self.units[run[1] - 1].end
            inside = "" if node.kind == "kept" else self.render(node.children, a, b, *run)
            placed.append((a, b, f"{node.code}{inside}{node.close or ''}"))
        parts, cursor = list[str](), start
        for a, b, written in sorted(placed, key=lambda each: each[:2]):
            parts += [self._characters(cursor, max(a, cursor)), written]
            cursor = max(b, cursor)
        return "".join([*parts, self._characters(cursor, end)])

    def _spaced(self, node: Node, at: int) -> str:
        """Return markup that stands at a character of the translation, with blanks if it has some in the source."""
        source = self._text.source
        is_apart = " " in source[max(node.start - 1, 0) : node.start] + source[node.end : node.end + 1]
        if not (node.code.spaced or (node.kind == "kept" and is_apart)):
            return str(node)
        before, behind = self._target[max(at - 1, 0) : at], self._target[at : at + 1]
        is_joined = bool(before) and before not in _OPENING, bool(_WORD.match(behind))
        blank = self._text.escape(" ")
        return f"{blank * is_joined[0]}{node}{blank * is_joined[1]}"

    def _characters(self, start: int, end: int) -> str:
        """Return the characters of a part of the translation, and what stands there at fixed places."""
        parts = list[str]()
        for a, b, written in self._fixed:
            if start <= a < end:
                parts += [self._text.escape(self._target[start:a]), written]
                start = b
        return "".join([*parts, self._text.escape(self._target[start:end])])

    def _run(self, node: Node, free: NDArray[np.bool_]) -> tuple[int, int] | None:
        """Return the units that a span or kept text takes, the first and the one behind the last; None if none does."""
        for number, unit in enumerate(self.units):
            if unit.kept is node and free[number]:
                return number, number + 1
        source, shares = self._text.source, self._shares(node.start, node.end)
        least = _LEAST * shares[free].max()
        # Marks attend to anything: they neither begin a run nor part it.
        shares[~self._are_words] = least
        first, last = _best_run(np.where(free, shares - least, -np.inf))
        is_sure = self._alignment is not None and shares[first:last].mean() >= _SURE
        if node.kind == "kept" or not is_sure:
            self.doubts.append("kept_text" if node.kind == "kept" else "markup")
        # Only words that the model has made of kept text give way to it, and none of the translation's own.
        made = self._target[self.units[first].start : self.units[last - 1].end].lower()
        is_remnant = node.kind == "kept" and SequenceMatcher(None, node.code.text.lower(), made).ratio() >= _ALIKE
        if node.kind == "kept" and not (is_sure and is_remnant):
            return None
        if not _WORD.match(source[node.end - 1]) and last < len(free) and free[last] and not self._are_words[last]:
            last += 1
        if not _WORD.match(source[node.start]) and first and free[first - 1] and not self._are_words[first - 1]:
            first -= 1
        return first, last

    def _beside(self, node: Node, start: int, end: int, first: int, last: int) -> int:
        """Return the character before which markup stands: behind the word before it, or before the one behind it."""
        source = self._text.source
        if node.end == 0 or first == last:
            return start
        if node.start == len(source):
            return end
        if self._alignment is None:
            self.doubts.append("markup")
        words = [match.span() for match in _UNIT.finditer(source) if _WORD.match(match[0])]
        before = [(word, True) for word in words if word[0] < node.start][-1:]
        behind = [(word, False) for word in words if word[1] > node.end][:1]
        # A blank parts it from the word that it does not belong to.
        is_behind = node.kind == "kept" or source[node.start - 1 : node.start] not in ("", " ")
        for word, is_before_it in before + behind if is_behind else behind + before:
            shares = self._shares(*word)[first:last]
            if shares.max() >= _FAINT:
                number = first + int(shares.argmax())
                if not is_before_it:
                    return self.units[number].start
                # Behind a mark here as well, if one is there: an alignment of marks would be a loose one.
                is_mark = not _WORD.match(source[node.start - 1]) and source[node.start - 1] != " "
                while is_mark and number + 1 < last and not self._are_words[number + 1]:
                    number += 1
                return self.units[number].end
        return end


def _best_run(values: NDArray[np.float64]) -> tuple[int, int]:
    """Return the run with the largest sum, the shortest of several: its first and the one behind its last."""
    best, run, total, start = -np.inf, (0, 1), 0.0, 0
    for number, value in enumerate(values):
        if total <= 0:
            total, start = 0.0, number
        total += value
        if total > best:
            best, run = total, (start, number + 1)
    return run


def _units(target: str, kept: Sequence[Node]) -> list[_Unit]:
    """Return the words and marks of a translation; kept text that it has is one of them, in the order of the source."""
    copied: list[_Unit] = []
    for node in sorted(kept, key=lambda each: -len(each.code.text)):  # a short one may be a part of a long one
        for found in _matches(node.code.text, target):
            if not any(unit.start < found.end() and found.start() < unit.end for unit in copied):
                copied.append(_Unit(*found.span(), node))
                break
    copied.sort(key=lambda unit: unit.start)
    units, cursor = list[_Unit](), 0
    for unit in [*copied, _Unit(len(target), len(target))]:
        units += [_Unit(*match.span()) for match in _UNIT.finditer(target, cursor, unit.start)]
        units += [unit] if unit.kept else []
        cursor = unit.end
    return units


def _matches(kept: str, target: str) -> "Iterator[re.Match[str]]":
    """Return the matches of kept text in a translation, not as a part of a longer word of such letters."""
    pattern = r"\s+".join(map(re.escape, kept.split()))
    # Words of other letters may follow, as Korean has no blank before a particle, and any behind a mark (%zuKB).
    if _LATIN.fullmatch(kept):
        pattern = rf"(?<![A-Za-z0-9_]){pattern}(?![A-Za-z0-9_])"
    return re.finditer(pattern, target, re.IGNORECASE)  # its own letters are written


def all_kept(nodes: Sequence[Node]) -> list[Node]:
    """Return the kept parts among markup and inside of it, in the order of the source."""
    return [each for node in nodes for each in ([node] if node.kind == "kept" else all_kept(node.children))]


def _overlap(spans: NDArray[np.int64], start: int, end: int) -> NDArray[np.float64]:
    """Return how many characters each span has between two characters. spans: (N, 2)."""
    return (np.minimum(spans[:, 1], end) - np.maximum(spans[:, 0], start)).clip(min=0).astype(np.float64)
