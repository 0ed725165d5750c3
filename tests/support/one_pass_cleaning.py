"""Cleaning in one pass, of what preparation does shard by shard: the steps, then duplicates."""

from collections.abc import Iterable, Iterator

from tolka.text.cleaning.cleaner import Marks, MarkSet, Reject, Tally, duplicate_key, duplicate_reason, judge, marks_of
from tolka.text.cleaning.steps import CleaningConfig
from tolka.text.direction import Direction
from tolka.text.pairs import Pair


def clean(
    pairs: Iterable[Pair],
    config: CleaningConfig,
    direction: Direction,
    tally: Tally,
    reject: Reject = lambda rejected: None,
    held_out: Marks = frozenset(),
) -> Iterator[Pair]:
    """Yield the pairs that are kept; count all pairs in `tally`."""
    judged = list(judge(pairs, config, direction, tally, reject, held_out))
    key = duplicate_key(config)
    is_new = MarkSet().add(marks_of(judged, key)).tolist() if key else [True] * len(judged)
    for pair, new in zip(judged, is_new, strict=True):
        if new:
            tally.kept += 1
            yield pair
        else:
            tally.dropped[duplicate_reason(config)] += 1
            reject((pair, duplicate_reason(config)))
