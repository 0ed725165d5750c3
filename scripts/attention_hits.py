"""Where attention looks, measured: at the verb that a verb translates, and at what "it" refers to.

    python scripts/attention_hits.py runs/ladder/lstm_attention runs/ladder/transformer_tiny

RUN is a model of the embedded English-Korean corpus. Two shares, each with a 95 % interval (Wilson's), of every layer
and head, and of the mean over a layer's heads:

- verbs: of the first 200 sentences of the two test halves that have exactly one verb, how often the Korean verb's
  largest weight among the English words is on the English verb, the reference being forced. Chance is one in the
  sentence's words, on average.
- it: of 200 new sentences such as "the dog did not cross the bridge because it was too narrow", how often the encoder's
  self-attention gives more weight, at "it", to the noun that it refers to than to the other one. Chance is a half.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from sample_corpus import korean as ko
from sample_corpus import lexicon as lex
from sample_corpus.korean import Predicate
from sample_corpus.sentences import Sentence, random_sentence
from sample_corpus.split import build
from tolka.errors import ConfigError
from tolka.evaluation.attention_maps import AttentionConfig, AttentionMap, AttentionReader, word_alignment, word_numbers
from tolka.report.tables import table
from tolka.search.greedy import GreedyConfig
from tolka.translator import Translation, Translator

COUNT = 200
SEED = 7  # of the sentences with "it"
PUNCTUATION = ".,?!"


@dataclass(frozen=True)
class Probe:
    """A pair and two words' numbers: the English verb and the Korean one; or what "it" refers to and the other noun."""

    english: str
    korean: str
    first: int
    second: int


def words(text: str) -> list[str]:
    """What blanks separate, lower-cased, without marks."""
    return [word.strip(PUNCTUATION).lower() for word in text.split()]


def only(positions: Sequence[int]) -> int | None:
    """The one there is, or None."""
    return positions[0] if len(positions) == 1 else None


def korean_forms(predicate: Predicate) -> tuple[str, ...]:
    """What a word made of this predicate can begin with."""
    polite = ko.finish(predicate, "polite", False).removesuffix("니다")
    plain = ko.finish(predicate, "plain", False)
    adnominals = (ko.adnominal(predicate, "present"), ko.adnominal(predicate, "past"))
    joined = (ko.past(predicate).stem, ko.infinitive(predicate), ko.prospective(predicate), ko.conditional(predicate))
    return (predicate.stem, polite, plain, *adnominals, *joined)


def verb_probe(sentence: Sentence) -> Probe | None:
    """The verb of both sides; None unless the sentence has one verb, and one word of each side can be it."""
    known = [verb for verb in lex.verbs() + lex.intransitives() if verb.lexeme in sentence.lexemes]
    if len(known) != 1 or " " in known[0].predicate.stem:  # which of two Korean words is the verb is a matter of taste
        return None
    forms, predicate = known[0].forms, known[0].predicate
    spelt = {forms.base, forms.third, forms.past, forms.gerund}
    english = only([n for n, word in enumerate(words(sentence.english)) if word in spelt])
    beginnings = korean_forms(predicate)
    korean = only([n for n, word in enumerate(words(sentence.korean)) if word.startswith(beginnings)])
    return None if english is None or korean is None else Probe(sentence.english, sentence.korean, english, korean)


def it_probe(sentence: Sentence) -> Probe | None:
    """The noun that "it" refers to, and the other one; None unless there are two nouns before and a reason after."""
    main, reason, why = sentence.english.partition(" because it was ")
    if not reason:
        return None
    adjective = words(why)[-1] if words(why)[-1] != "friend" else ""
    blamed = {b.partition(":")[2] for a, b in sentence.pairs if a == f"adjective:{adjective}"}
    nouns = {noun.english for noun in lex.nouns()}
    found = [(n, word) for n, word in enumerate(words(main)) if word in nouns]
    if len(found) != 2 or len(blamed) != 1:
        return None
    (referent,) = blamed
    positions = {word: n for n, word in found}
    if referent not in positions or len(positions) != 2:
        return None
    (other,) = (n for word, n in positions.items() if word != referent)
    return Probe(sentence.english, sentence.korean, positions[referent], other)


def fresh_sentences(known: set[str]) -> Iterator[Sentence]:
    """New ones, of the same language."""
    rng = Random(SEED)
    while True:
        sentence = random_sentence(rng)
        if sentence.english not in known:
            known.add(sentence.english)
            yield sentence


def first_probes(probes: Iterator[Probe | None]) -> list[Probe]:
    """COUNT of them, or as many as there are."""
    found = []
    for probe in probes:
        if probe is not None:
            found.append(probe)
        if len(found) == COUNT:
            break
    return found


def forced(translator: Translator, probes: Sequence[Probe]) -> list[Translation]:
    """The references, as if the model had written them."""
    tokenizer = translator.tokenizer
    sources = tokenizer.encode_source([probe.english for probe in probes])
    targets = tokenizer.encode_target([probe.korean for probe in probes])
    segments = zip(probes, sources, targets, strict=True)
    return [Translation(probe.korean, [(source, target)], True) for probe, source, target in segments]


def maps_of(translator: Translator, probes: Sequence[Probe], kind: str) -> dict[tuple[str, str], list[AttentionMap]]:
    """(layer's name, head) -> the map of each probe; nothing where the model has none of this kind."""
    found: dict[tuple[str, str], list[AttentionMap]] = {}
    for head in ("all", "mean"):
        for layer in range(100):
            try:
                read = AttentionReader(translator, AttentionConfig(kind=kind, layer=layer, head=head))
                maps = read(forced(translator, probes))
            except ConfigError:
                break
            for of_probe in maps:
                for each in of_probe:
                    found.setdefault((each.name, each.head), []).append(each)
    return found


def verb_hit(probe: Probe, each: AttentionMap) -> bool:
    """Whether the Korean verb looked most at the English one."""
    return (probe.first, probe.second) in word_alignment([each])


def it_hit(probe: Probe, each: AttentionMap) -> bool:
    """Whether "it" looked more at what it refers to than at the other noun."""
    numbers = word_numbers(each.columns)
    weights = np.array(each.weights)
    it = words(probe.english).index("it")
    row = weights[[number == it for number in numbers]].mean(axis=0)
    of_word = [
        sum(w for w, number in zip(row, numbers, strict=True) if number == n) for n in (probe.first, probe.second)
    ]
    return bool(of_word[0] > of_word[1])


def interval(hits: int, count: int) -> tuple[float, float]:
    """Wilson's, 95 %."""
    z, share = 1.96, hits / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * (share * (1 - share) / count + z * z / (4 * count * count)) ** 0.5
    return middle - half, middle + half


def main() -> None:
    """A table of each probe, and with --json all numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--json", type=Path, help="write the numbers there too")
    options = parser.parse_args()
    corpus = build()
    tests = [*corpus.splits["test_fresh"], *corpus.splits["test_unseen"]]
    known = {sentence.english for split in corpus.splits.values() for sentence in split}
    probes = {
        "verbs": first_probes(verb_probe(sentence) for sentence in tests),
        "it": first_probes(it_probe(sentence) for sentence in fresh_sentences(known)),
    }
    chance = {"verbs": float(np.mean([1 / len(probe.english.split()) for probe in probes["verbs"]])), "it": 0.5}
    hit = {"verbs": verb_hit, "it": it_hit}
    kind = {"verbs": "cross", "it": "encoder"}
    numbers = []
    for name, found in probes.items():
        rows = []
        for run in options.runs:
            translator = Translator.load(run, GreedyConfig())
            for (layer, head), maps in maps_of(translator, found, kind[name]).items():
                hits = sum(hit[name](probe, each) for probe, each in zip(found, maps, strict=True))
                low, high = interval(hits, len(found))
                rows.append([run.name, layer, head, f"{hits / len(found):.1%}", f"{low:.1%} to {high:.1%}"])
                numbers.append({"probe": name, "run": run.name, "map": layer, "head": head, "share": hits / len(found)})
        print(f"\n{name}: {len(found)} sentences, chance {chance[name]:.1%}\n")
        print(table(rows, ["run", "map", "head", "hits", "95% interval"], "lllrr"))
    if options.json:
        options.json.write_text(json.dumps({"chance": chance, "hits": numbers}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
