"""Validation and test sets held out of the training text, where a corpus has none of its own.

The sets are plain files beside the token stores. Every training pair with the source or the target of a held-out pair
is left out by `tolka.text.cleaning.cleaner.judge`. In running text, and in a sorted list, a line says much about its
neighbours: blocks of such a text are held out, as a line between training lines would flatter the score.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import chain, islice, pairwise, product
from pathlib import Path

from tolka.errors import DataError
from tolka.system.atomic import one_at_a_time, whole_folder
from tolka.system.progress import Say, bar, silent
from tolka.text.cleaning.cleaner import Marks, set_aside_marks, set_aside_reason
from tolka.text.cleaning.steps import CleaningConfig, steps_of
from tolka.text.corpora.base import Corpus, SetSize
from tolka.text.direction import UNKNOWN, Direction
from tolka.text.pairs import Pair, PairSource, ParallelFiles

_FORMAT = 2
_NOTE = "note.txt"
_HASHES = 2**64
_MAX_AUTO_SIZE = 2000
_BLOCK = 20  # lines; at most 256, which are told apart by the last bits of a hash
# Share of neighbouring pairs with a rare word in common, less that of distant ones, from which on they belong together:
# 0.00 to 0.02 in shuffled corpora (Multi30k, Tatoeba, LibreOffice), 0.05 (Korean) and 0.32 in FLORES, 0.14 and more in
# sorted ones.
_TOGETHER, _LOOKED_AT, _RARE = 0.04, 20_000, 0.005
_WORD = re.compile(r"\w{4,}")
# The filter for held-out pairs does not depend on the run's cleaning: runs with different cleaning are scored on the
# same sets.
_FILTER = CleaningConfig(control="drop", max_characters=2000, max_ratio=9.0)


def hold_out_sets(corpus: Corpus, cache: Path, say: Say = silent) -> tuple[Corpus, Path]:
    """Return the corpus with the sets that corpus.sizes asks for, and the folder under `cache` with their files.

    There is a set for each direction. say: is given notes. DataError where the text has too few pairs for them.
    """
    folder = cache / f"held-out-{_key(corpus)}"
    if not folder.is_dir():
        lock = cache / f".{folder.name}.lock"
        with one_at_a_time(lock, lambda: say("waiting for another process that chooses held-out pairs")):
            if not folder.is_dir():
                _write(corpus, folder)
    if note := (folder / _NOTE).read_text(encoding="utf-8"):
        say(note)
    sets: dict[str, list[PairSource]] = {name: [] for name in corpus.sizes}
    for name, direction in product(corpus.sizes, corpus.directions):
        source, target = _file_names(name, direction, corpus)
        sets[name].append(ParallelFiles(folder / source, folder / target, name))
        sets[name][-1].direction = direction
    return replace(corpus, valid=sets.get("valid", corpus.valid), tests=sets.get("test", corpus.tests)), folder


def _file_names(name: str, direction: Direction, corpus: Corpus) -> list[str]:
    """Return the names of both files of a set, which of several directions has one in it."""
    apart = f".{direction.code}" if len(corpus.directions) > 1 else ""
    return [f"{name}{apart}.{language}" for language in direction]


def _key(corpus: Corpus) -> str:
    directions = corpus.directions
    settings = {
        "format": _FORMAT,
        "text": corpus.fingerprint(),
        "languages": directions if len(directions) > 1 else directions[0],
        "sizes": {name: size.value for name, size in corpus.sizes.items()},
        "given": [source.fingerprint() for source in (*corpus.valid, *corpus.tests)],
    }
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


def _write(corpus: Corpus, folder: Path) -> None:
    texts = {each: [source for source in corpus.train if source.direction == each] for each in corpus.directions}
    given = chain.from_iterable(source.read() for source in (*corpus.valid, *corpus.tests))
    excluded = set_aside_marks(corpus.seen_in(given))
    sets, shares = {}, {direction: _in_common(texts[direction]) for direction in texts} if corpus.sizes else {}
    in_blocks = {each for each, (near, far) in shares.items() if near - far > _TOGETHER}
    for (name, size), direction in product(sorted(corpus.sizes.items()), texts):  # test before valid
        sets[name, direction] = _choose(texts[direction], name, size, excluded, direction in in_blocks)
        excluded |= set_aside_marks(corpus.seen_in(sets[name, direction]))
    notes = [
        f"neighbouring lines of the training text{f' {each.code}' if len(texts) > 1 else ''} belong together, as "
        f"{shares[each][0]:.1%} of them and {shares[each][1]:.1%} of distant ones have a rare word in common: blocks "
        f"of {_BLOCK} lines are held out"
        for each in texts
        if each in in_blocks
    ]
    with whole_folder(folder) as unfinished:
        (unfinished / _NOTE).write_text("; ".join(notes), encoding="utf-8")
        for (name, direction), pairs in sets.items():
            for file, side in zip(_file_names(name, direction, corpus), ("source", "target"), strict=True):
                (unfinished / file).write_bytes("".join(f"{getattr(pair, side)}\n" for pair in pairs).encode())


def _in_common(sources: Sequence[PairSource]) -> tuple[float, float]:
    """Return the share of neighbouring pairs that have a rare word in common, and that of pairs far from each other."""
    pairs = islice(_readable(sources, lambda count: None), _LOOKED_AT)
    words = [{*_WORD.findall(f"{pair.source} {pair.target}".casefold())} for pair in pairs]
    counts, half = Counter(chain.from_iterable(words)), len(words) // 2
    rare = [{word for word in each if counts[word] <= max(2, _RARE * len(words))} for each in words]
    near = sum(not one.isdisjoint(other) for one, other in pairwise(rare))
    far = sum(not one.isdisjoint(other) for one, other in zip(rare, rare[half:], strict=False))
    return near / max(1, len(words) - 1), far / max(1, len(words) - half)


def _choose(sources: Sequence[PairSource], name: str, size: SetSize, excluded: Marks, in_blocks: bool) -> list[Pair]:
    """Return the pairs with the smallest hashes, each once and in that order. excluded: other held-out sets.

    in_blocks: whether the hashes are of blocks of lines, whose lines follow each other.
    """
    steps = steps_of(_FILTER, UNKNOWN)
    # A hash of its text chooses a pair on every machine and with any cleaning. A share is a threshold of the hash: when
    # the text grows, the set still contains the pairs that it contained before.
    limit = int(size.share * _HASHES) if size.share else _HASHES
    capacity = 0 if size.share else size.pairs or _MAX_AUTO_SIZE
    chosen: dict[int, Pair] = {}
    pairs: set[Pair] = set()  # of `chosen`
    largest: list[int] = []  # a heap of the hashes in `chosen`, negative
    number, leaves_some = 0, False
    with bar(f"choosing the {name} set", sum(source.count() for source in sources), " pairs") as progress:
        for number, pair in enumerate(_readable(sources, progress.update), 1):
            hashed = str((number - 1) // _BLOCK) if in_blocks else f"{pair.source}\n{pair.target}"
            key = int.from_bytes(hashlib.blake2b(f"{name}\n{hashed}".encode(), digest_size=8).digest(), "big")
            if in_blocks:  # the line's place in its block as the last bits
                key = key & ~0xFF | (number - 1) % _BLOCK
            # The hash first: the marks and the steps are slower, and few pairs need them.
            if key < limit and (pair in pairs or set_aside_reason(pair, excluded)):
                continue
            if key >= limit or any(isinstance(step(pair), str) for _, step in steps):
                leaves_some = True
                continue
            chosen[key] = pair
            pairs.add(pair)
            heappush(largest, -key)
            # Memory for `capacity` pairs, however long the text is.
            if capacity and len(largest) > capacity:
                pairs.remove(chosen.pop(-heappop(largest)))
                limit, leaves_some = -largest[0], True
    # auto: one pair in 100, but at least 200 and at most 2000, and never more than one in 10.
    auto = max(1, min(max(number // 100, 200), _MAX_AUTO_SIZE, number // 10))
    count = len(chosen) if size.share else size.pairs or auto
    leaves_none = len(chosen) <= count and not leaves_some
    if not chosen or (not size.share and (leaves_none or 2 * count > number)):
        alike = f", of which only {len(chosen)} differ and may be," if leaves_none else ""
        raise DataError(
            f"corpus.{name} ({size.value}) sets {count} of the training text's {number} pairs{alike} aside: at least "
            "one must be, and at most half of them, and some be left; give another number, or the name of a text"
        )
    return [chosen[key] for key in sorted(chosen)[:count]]


def _readable(sources: Sequence[PairSource], tick: Callable[[int], object]) -> Iterator[Pair]:
    """Yield the pairs without flaws or blank sides, stripped; call `tick(1)` for each pair read."""
    for pair in chain.from_iterable(source.read() for source in sources):
        tick(1)
        stripped = Pair(pair.source.strip(), pair.target.strip())
        if not pair.flaw and stripped.source and stripped.target:
            yield stripped
