"""Validation and test sets held out of the training text, where a corpus has none of its own.

Pairs are chosen by a hash of their text: the same on every machine, whatever the cleaning, and of a text that has grown
a share holds the share of before. They are kept as plain files beside the token stores. What training must leave out
for them, `tolka.text.cleaning.cleaner.judge` finds: every pair that has a source or a target of theirs.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import chain
from pathlib import Path

from tolka.errors import DataError
from tolka.system.atomic import alone, whole_folder
from tolka.system.progress import bar, say
from tolka.text.cleaning.cleaner import Marks, set_aside_marks, set_aside_reason
from tolka.text.cleaning.steps import CleaningConfig, steps_of
from tolka.text.corpora.base import Corpus, SetSize
from tolka.text.pairs import Pair, PairSource, ParallelFiles

_FORMAT = 1
_HASHES = 2**64
_AUTO_SHARE, _AUTO_LEAST, _AUTO_MOST = 100, 200, 2000  # one pair in so many, but at least, and at most
_AUTO_MOST_OF_TEXT = 10  # one pair in so many
# What is worth scoring, whatever cleaning the run has: two such runs have the same sets, so that their scores compare.
_SOUND = CleaningConfig(control="drop", max_characters=2000, max_ratio=9.0)


def with_sets_aside(corpus: Corpus, languages: tuple[str, str], cache: Path) -> tuple[Corpus, Path]:
    """Return the corpus with the sets that corpus.sizes asks for, and the folder under `cache` with their files.

    DataError where the text has too few pairs for them.
    """
    folder = cache / f"held-out-{_key(corpus, languages)}"
    if not folder.is_dir():
        with alone(
            cache / f".{folder.name}.lock", lambda: say("waiting for another process that chooses held-out pairs")
        ):
            if not folder.is_dir():
                _write(corpus, languages, folder)
    source, target = languages
    found: dict[str, list[PairSource]] = {
        name: [ParallelFiles(folder / f"{name}.{source}", folder / f"{name}.{target}", name)] for name in corpus.sizes
    }
    return replace(corpus, valid=found.get("valid", corpus.valid), tests=found.get("test", corpus.tests)), folder


def _key(corpus: Corpus, languages: tuple[str, str]) -> str:
    settings = {
        "format": _FORMAT,
        "text": corpus.fingerprint(),
        "languages": languages,
        "sizes": {name: size.asked for name, size in corpus.sizes.items()},
        "given": [source.fingerprint() for source in (*corpus.valid, *corpus.tests)],
    }
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


def _write(corpus: Corpus, languages: tuple[str, str], folder: Path) -> None:
    given = chain.from_iterable(source.read() for source in (*corpus.valid, *corpus.tests))
    taken = set_aside_marks(given)
    chosen = {}
    for name, size in sorted(corpus.sizes.items()):  # test before valid
        chosen[name] = _choose(corpus.train, name, size, taken)
        taken |= set_aside_marks(chosen[name])
    with whole_folder(folder) as made:
        for name, pairs in chosen.items():
            for language, texts in zip(
                languages, zip(*((p.source, p.target) for p in pairs), strict=True), strict=True
            ):
                content = "".join(f"{text}\n" for text in texts)
                (made / f"{name}.{language}").write_bytes(content.encode())


def _choose(sources: Sequence[PairSource], name: str, size: SetSize, taken: Marks) -> list[Pair]:
    """Return the pairs with the smallest hashes, each once and in that order. taken: those of other held-out sets."""
    is_free, steps = set_aside_reason(taken), steps_of(_SOUND, ("", ""))
    limit = int(size.share * _HASHES) if size.share else _HASHES
    most = 0 if size.share else size.pairs or _AUTO_MOST
    found: dict[int, Pair] = {}
    largest: list[int] = []  # a heap of the hashes in `found`, negative
    number = 0
    with bar(f"choosing the {name} set", sum(source.count() for source in sources), " pairs") as progress:
        for number, pair in enumerate(_readable(sources, progress.update), 1):  # noqa: B007 (used after the loop)
            mark = _hash(name, pair)
            if mark >= limit or mark in found or is_free(pair) or any(isinstance(s(pair), str) for _, s in steps):
                continue
            found[mark] = pair
            heappush(largest, -mark)
            if most and len(largest) > most:
                del found[-heappop(largest)]
                limit = -largest[0]
    if not size.share:
        wanted = size.pairs or max(1, min(max(number // _AUTO_SHARE, _AUTO_LEAST), number // _AUTO_MOST_OF_TEXT))
        found = {mark: found[mark] for mark in sorted(found)[:wanted]}
    asked = size.pairs or len(found)
    if not found or (not size.share and 2 * asked > number):
        raise DataError(
            f"corpus.{name} ({size.asked}) sets {asked} of the training text's {number} pairs "
            "aside: at least one must be, and at most half of them; give another number, or the name of a text"
        )
    return [found[mark] for mark in sorted(found)]


def _readable(sources: Sequence[PairSource], tick: Callable[[int], object]) -> Iterator[Pair]:
    """Yield pairs without flaws and blank sides, stripped."""
    for pair in chain.from_iterable(source.read() for source in sources):
        tick(1)
        stripped = Pair(pair.source.strip(), pair.target.strip())
        if not pair.flaw and stripped.source and stripped.target:
            yield stripped


def _hash(name: str, pair: Pair) -> int:
    text = f"{name}\n{pair.source}\n{pair.target}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
