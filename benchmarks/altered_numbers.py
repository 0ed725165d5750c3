"""How many altered numbers the flags find, and how many human translations they flag.

    python benchmarks/altered_numbers.py CORPORA

CORPORA holds flores (devtest; en, de and ko), libreoffice (en-ko) and tatoeba (en-de); all splits are taken. Of pairs
with a number in both sides, 500 are drawn in equal parts. In each, one digit of one number of the target is replaced by
another. A pair counts as found if a flag for a missing or invented number is raised, or for a placeholder, where the
number was that of %1. Other pairs, 500 of each pair of languages, whose source has a number, stay as they are: each
that is flagged is a false alarm.
"""

import argparse
import random
import re
from pathlib import Path

from tolka.text.lines import read_lines
from tolka.translation.flags import differing_numbers, differing_placeholders

CORPORA = {
    "flores en-de": ("flores/devtest.eng_Latn", "flores/devtest.deu_Latn"),
    "flores en-ko": ("flores/devtest.eng_Latn", "flores/devtest.kor_Hang"),
    "libreoffice en-ko": ("libreoffice/{}.en.gz", "libreoffice/{}.ko.gz"),
    "tatoeba en-de": ("tatoeba/{}.en.gz", "tatoeba/{}.de.gz"),
}
SPLITS = ("train", "valid", "test")
COUNT = 500
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
Pair = tuple[str, str]


def pairs_of(folder: Path, names: tuple[str, str]) -> list[Pair]:
    """Return the pairs of a corpus whose source has a number."""
    splits = SPLITS if "{}" in names[0] else ("",)
    sides = ([line for split in splits for line in read_lines(folder / name.format(split))] for name in names)
    return [pair for pair in zip(*sides, strict=True) if re.search(r"\d", pair[0])]


def altered(target: str, draw: random.Random) -> str:
    """Return the target with a digit of one of its numbers replaced by another; a number does not begin with 0."""
    number = draw.choice([*_NUMBER.finditer(target)])
    place = draw.choice([place for place in range(*number.span()) if target[place].isdigit()])
    others = [digit for digit in "0123456789" if digit != target[place] and (digit != "0" or place > number.start())]
    return target[:place] + draw.choice(others) + target[place + 1 :]


def main() -> None:
    """Alter, flag, and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print each pair that is not found, and each false alarm")
    options = parser.parse_args()
    draw = random.Random(options.seed)
    found = asked = 0
    unaltered: dict[str, list[Pair]] = {}
    for name, files in CORPORA.items():
        pairs = pairs_of(options.corpora, files)
        draw.shuffle(pairs)
        chosen = [pair for pair in pairs if _NUMBER.search(pair[1])][: COUNT // len(CORPORA)]
        unaltered.setdefault(name[-5:], []).extend(pair for pair in pairs if pair not in chosen)
        changed = [(source, altered(target, draw)) for source, target in chosen]
        missed = [pair for pair in changed if not any((*differing_numbers(*pair), *differing_placeholders(*pair)))]
        print(f"{name}: {len(chosen) - len(missed)} of {len(chosen)} altered numbers found")
        found, asked = found + len(chosen) - len(missed), asked + len(chosen)
        if options.show:
            print(*missed, sep="\n")
    print(f"all: {found} of {asked}, {100 * found / asked:.1f} %")
    for name, pairs in unaltered.items():
        drawn = draw.sample(pairs, min(COUNT, len(pairs)))
        for kind, side in (("missing_number", 0), ("invented_number", 1)):
            flagged = [pair for pair in drawn if differing_numbers(*pair)[side]]
            print(f"{name}, unaltered: {kind} {len(flagged)} of {len(drawn)}, {100 * len(flagged) / len(drawn):.1f} %")
            if options.show:
                print(*[(*pair, differing_numbers(*pair)) for pair in flagged], sep="\n")
        either = sum(any(differing_numbers(*pair)) for pair in drawn)
        print(f"{name}, unaltered: either {either} of {len(drawn)}, {100 * either / len(drawn):.1f} %")


if __name__ == "__main__":
    main()
