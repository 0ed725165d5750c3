"""Make the corpora of the study: cuts of Tatoeba, Multi30k, and LibreOffice, each with train, valid and test.

    python benchmarks/auto/corpora.py CORPORA OUT

CORPORA holds tatoeba/, multi30k/ and libreoffice/, plain or as .gz. A cut is the first pairs of a shuffle with a fixed
seed, so that a smaller cut is a part of each larger one. Validation sets have at most 500 pairs, as somebody with a
small corpus would have; test sets are whole. In tatoeba_100k_joined4 each line is four of tatoeba_100k, for want of a
text of long sentences. Small cuts of Multi30k and LibreOffice are for fine-tuning a model of
Tatoeba, whose own domain is their second test set, `old`.
"""

import gzip
import random
import sys
from pathlib import Path

CUTS = {f"tatoeba_{size}k": 1000 * size for size in (1, 3, 5, 10, 30, 100)}
JOINED, SENTENCES = "tatoeba_100k", 4  # the corpus whose lines are joined, and how many to a line
SMALL = (300, 3000)  # pairs to fine-tune with
_VALIDATION_PAIRS, _OLD_PAIRS = 500, 500


def lines(path: Path) -> list[str]:
    """Return the lines of a file, or of the compressed one beside it."""
    packed = path.with_name(path.name + ".gz")
    data = gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()
    return data.decode("utf-8").removesuffix("\n").split("\n")


def pairs(prefix: Path, languages: tuple[str, str]) -> list[tuple[str, ...]]:
    """Return the pairs of a prefix."""
    return list(zip(*(lines(prefix.with_name(f"{prefix.name}.{language}")) for language in languages), strict=True))


def write(folder: Path, name: str, languages: tuple[str, str], chosen: list[tuple[str, ...]]) -> None:
    """Write a set of pairs as two files."""
    folder.mkdir(parents=True, exist_ok=True)
    for side, language in enumerate(languages):
        (folder / f"{name}.{language}").write_text("".join(f"{pair[side]}\n" for pair in chosen), "utf-8", newline="")


def joined(chosen: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return pairs of `SENTENCES` pairs each, in random order; what is left over is left out."""
    random.Random(1).shuffle(chosen)
    groups = zip(*(chosen[start::SENTENCES] for start in range(SENTENCES)), strict=False)
    return [tuple(" ".join(sides) for sides in zip(*group, strict=True)) for group in groups]


def main(corpora: Path, out: Path) -> None:
    """Write all corpora below `out`."""
    for name, languages, test in (
        ("tatoeba", ("en", "de"), "test"),
        ("multi30k", ("en", "de"), "test_2016_flickr"),
        ("libreoffice", ("en", "ko"), "test"),
    ):
        train = pairs(corpora / name / "train", languages)
        valid = pairs(corpora / name / "valid", languages)
        random.Random(1).shuffle(valid)
        cuts = {**(CUTS if name == "tatoeba" else {}), name: len(train)}
        if len(cuts) > 1:
            random.Random(1).shuffle(train)
        for cut, size in cuts.items():
            write(out / cut, "train", languages, train[:size])
            write(out / cut, "valid", languages, valid[:_VALIDATION_PAIRS])
            write(out / cut, "test", languages, pairs(corpora / name / test, languages))
            if cut == JOINED:
                for split in ("train", "valid", "test"):
                    write(
                        out / f"{cut}_joined{SENTENCES}", split, languages, joined(pairs(out / cut / split, languages))
                    )
        for size in SMALL if name != "tatoeba" else ():
            small = out / f"{name}_{size}"
            random.Random(1).shuffle(train)
            write(small, "train", languages, train[:size])
            write(small, "valid", languages, valid[: min(_VALIDATION_PAIRS, size // 3)])
            write(small, "test", languages, pairs(corpora / name / test, languages))
            if languages == ("en", "de"):
                write(small, "old", languages, pairs(corpora / "tatoeba" / "test", languages)[:_OLD_PAIRS])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
