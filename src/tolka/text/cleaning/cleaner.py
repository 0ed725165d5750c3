"""Cleaning: pairs are changed or dropped, and counted by reason."""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import regex

from tolka.errors import DataError
from tolka.system.number_format import count_text
from tolka.text.cleaning.steps import CleaningConfig, apply_changes, blank_sides, changes_of, drop_if, steps_of
from tolka.text.direction import UNKNOWN, Direction
from tolka.text.pairs import Pair, PairSource

_ALL_CHANGES = changes_of(CleaningConfig(unicode="nfc", control="strip", markup="strip"))
_BETWEEN_WORDS_ASCII = re.compile(r"[\W_]+")
# Combining marks (M), such as vowel signs in Hindi and tones in Thai, belong to the character before them: kept after a
# letter, else removed. Default ignorable characters (DI: joiners, variation selectors) are invisible.
_BETWEEN_WORDS = regex.compile(r"(?:\p{DI}|[^\p{L}\p{M}\p{N}]\p{M}*)+")


@dataclass
class Tally:
    """Counts of pairs: kept, dropped by reason, and kept with a change."""

    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: "Tally") -> "Tally":
        """Return the tally of two parts together."""
        return Tally(self.kept + other.kept, self.dropped + other.dropped, self.changed + other.changed)

    @property
    def total(self) -> int:
        """Number of all pairs."""
        return self.kept + self.dropped.total()

    def summary(self) -> str:
        """Return one phrase: '29000 pairs, 28998 kept, 2 left out: 2 blank source'."""
        text = f"{count_text(self.total, 'pair')}, {self.kept} kept"
        if self.dropped:
            reasons = ", ".join(f"{n} {why}" for why, n in sorted(self.dropped.items()))
            text += f", {self.dropped.total()} left out: {reasons}"
        if self.changed:
            text += "; changed: " + ", ".join(f"{n} {change}" for change, n in sorted(self.changed.items()))
        return text

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for a JSON file."""
        return {"kept": self.kept, "dropped": dict(self.dropped), "changed": dict(self.changed)}

    @classmethod
    def of(cls, values: Any) -> "Tally":
        """Return the tally from the values that `as_dict` returned."""
        return cls(int(values["kept"]), Counter(values["dropped"]), Counter(values["changed"]))


Reject = Callable[[tuple[Pair, str]], object]
"""Called with a dropped pair and the reason."""
Marks = frozenset[bytes]
"""Keys of held-out text."""


def judge(
    pairs: Iterable[Pair],
    config: CleaningConfig,
    direction: Direction,
    tally: Tally,
    reject: Reject = lambda rejected: None,
    held_out: Marks = frozenset(),
    set_aside: Marks = frozenset(),
) -> Iterator[Pair]:
    """Yield the pairs that no step drops, duplicates included, stripped; count dropped and changed pairs in `tally`.

    held_out, set_aside: `held_out_marks` and `set_aside_marks` of pairs that training must not see.
    """
    steps = steps_of(config, direction)
    # After the changes, as held-out pairs are changed alike before they are compared.
    if config.leaks != "keep":
        key = _LEAK_KEYS[config.leaks]
        steps.append(("", drop_if(lambda pair: key(pair) in held_out, f"held-out {config.leaks}")))
    for raw in pairs:
        pair = Pair(raw.source.strip(), raw.target.strip())
        reason = raw.flaw or set_aside_reason(raw, set_aside)
        changes = []
        for name, step in steps if not reason else ():
            result = step(pair)
            if isinstance(result, str):
                reason = result
                break
            # A step returns the pair itself where it has nothing to change.
            if result is not pair:
                changes.append(name)
            pair = result
        if reason:
            tally.dropped[reason] += 1
            reject((raw, reason))
        else:
            tally.changed.update(changes)
            yield pair


def held_out_marks(config: CleaningConfig, pairs: Iterable[Pair], direction: Direction = UNKNOWN) -> Marks:
    """Return the marks of validation and test pairs, rewritten as the training text is."""
    key, changes = _LEAK_KEYS.get(config.leaks), changes_of(config, direction)
    return frozenset(key(apply_changes(pair, changes)) for pair in pairs) if key else frozenset()


def set_aside_marks(pairs: Iterable[Pair]) -> Marks:
    """Return the marks of pairs that were held out of the training text."""
    return frozenset(key for pair in pairs for key in _side_keys(pair))


def set_aside_reason(pair: Pair, marks: Marks) -> str:
    """Return the reason to leave a pair out for these `set_aside_marks`; "" if there is none."""
    if not marks:
        return ""
    source, target = (key in marks for key in _side_keys(pair))
    if source and target:
        return "set aside"
    return "source set aside" if source else "target set aside" if target else ""


def _side_keys(pair: Pair) -> tuple[bytes, bytes]:
    # Without markup and control characters whatever the cleaning is: the sets are the same with any.
    pair = apply_changes(pair, _ALL_CHANGES)
    return _mark(f"source\n{comparison_form(pair.source)}"), _mark(f"target\n{comparison_form(pair.target)}")


def duplicate_key(config: CleaningConfig) -> Callable[[Pair], bytes] | None:
    """Return the function that maps duplicates to the same key; None where duplicates are kept."""
    return {"exact": plain_key, "near": near_key}.get(config.duplicates)


def duplicate_reason(config: CleaningConfig) -> str:
    """Return the reason given for dropping a duplicate."""
    return "duplicate" if config.duplicates == "exact" else "near duplicate"


def marks_of(pairs: Sequence[Pair], key: Callable[[Pair], bytes]) -> npt.NDArray[np.uint64]:
    """Return the 8-byte key of each pair, (pairs,)."""
    # 64 bits: among a hundred million pairs, one is taken for a duplicate by chance with a probability of 0.03 %.
    return np.frombuffer(bytearray().join(map(key, pairs)), dtype=np.uint64)


class MarkSet:
    """A set of 64-bit marks in sorted arrays, each twice as long as the next or longer: 8 bytes per mark."""

    def __init__(self) -> None:
        self._levels: list[npt.NDArray[np.uint64]] = []

    def add(self, marks: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Add marks (n,); return (n,), true where a mark occurs for the first time."""
        # In sorted order, with the position of the first of equal marks: of duplicates, the first pair is kept.
        values, first = np.unique(marks, return_index=True)
        known = np.zeros(len(values), dtype=np.bool_)
        for level in self._levels:
            positions = np.searchsorted(level, values)
            # A mark above all of the level's: position 0 is as good as any that holds another mark.
            positions[positions == len(level)] = 0
            known |= level[positions] == values
        self._merge(values[~known])
        new = np.zeros(len(marks), dtype=np.bool_)
        new[first[~known]] = True
        return new

    def _merge(self, values: npt.NDArray[np.uint64]) -> None:
        # As in a log-structured merge tree: n marks have at most log2(n) levels to search, and each mark is sorted
        # again at most as often.
        while self._levels and len(self._levels[-1]) < 2 * len(values):
            values = np.concatenate([self._levels.pop(), values])
            values.sort()
        if len(values):
            self._levels.append(values)


def plain_key(pair: Pair) -> bytes:
    """Return 8 bytes that identify the pair."""
    return _mark(f"{pair.source}\n{pair.target}")


def near_key(pair: Pair) -> bytes:
    """Return 8 bytes that identify the pair without case, punctuation and spaces."""
    return _mark(f"{comparison_form(pair.source)}\n{comparison_form(pair.target)}")


def _mark(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


_LEAK_KEYS: dict[str, Callable[[Pair], bytes]] = {
    "pair": near_key,
    "source": lambda pair: _mark(comparison_form(pair.source)),
}  # by CleaningConfig.leaks


def comparison_form(text: str) -> str:
    """Return the letters, combining marks and digits, in lower case, composed; the text itself if it has none."""
    if text.isascii():
        # The same result as below in half the time.
        return _BETWEEN_WORDS_ASCII.sub("", text.casefold()) or text
    # casefold turns the Turkish İ into i and a combining dot.
    folded = text.casefold().replace("i\u0307", "i")
    return str(_BETWEEN_WORDS.sub("", unicodedata.normalize("NFC", folded))) or text


def read_held_out(sources: Iterable[PairSource], name: str, *, keeps_blank: bool) -> tuple[list[Pair], Tally]:
    """Return a validation or test set without its flawed pairs; DataError if no pair has text on both sides.

    keeps_blank: whether pairs with a blank side stay.
    """
    # A score is for the whole set: no step of the run's cleaning is applied.
    tally, pairs = Tally(), []
    for raw in chain.from_iterable(source.read() for source in sources):
        pair = Pair(raw.source.strip(), raw.target.strip())
        if reason := raw.flaw or ("" if keeps_blank else blank_sides(pair)):
            tally.dropped[reason] += 1
        else:
            pairs.append(pair)
    tally.kept = len(pairs)
    if not any(pair.source and pair.target for pair in pairs):
        raise DataError(f"no pair of {name} has text on both sides ({tally.summary()}); check that file")
    return pairs, tally
