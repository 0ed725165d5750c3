"""A glossary: are its terms in the translations, what does it do to BLEU, and how long does it take?

python benchmarks/glossary.py MODEL SOURCE REFERENCE --train TEXT.src TEXT.tgt [--entries 50] [--least-sure]

The glossary has source words of the test set, each with the one word that goes with it in the training text: the
translation is not from the references. It is written to glossary.tsv in the working directory. Seconds are CPU
time with one thread, of the fastest round. The last column is the time for the sentences that have terms, beside plain
beam search of them.
"""

import argparse
import re
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tolka.engines.options import DecodingConfig
from tolka.metrics.options import MetricsConfig
from tolka.metrics.scores import score
from tolka.search.beam import BeamConfig
from tolka.terminology.glossary import Glossary, occurs_in, read_glossary
from tolka.text.lines import read_lines
from tolka.translation.opening import open_model

FEWEST, MOST = 3, 40  # sentences of the test set that have a source word of the glossary
LEAST_DICE, CLEAR = 0.3, 1.5  # of the best target word; and how many times the second best's
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


def words(line: str) -> set[str]:
    """The words of a line, as they are written."""
    return set(_WORD.findall(line))


def make_glossary(test: Sequence[str], train: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Pairs of a source word and its most likely translation, by the Dice coefficient, the clearest ones first."""
    in_test = Counter(word for line in test for word in words(line) if len(word) > 3)
    wanted = {word for word, count in in_test.items() if FEWEST <= count <= MOST}
    of_source, of_target, together = Counter[str](), Counter[str](), Counter[tuple[str, str]]()
    for source, target in train:
        targets = words(target)
        of_target.update(targets)
        for word in words(source) & wanted:
            of_source[word] += 1
            together.update((word, each) for each in targets)
    best: dict[str, list[tuple[float, str]]] = {}
    for (word, target), count in together.items():
        best.setdefault(word, []).append((2 * count / (of_source[word] + of_target[target]), target))
    found = []
    for word, rated in best.items():
        rated.sort(key=lambda item: (-item[0], item[1]))
        first, second = rated[0], rated[1] if len(rated) > 1 else (0.0, "")
        if first[0] >= LEAST_DICE and first[0] >= CLEAR * second[0]:
            found.append((-first[0], word, first[1]))
    return [(word, target) for _, word, target in sorted(found)]


def share_present(glossary: Glossary, sources: Sequence[str], hypotheses: Sequence[str]) -> tuple[int, int]:
    """How many of the terms that apply stand in the translations, and how many apply."""
    present = [
        any(occurs_in(target, hypothesis) for target in match.targets)
        for source, hypothesis in zip(sources, hypotheses, strict=True)
        for match in glossary.matches(source)
    ]
    return sum(present), len(present)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("source", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--train", type=Path, nargs=2, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--entries", type=int, default=50, help="at most; there may be fewer clear translations")
    parser.add_argument("--least-sure", action="store_true", help="take the least clear of the clear translations")
    parser.add_argument("--beam-size", type=int, default=5)
    options = parser.parse_args()
    sources, references = (list(read_lines(path)) for path in (options.source, options.reference))
    train = list(zip(*(read_lines(path) for path in options.train), strict=True))
    pairs = make_glossary(sources, train)
    pairs = pairs[-options.entries :] if options.least_sure else pairs[: options.entries]
    file = Path("glossary.tsv")
    file.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")

    searches = {"plain": BeamConfig(beam_size=options.beam_size)}
    searches["glossary"] = BeamConfig(beam_size=options.beam_size, glossary=str(file))
    decoding = DecodingConfig(device="cpu", threads=1)
    translators = {name: open_model(options.model, search, decoding) for name, search in searches.items()}
    glossary = Glossary(read_glossary(file, translators["plain"].direction))
    has_terms = [bool(glossary.matches(source)) for source in sources]
    with_terms = [source for source, has in zip(sources, has_terms, strict=True) if has]
    texts, seconds, alone = dict[str, list[str]](), dict[str, list[float]](), dict[str, list[float]]()
    for _ in range(options.rounds):
        for name, translator in translators.items():
            translator(sources[:20])
            started_at = time.process_time()
            texts[name] = translator(sources)
            seconds.setdefault(name, []).append(time.process_time() - started_at)
            started_at = time.process_time()
            translator(with_terms)
            alone.setdefault(name, []).append(time.process_time() - started_at)

    language = translators["plain"].direction[1]
    print(f"{len(pairs)} entries; {sum(has_terms)} of {len(sources)} sentences have some")
    print("search      terms present      BLEU with terms  BLEU without  changed  seconds  ratio  with terms")
    for name, hypotheses in texts.items():
        present, total = share_present(glossary, sources, hypotheses)
        scores = []
        for wanted in (True, False):
            rows = [row for row, has in enumerate(has_terms) if has == wanted]
            [bleu] = score(
                [hypotheses[row] for row in rows],
                [references[row] for row in rows],
                MetricsConfig(names=["bleu"], bootstrap=0),
                language,
            )
            scores.append(bleu)
        changed = sum(
            one != other for one, other, has in zip(hypotheses, texts["plain"], has_terms, strict=True) if not has
        )
        taken, ratio = min(seconds[name]), min(alone[name]) / min(alone["plain"])  # least disturbed by other jobs
        print(
            f"{name:<10}  {present:>4} of {total:>4} {present / max(1, total):>6.1%}  {scores[0].value:>15.2f}  "
            f"{scores[1].value:>12.2f}  {changed:>7}  {taken:>7.2f}  {taken / min(seconds['plain']):>5.2f}  "
            f"{ratio:>10.2f}"
        )
    print(scores[0].signature)


if __name__ == "__main__":
    main()
