"""What is taken out of a text, and which pairs are left out: counted, by reason. Pairs are kept or dropped together."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tolka.errors import DataError
from tolka.text.cleaning_steps import CleaningConfig, Step, steps_of
from tolka.text.corpus import Pair, PairSource, in_chunks
from tolka.text.seen import Seen

_CHUNK = 10_000  # pairs that are looked up among those seen before at once
_LETTERS_AND_DIGITS = re.compile(r"[\W_]+")


@dataclass
class Tally:
    """What became of pairs: how many are kept, dropped by reason, and kept with something taken out."""

    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """All pairs."""
        return self.kept + self.dropped.total()

    def summary(self) -> str:
        """One phrase: '29000 pairs, 28998 kept, 2 left out: 2 blank source'."""
        text = f"{self.total} pairs, {self.kept} kept"
        if self.dropped:
            reasons = ", ".join(f"{n} {why}" for why, n in sorted(self.dropped.items()))
            text += f", {self.dropped.total()} left out: {reasons}"
        if self.changed:
            text += "; of those kept: " + ", ".join(f"{n} {what}" for what, n in sorted(self.changed.items()))
        return text

    def as_dict(self) -> dict[str, Any]:
        """For a JSON file."""
        return {"kept": self.kept, "dropped": dict(self.dropped), "changed": dict(self.changed)}

    @classmethod
    def of(cls, values: Any) -> "Tally":
        """From what `as_dict` gave."""
        return cls(int(values["kept"]), Counter(values["dropped"]), Counter(values["changed"]))


Reject = Callable[[Pair, str], object]


def clean(
    pairs: Iterable[Pair],
    config: CleaningConfig,
    languages: tuple[str, str],
    tally: Tally,
    reject: Reject = lambda pair, reason: None,
) -> Iterator[Pair]:
    """The pairs that are kept, stripped of surrounding blanks; adds all of them to the tally.

    reject: is told each pair that is dropped, with the reason. Duplicates cost 16 bytes of memory a pair at most.
    """
    steps = steps_of(config, languages)
    if config.duplicates == "keep":
        for pair in _judged(pairs, steps, tally, reject):
            tally.kept += 1
            yield pair
        return
    key = plain_key if config.duplicates == "exact" else near_key
    seen = Seen()
    for chunk in in_chunks(_judged(pairs, steps, tally, reject), _CHUNK):
        marks = np.frombuffer(b"".join(key(pair) for pair in chunk), dtype=np.uint64)
        for pair, new in zip(chunk, seen.add(marks).tolist(), strict=True):
            if new:
                tally.kept += 1
                yield pair
            else:
                reason = "duplicate" if config.duplicates == "exact" else "near duplicate"
                tally.dropped[reason] += 1
                reject(pair, reason)


def _judged(pairs: Iterable[Pair], steps: list[tuple[str, Step]], tally: Tally, reject: Reject) -> Iterator[Pair]:
    """The pairs that no step drops."""
    for pair in pairs:
        found: Pair | str = Pair(pair.source.strip(), pair.target.strip())
        reason = pair.flaw
        for what, step in steps if not reason else ():
            before = found
            assert isinstance(before, Pair)
            found = step(before)
            if isinstance(found, str):
                reason = found
                break
            if found is not before:
                tally.changed[what] += 1
        if reason:
            tally.dropped[reason] += 1
            reject(pair, reason)
        elif isinstance(found, Pair):
            yield found


def plain_key(pair: Pair) -> bytes:
    """Eight bytes that only the same pair has, as good as surely."""
    return hashlib.blake2b(f"{pair.source}\n{pair.target}".encode(), digest_size=8).digest()


def near_key(pair: Pair) -> bytes:
    """The same of what is left of case, marks and blanks."""
    return hashlib.blake2b(f"{bare(pair.source)}\n{bare(pair.target)}".encode(), digest_size=8).digest()


def bare(text: str) -> str:
    """Its letters and digits, small; the text itself where there are none."""
    return _LETTERS_AND_DIGITS.sub("", text.casefold()) or text


def read_split(sources: Sequence[PairSource], what: str) -> tuple[list[Pair], Tally]:
    """A validation or test set in memory; what has a blank side, or a flaw that its reader knows of, is left out.

    Nothing else is ever left out of what is scored. DataError when nothing remains.
    """
    tally = Tally()
    raw = (pair for source in sources for pair in source.read())
    pairs = list(clean(raw, CleaningConfig(max_characters=0), ("", ""), tally))
    if not pairs:
        raise DataError(f"no pair of {what} is left after cleaning ({tally.summary()}); check that file")
    return pairs, tally
