"""Write the English-Korean sample corpus: ``python data/sample/generator --out data/sample``."""

from __future__ import annotations

import argparse
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from sample_corpus.split import DEFAULT_SEED, Corpus, build, check


def write(corpus: Corpus, out: Path) -> None:
    """Write ``<split>.en`` and ``<split>.ko``, one NFC sentence a line."""
    out.mkdir(parents=True, exist_ok=True)
    for name, sentences in corpus.splits.items():
        for suffix, lines in (("en", [s.english for s in sentences]), ("ko", [s.korean for s in sentences])):
            text = unicodedata.normalize("NFC", "".join(line + "\n" for line in lines))
            # Bytes, so that line endings do not depend on the platform.
            (out / f"{name}.{suffix}").write_bytes(text.encode("utf-8"))


def counts_table(corpus: Corpus) -> str:
    """Return a table of sentence counts and lengths in words."""
    rows = [f"{'split':<12}{'pairs':>7}{'en mean':>9}{'en max':>8}{'ko mean':>9}{'ko max':>8}"]
    for name, sentences in corpus.splits.items():
        english = [len(sentence.english.split()) for sentence in sentences]
        korean = [len(sentence.korean.split()) for sentence in sentences]
        rows.append(
            f"{name:<12}{len(sentences):>7}{sum(english) / len(english):>9.1f}{max(english):>8}"
            f"{sum(korean) / len(korean):>9.1f}{max(korean):>8}"
        )
    train = corpus.splits["train"]
    english_words = {word for sentence in train for word in sentence.english.split()}
    korean_words = {word for sentence in train for word in sentence.korean.split()}
    rows.append(f"train word types: {len(english_words)} English, {len(korean_words)} Korean")
    rows.append(f"held-out pairs: {len(corpus.held_out)}")
    return "\n".join(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Write the English-Korean sample corpus.")
    parser.add_argument("--out", type=Path, default=Path("data/sample"), help="folder for the files")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="seed of every random choice")
    options = parser.parse_args(arguments)
    corpus = build(options.seed)
    check(corpus)
    write(corpus, options.out)
    print(counts_table(corpus))


if __name__ == "__main__":
    main()
