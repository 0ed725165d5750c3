"""Plant faults in a text, all at once, and see whether `mt-train --check` finds and counts them.

In the first half of the training text: pairs of the test set, targets in the source's language, lines in Latin-1 and
lines that were encoded twice. In the second half every target stands one line too early.
Usage: python benchmarks/plant_faults.py DIR/train en de --test DIR/test OUT
"""

import argparse
import json
import random
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LEAKS = 50
OTHER_LANGUAGE = 0.03
UNDECODED = 20  # lines, and as many that were decoded wrongly and written again
FOREIGN = "Größe, Maß und Übermut"


@dataclass(frozen=True)
class Planted:
    """The faulty text, as bytes of lines, and how often each fault is in it. shifted: the first such pair, from 1."""

    sources: list[bytes]
    targets: list[bytes]
    counts: dict[str, int]
    shifted: int


def plant(sources: list[str], targets: list[str], test: tuple[list[str], list[str]], name: str = "test") -> Planted:
    """Lines of a sound text, and of a test set (called `name`) with at least LEAKS pairs."""
    rng = random.Random(1)
    targets, half = list(targets), len(sources) // 2
    others = round(OTHER_LANGUAGE * len(sources))
    numbers = rng.sample(range(half), others + 2 * UNDECODED)
    for number in numbers[:others]:
        targets[number] = f"{sources[rng.randrange(len(sources))]} {sources[rng.randrange(len(sources))]}"
    lines = [text.encode() for text in targets]
    for number in numbers[others : others + UNDECODED]:
        lines[number] = f"{targets[number]} {FOREIGN}".encode("latin-1", errors="replace")
    for number in numbers[others + UNDECODED :]:
        lines[number] += f" {FOREIGN}".encode().decode("cp1252").encode()
    del lines[half]
    lines.append(b"The end.")
    all_sources = [text.encode() for text in sources]
    for place, source, target in zip(rng.sample(range(half), LEAKS), *test, strict=False):
        all_sources.insert(place, source.encode())
        lines.insert(place, target.encode())
    counts = {
        f"{name}: whole pair in the training text": LEAKS,
        "target surely in another language": others,
        "target not UTF-8, others are": UNDECODED,
        "broken encoding": UNDECODED,
    }
    return Planted(all_sources, lines, counts, half + LEAKS + 1)


def lines_of(prefix: Path, languages: list[str]) -> tuple[list[str], list[str]]:
    """Both sides."""
    first, second = (
        prefix.with_name(f"{prefix.name}.{language}").read_text(encoding="utf-8").split("\n")[:-1]
        for language in languages
    )
    return first, second


def check(train: Path, valid: Path, test: Path, languages: list[str]) -> dict[str, Any]:
    """What the command finds."""
    source, target = languages
    command = ["mt-train", "--check", "--json", f"corpus.source={source}", f"corpus.target={target}"]
    command += ["corpus=files", f"corpus.train={train}", f"corpus.valid={valid}", f"corpus.test={test}"]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return found


def counted(found: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Finding -> how many, of how many."""
    findings = [*found["training"][0]["findings"], *found["leaks"]["test"]["findings"]]
    return {each["what"]: (each["count"], each["looked_at"]) for each in findings}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=Path)
    parser.add_argument("languages", nargs=2)
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    test = lines_of(options.test, options.languages)
    planted = plant(*lines_of(options.train, options.languages), test, options.test.name)
    options.out.mkdir(parents=True, exist_ok=True)
    for language, lines in zip(options.languages, (planted.sources, planted.targets), strict=True):
        (options.out / f"train.{language}").write_bytes(b"".join(line + b"\n" for line in lines))
    before = counted(check(options.train, options.test, options.test, options.languages))
    after = check(options.out / "train", options.test, options.test, options.languages)
    found = counted(after)
    print(f"{'fault':40} {'planted':>8} {'found':>8} {'of':>8} {'found before':>13}")
    for what, count in planted.counts.items():
        print(f"{what:40} {count:8} {found[what][0]:8} {found[what][1]:8} {before.get(what, (0, 0))[0]:13}")
    shift = after["training"][0]["shift"]
    print(f"shifted by a line from pair {planted.shifted} on; found: {shift}")


if __name__ == "__main__":
    main()
