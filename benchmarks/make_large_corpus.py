"""A text of any size out of a smaller one: its pairs over and over, each time with other words in other places.

For measuring what preparing and checking large texts takes; nobody should train on it. The same seed, the same text.
Usage: python benchmarks/make_large_corpus.py DIR/train en de OUT/train --pairs 5000000
"""

import argparse
import gzip
import random
from collections.abc import Iterator
from pathlib import Path

REPEATED = 0.1  # share of the pairs that come again exactly, for the duplicates' sake


def lines(prefix: Path, language: str) -> list[str]:
    """Of a plain or gzip file."""
    path = prefix.with_name(f"{prefix.name}.{language}")
    if path.exists():
        return path.read_text(encoding="utf-8").split("\n")[:-1]
    with gzip.open(f"{path}.gz", "rt", encoding="utf-8", newline="\n") as stream:
        return stream.read().split("\n")[:-1]


def perturbed(source: str, target: str, rng: random.Random) -> tuple[str, str]:
    """Both sides with one number put between two of their words: another pair, as long, and still parallel."""
    number = str(rng.randrange(10**6))
    sides = []
    for text in (source, target):
        words = text.split(" ")
        words.insert(rng.randrange(len(words) + 1), number)
        sides.append(" ".join(words))
    return sides[0], sides[1]


def pairs(sources: list[str], targets: list[str], count: int, rng: random.Random) -> Iterator[tuple[str, str]]:
    """As many as asked for."""
    for number in range(count):
        pair = sources[number % len(sources)], targets[number % len(sources)]
        yield pair if rng.random() < REPEATED else perturbed(*pair, rng)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", type=Path)
    parser.add_argument("languages", nargs=2)
    parser.add_argument("out", type=Path)
    parser.add_argument("--pairs", type=int, default=5_000_000)
    options = parser.parse_args()
    sides = [lines(options.prefix, language) for language in options.languages]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    first, second = (
        options.out.with_name(f"{options.out.name}.{language}").open("w", encoding="utf-8", newline="\n")
        for language in options.languages
    )
    with first, second:
        for source, target in pairs(sides[0], sides[1], options.pairs, random.Random(1)):
            first.write(source + "\n")
            second.write(target + "\n")


if __name__ == "__main__":
    main()
