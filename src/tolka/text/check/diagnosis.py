"""The diagnosis of a corpus: facts and problems counted in one pass, with examples."""

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from tolka.metrics.languages import has_spaces
from tolka.text.check.histogram import Histogram, histograms, quarters
from tolka.text.check.misalignment import Shift, find_shift
from tolka.text.cleaning.cleaner import MarkSet, comparison_form, marks_of, near_key, plain_key
from tolka.text.cleaning.steps import CleaningConfig, Step, apply_changes, steps_of
from tolka.text.direction import Direction
from tolka.text.encodings import conversion, is_utf8, likely_encoding
from tolka.text.languages import certain_language, installed_identifier
from tolka.text.lines import count_and_digest, open_bytes, read_lines
from tolka.text.pairs import FURTHER, NO_PAIR, Pair, PairSource, ParallelFiles, joined_verses
from tolka.text.readers.base import BothSides
from tolka.text.typography import Spelling, own_spellings

_EXAMPLES = 3
_CHUNK_PAIRS = 10_000  # pairs that are compared with the earlier ones at once
_BLOCK_LINES, _UNSURE = 20, "unsure"
_IDENTIFIED_PAIRS = 5_000  # pairs whose language is identified, spread over the text; all would take minutes
# UTF-8 that was decoded as Latin-1 or Windows-1252; Windows-1252 that was decoded as Latin-1, which gives control
# characters (U+0085 also ends lines); and replacement characters.
_BROKEN_ENCODING = re.compile(
    "[\ufffd\u0080-\u0084\u0086-\u009f]|\u00e2\u20ac.|"
    "[\u00c2\u00c3][\u0080-\u00bf\u20ac\u201a\u0192\u201e\u2026\u0152\u0161]"
)
# Problem -> the configuration whose only step drops pairs with it: the check counts what cleaning would drop.
_STEPS = {
    "control or invisible characters": CleaningConfig(control="drop", max_characters=0),
    "markup": CleaningConfig(markup="drop", max_characters=0),
    "over 2000 characters": CleaningConfig(max_characters=2000),
    "one side over 9 times as long": CleaningConfig(max_ratio=9.0, max_characters=0),
    "source copied to the target": CleaningConfig(copies=True, max_characters=0),
    "few letters": CleaningConfig(min_letters=0.5, max_characters=0),
    "numbers that differ": CleaningConfig(numbers=True, max_characters=0),
    "another script": CleaningConfig(script=True, max_characters=0),
}
_WHOLE = "whole pair in the training text"
_SAMPLE_LINES = 129  # that are not UTF-8, by which their encoding is recognised
Tick = Callable[[int], object]


@dataclass
class Finding:
    """One kind of problem, in `count` of the `looked_at` pairs: all of the text, or a sample of them.

    examples: number (from 1), source and target. encoding: that of lines that are not UTF-8, probably.
    conversion: the command that converts their file.
    """

    what: str
    count: int = 0
    looked_at: int = 0
    examples: list[tuple[int, str, str]] = field(default_factory=list)
    encoding: str = ""
    conversion: str = ""

    def add(self, number: int, pair: Pair) -> None:
        """Add a pair to the counts."""
        self.count += 1
        if len(self.examples) < _EXAMPLES:
            self.examples.append((number, pair.source, pair.target))


@dataclass
class SideStatistics:
    """Facts about one language's texts. lengths: minimum, quartiles and maximum, in characters.

    words: None where they are written without blanks between them.
    histogram: of characters, with the same bars for both sides. languages: code -> share of the examined lines that are
    surely in it; "unsure" -> share of those that are surely in none.
    """

    characters: int
    words: int | None
    lengths: list[int]
    histogram: Histogram
    languages: dict[str, float]


@dataclass
class Diagnosis:
    """The diagnosis of one corpus file with both sides, or of two files."""

    name: str
    pairs: int
    source: SideStatistics
    target: SideStatistics
    findings: list[Finding]
    shift: Shift | None


@dataclass
class Leaks:
    """How many held-out sources, and whole pairs, are in the training text, ignoring case, punctuation and spaces."""

    sources: int = 0
    pairs: int = 0
    findings: list[Finding] = field(default_factory=list)


class HeldOut:
    """Validation and test sets, which are compared with each training pair."""

    def __init__(self, sets: Mapping[str, Sequence[Pair]], changes: Sequence[tuple[str, Step]] = ()) -> None:
        """changes: of all texts before they are compared, as in training; from `changes_of`."""
        self._sets, self._changes = sets, changes
        # Source -> set, number, target; both texts in the form in which they are compared.
        self._positions: dict[str, list[tuple[str, int, str]]] = {}
        for name, pairs in sets.items():
            for number, pair in enumerate(pairs, 1):
                source, target = self._comparison_forms(pair)
                self._positions.setdefault(source, []).append((name, number, target))
        # Set -> numbers of its pairs whose source is in the training text, with the same translation and with another.
        self._found: dict[str, tuple[set[int], set[int]]] = {name: (set(), set()) for name in sets}

    def compare(self, pair: Pair) -> None:
        """Compare with a pair of the training text."""
        source, target = self._comparison_forms(pair)
        for name, number, held_out_target in self._positions.get(source, ()):
            self._found[name][held_out_target != target].add(number)

    def _comparison_forms(self, pair: Pair) -> tuple[str, str]:
        changed = apply_changes(pair, self._changes)
        return comparison_form(changed.source), comparison_form(changed.target)

    def leaks(self, names: Iterable[str]) -> Leaks:
        """Return the leaks from these sets."""
        leaks = Leaks()
        for name in names:
            pairs, (same, different) = self._sets[name], self._found[name]
            for what, numbers in ((_WHOLE, same), ("source in the training text, translated otherwise", different)):
                finding = Finding(f"{name}: {what}", looked_at=len(pairs))
                for number in sorted(numbers):
                    finding.add(number, pairs[number - 1])
                leaks.findings += [finding] if numbers else []
            leaks.sources += len(same | different)
            leaks.pairs += len(same)
        return leaks


def overlaps(valid: Sequence[Pair], tests: Mapping[str, Sequence[Pair]]) -> list[Finding]:
    """Return, for each test set that has pairs of the validation set, how many, compared as `Leaks` are."""
    held_out = HeldOut(tests)
    for pair in valid:
        held_out.compare(pair)
    whole = [each for each in held_out.leaks(tests).findings if each.what.endswith(_WHOLE)]
    return [replace(each, what=each.what.replace(_WHOLE, "whole pair in the validation set")) for each in whole]


def diagnose(source: PairSource, direction: Direction, held_out: HeldOut, tick: Tick = lambda pairs: None) -> Diagnosis:
    """Examine one part of a training text; `tick` is called with 1 for each pair.

    Faulty lines become findings: one that is not UTF-8 is read in its likely encoding, one that is not a row is a
    flawed pair, and the surplus lines of the longer of two files are left out. DataError for what cannot be read.
    """
    reader = _LenientReader(source)
    statistics = _Statistics(direction, held_out, min(reader.lines), "line" if source.has_lines else "text")
    number = 0
    for number, pair in enumerate(reader.pairs(), 1):
        statistics.add(number, Pair(pair.source.strip(), pair.target.strip(), pair.flaw))
        tick(1)
    findings = [finding for finding in (*reader.findings(), *statistics.findings()) if finding.count]
    for finding in findings:
        finding.looked_at = finding.looked_at or max(number, finding.count)  # a side may have no line at all
    first, second = (np.array(lengths, dtype=np.float64) for lengths in statistics.lengths)
    shift = find_shift(first, second, statistics.numbers)
    return Diagnosis(source.name, len(first), *statistics.sides(), findings, shift)


class _LenientReader:
    """Reads a source's pairs in spite of faulty lines, which become findings."""

    def __init__(self, source: PairSource) -> None:
        self._source, self._undecoded = source, [Finding("not UTF-8"), Finding("not UTF-8")]
        self._samples = [b"", b""]  # such lines, by which the encoding is recognised
        self._paths = [source.path] if isinstance(source, BothSides) else []
        if isinstance(source, ParallelFiles):
            self._paths = [*source.paths]
            self.lines = [count_and_digest(path, source.limit)[0] for path in source.paths]
        else:
            self.lines = [source.count()] * 2  # about how many pairs there are

    def pairs(self) -> Iterator[Pair]:
        """Yield all pairs."""
        if isinstance(self._source, BothSides):
            source = copy(self._source)
            source.repair = partial(self._repair, 0)
            yield from source.read()
        elif isinstance(self._source, ParallelFiles):
            repairs = (partial(self._repair, side) for side in (0, 1))
            sides = (read_lines(*each, self._source.limit) for each in zip(self._source.paths, repairs, strict=True))
            yield from joined_verses((Pair(*texts) for texts in zip(*sides, strict=False)), max(self.lines))
        else:
            yield from self._source.read()

    def _repair(self, side: int, number: int, line: bytes) -> str:
        finding = self._undecoded[side]
        if finding.count < _SAMPLE_LINES:
            self._samples[side] += line + b"\n"
            # After 0, 1, 2, 4, 8 lines and so on: one line often fits several languages, and recognition takes long.
            if finding.count.bit_count() <= 1:
                finding.encoding = likely_encoding(self._samples[side])
        text = line.decode(finding.encoding, errors="replace")
        finding.add(number, Pair(text, "") if side == 0 else Pair("", text))
        return text

    def findings(self) -> list[Finding]:
        """Return the problems of the files, also those with a count of 0."""
        surplus, longer = self.lines[0] - self.lines[1], "source" if self.lines[0] > self.lines[1] else "target"
        unequal = Finding(f"lines that the {longer} has more than the other side", abs(surplus), max(self.lines))
        names = ("source", "target") if len(self._paths) == 2 else ("line",)
        for finding, name, path in zip(self._undecoded, names, self._paths, strict=False):
            if finding.count:
                with open_bytes(path) as stream:
                    is_mixed = any(is_utf8(line) and not line.isascii() for line in stream)
                finding.conversion = conversion(str(path), finding.encoding, is_mixed=is_mixed)
                finding.what = f"{name} not UTF-8" + (", others are" if is_mixed else "")
        return [unequal, *self._undecoded]


class _Statistics:
    """Facts and problems of the pairs added so far."""

    def __init__(self, direction: Direction, held_out: HeldOut, pairs: int, unit: str) -> None:
        """pairs: about how many there will be. unit: of the file, a line or a text."""
        self.lengths, self.numbers = (array("I"), array("I")), array("I")
        self._words = [0, 0]
        self._held_out = held_out
        self._flawed, self._blank = Finding("a flaw that the file itself names"), Finding("a blank side")
        self._faults: list[tuple[Finding, Callable[[Pair], object]]] = [
            (Finding("broken encoding"), lambda pair: _BROKEN_ENCODING.search(f"{pair.source} {pair.target}")),
            (Finding(f"a carriage return inside a {unit}"), lambda pair: "\r" in pair.source + pair.target),
            *((Finding(what), partial(_is_dropped, steps_of(config, direction))) for what, config in _STEPS.items()),
            *(
                (Finding(f"{side} in another spelling: {spelling.name}"), partial(_is_spelt, side, spelling))
                for side, language in direction._asdict().items()
                for spelling in own_spellings(language)
            ),
        ]
        self._has_words = [has_spaces(language) for language in direction]
        self._repetitions = [
            (Finding("a pair that came before"), plain_key, MarkSet()),
            (Finding("nearly a pair that came before"), near_key, MarkSet()),
        ]
        self._pending: list[tuple[int, Pair]] = []
        self._languages = _Languages(direction, pairs)

    def add(self, number: int, pair: Pair) -> None:
        """Examine one more pair, stripped."""
        # What is read as part of another pair, or is none, says nothing of the text.
        if pair.flaw.startswith((FURTHER, NO_PAIR)):
            self._flawed.add(number, pair)
            return
        self.numbers.append(number)
        for side, text in enumerate((pair.source, pair.target)):
            self.lengths[side].append(len(text))
            self._words[side] += len(text.split())
        if pair.flaw:
            self._flawed.add(number, pair)
        elif not (pair.source and pair.target):
            self._blank.add(number, pair)
        else:
            for finding, has_fault in self._faults:
                if has_fault(pair):
                    finding.add(number, pair)
            self._languages.add(number, pair)
            self._held_out.compare(pair)
            self._pending.append((number, pair))
            if len(self._pending) == _CHUNK_PAIRS:
                self._find_repetitions()

    def _find_repetitions(self) -> None:
        repeated: set[int] = set()
        for finding, key, seen in self._repetitions:
            marks = marks_of([pair for _, pair in self._pending], key)
            for (number, pair), new in zip(self._pending, seen.add(marks).tolist(), strict=True):
                # An exact repetition is not counted as a near one, too.
                if not new and number not in repeated:
                    repeated.add(number)
                    finding.add(number, pair)
        self._pending.clear()

    def findings(self) -> list[Finding]:
        """Return all kinds of problems, also those with a count of 0."""
        self._find_repetitions()
        faults, repetitions = ([each[0] for each in listed] for listed in (self._faults, self._repetitions))
        return [self._flawed, self._blank, *faults, *repetitions, *self._languages.findings]

    def sides(self) -> tuple[SideStatistics, SideStatistics]:
        """Return the facts of each language's texts."""
        lengths = [np.asarray(each) for each in self.lengths]
        sides = list[SideStatistics]()
        for side, (each, histogram) in enumerate(zip(lengths, histograms(*lengths), strict=True)):
            words, languages = self._words[side] if self._has_words[side] else None, self._languages.shares(side)
            sides.append(SideStatistics(int(each.sum()), words, quarters(each), histogram, languages))
        return sides[0], sides[1]


def _is_dropped(steps: Sequence[tuple[str, Step]], pair: Pair) -> bool:
    return any(isinstance(step(pair), str) for _, step in steps)


def _is_spelt(side: str, spelling: Spelling, pair: Pair) -> bool:
    return bool(spelling.is_other(getattr(pair, side)))


class _Languages:
    """Language identification on pairs spread over the text, if py3langid is installed."""

    def __init__(self, direction: Direction, pairs: int) -> None:
        """pairs: about how many there are."""
        self._every = max(1, pairs // _IDENTIFIED_PAIRS)
        self.findings = [Finding(f"{side} surely in another language") for side in ("source", "target")]
        self._expected = direction
        self._identified: tuple[Counter[str], Counter[str]] = (Counter(), Counter())  # language -> lines
        self._blocks: tuple[list[str], list[str]] = ([], [])  # lines that are not identified yet
        self._identifier = installed_identifier()

    def add(self, number: int, pair: Pair) -> None:
        """Identify the languages of a pair, if it is in the sample."""
        if self._identifier is None or number % self._every:
            return
        for side, text in enumerate((pair.source, pair.target)):
            # A short sentence may be in one of many languages: it is joined with the next ones until one is certain. Of
            # 3000 English ones of Tatoeba 39 % were unsure alone, and none in blocks.
            block = self._blocks[side]
            block.append(text)
            language = certain_language(self._identifier.likelihoods(" ".join(block)))
            if language or len(block) == _BLOCK_LINES:
                self._identified[side][language or _UNSURE] += len(block)
                block.clear()
            # Without a sample it stays 0, and the share is that of all pairs.
            self.findings[side].looked_at += self._every > 1
            if self._identifier.is_other(self._identifier.likelihoods(text), self._expected[side]):
                self.findings[side].add(number, pair)

    def shares(self, side: int) -> dict[str, float]:
        """Return the share of each language, the most common first, then of lines that are surely in none."""
        counts = self._identified[side]
        in_order = sorted(counts, key=lambda language: (language == _UNSURE, -counts[language]))
        return {language: counts[language] / counts.total() for language in in_order}
