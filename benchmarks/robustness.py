"""What noise in a text costs a model, and one that was trained with batching.augment.

    python benchmarks/robustness.py CORPUS SOURCE TARGET OUT plain trainer.max_minutes=30
    python benchmarks/robustness.py CORPUS SOURCE TARGET OUT augmented trainer.max_minutes=30
    python benchmarks/robustness.py CORPUS SOURCE TARGET OUT table

CORPUS: a folder with train, valid and test of two languages. Settings are of the training; `augmented` has
batching.augment=all unless another is typed. Each runs on one thread, so that two can run at once; minutes are those
of CPU time. The noises are those of tolka.text.noise, which change references as well where a translation should keep
what they do: with tags, and without end marks. A model's loss is what its translations of the clean text would have,
if they were changed like their references. BLEU ignores case where a noise changes it.
"""

import argparse
import random
import time
from collections.abc import Sequence
from pathlib import Path

from sacrebleu.metrics.bleu import BLEU

import tolka
from cpu_minutes import train
from tolka.evaluation.robustness import change_alike
from tolka.text.lines import read_lines
from tolka.text.noise import NOISES
from tolka.text.pairs import Pair

KINDS = ("upper", "title", "no_end", "typos", "tags")
CASED = ("upper", "title")  # whose scores ignore case, as a model that keeps it would lose by that alone
MODELS = ("plain", "augmented")


def bleu(translations: Sequence[str], pairs: Sequence[Pair], ignores_case: bool) -> tuple[float, str]:
    """Return BLEU and its signature."""
    metric = BLEU(lowercase=ignores_case)
    score = metric.corpus_score([*translations], [[pair.target for pair in pairs]]).score
    return score, str(metric.get_signature())


def table(corpus: Path, source: str, target: str, out: Path) -> None:
    """Print the scores of both models on each noisy test set, and what they lose."""
    clean = [
        Pair(*lines) for lines in zip(*(read_lines(corpus / f"test.{code}") for code in (source, target)), strict=True)
    ]
    models = {name: tolka.load(out / name) for name in MODELS if (out / name / "best").is_dir()}
    plain = {name: translator([pair.source for pair in clean]) for name, translator in models.items()}
    for name, texts in plain.items():
        print(f"clean: {name} {bleu(texts, clean, False)[0]:.1f} ({bleu(texts, clean, False)[1]})")
    for kind in KINDS:
        noise, ignores_case = NOISES[kind], kind in CASED
        pairs = [noise(pair, random.Random(row)) for row, pair in enumerate(clean)]
        for name, translator in models.items():
            same = [
                change_alike(noise, pair, text, changed, row)
                for row, (pair, text, changed) in enumerate(zip(clean, plain[name], pairs, strict=True))
            ]
            texts = translator([pair.source for pair in pairs])
            (before, _), (now, signature) = bleu(same, pairs, ignores_case), bleu(texts, pairs, ignores_case)
            print(f"{kind}: {name} {now:.1f}, {now - before:+.1f} ({signature})")


def main() -> None:
    """Train one of the models, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("corpus", "source", "target", "out"):
        parser.add_argument(name, type=str if name in ("source", "target") else Path)
    parser.add_argument("part", choices=[*MODELS, "table"])
    parser.add_argument("typed", nargs="*", metavar="KEY=VALUE")
    options = parser.parse_args()
    corpus, out = options.corpus.resolve(), options.out.resolve()
    if options.part == "table":
        table(corpus, options.source, options.target, out)
        return
    time.perf_counter = time.process_time  # on one thread, what the clock would show on an idle machine
    texts = [f"corpus.{split}={corpus / split}" for split in ("train", "valid", "test")]
    augment = ["batching.augment=all"] if options.part == "augmented" else []
    typed = [each for each in options.typed if not each.startswith("batching.augment") or augment]
    augment = [] if any(each.startswith("batching.augment") for each in typed) else augment
    common = ["corpus=files", f"corpus.source={options.source}", f"corpus.target={options.target}", *texts]
    train([*common, "trainer.threads=1", "report.plots=false", *augment, *typed], out / options.part)


if __name__ == "__main__":
    main()
