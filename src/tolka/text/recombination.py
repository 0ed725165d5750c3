"""Sentences made of two: the beginning of one and the end of another that has the same word at the seam.

Most are nearly grammatical, and none was read before: what a model makes of them shows a student more of its teacher
than the training text can. Andreas (2020, arXiv:1904.09545) recombines pairs of sentences by such contexts.
"""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence

_TRIES = 20  # for a sentence that is new


def recombine(lines: Sequence[str], count: int, joiner: str = " ") -> Iterator[str]:
    """Yield up to `count` different sentences that are none of `lines`; the same ones at each call.

    joiner: what is between two words; "" = each character is one.
    """
    rng = random.Random(1)
    rows = [row for line in lines if len(row := line.split(joiner) if joiner else [*line]) > 1]
    places = defaultdict[str, list[tuple[int, int]]](list)
    for number, row in enumerate(rows):
        for place, word in enumerate(row):
            places[word].append((number, place))
    known, made = {*lines}, 0
    for _ in range(_TRIES * count if rows else 0):
        row = rng.choice(rows)
        seam = rng.randrange(1, len(row))
        other, place = rng.choice(places[row[seam]])
        text = joiner.join([*row[:seam], *rows[other][place:]])
        if place and text not in known:
            known.add(text)
            made += 1
            yield text
            if made == count:
                return
