"""Where attention looks, measured: at the verb that a verb translates, and at what "it" refers to.

    python benchmarks/attention_hits.py runs/ladder/lstm_attention runs/ladder/transformer_tiny

RUN is a model of the embedded English-Korean corpus. Two shares, each with a 95 % interval (Wilson's), of every layer
and head, and of the mean over a layer's heads; what the marks . , ? ! looked at, or were looked at, is left out:

- verbs: of the first sentences of the two test halves that have exactly one verb, 100 of each half, how often the
  Korean verb's largest weight among the English words is on the English verb, the reference being forced.
- it: of 200 new sentences such as "The cat did not eat the rice because it was too hot.", the noun that "it" refers to
  being the first in half of them, how often the encoder's self-attention gives more weight, at "it", to that noun than
  to the other one. Always the first, or always the nearer one, is right in half of them.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch

from tolka.data.batch import collate
from tolka.engines.options import DecodingConfig
from tolka.engines.torch_engine import TorchEngine
from tolka.errors import ConfigError, TolkaError
from tolka.metrics.tables import table
from tolka.model_directory.settings import direction_of, load_settings
from tolka.search.greedy import GreedyConfig
from tolka.translation.attention_maps import AttentionMap, word_alignment, word_numbers
from tolka.translation.opening import open_model
from tolka.translation.translator import Translator

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data" / "sample" / "generator"))
from sample_corpus import korean as ko
from sample_corpus import lexicon as lex
from sample_corpus.korean import Predicate
from sample_corpus.sentences import Sentence, random_sentence
from sample_corpus.split import build

HALF = 100
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
    negated = ("모르", "모릅", "몰라", "몰랐") if predicate.stem == "알" else ()  # not to know is a word of its own
    return (predicate.stem, polite, plain, *adnominals, *joined, *negated)


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


def first_probes(probes: Iterable[Probe | None]) -> list[Probe]:
    """HALF of them, or as many as there are."""
    return list(islice((probe for probe in probes if probe is not None), HALF))


def all_probes() -> dict[str, list[Probe]]:
    """What is measured -> its probes."""
    corpus = build()
    halves = (corpus.splits[name] for name in ("test_fresh", "test_unseen"))
    known = {sentence.english for split in corpus.splits.values() for sentence in split}
    orders: dict[bool, list[Probe]] = {True: [], False: []}
    for probe in map(it_probe, fresh_sentences(known)):
        if probe and len(orders[probe.first < probe.second]) < HALF:
            orders[probe.first < probe.second].append(probe)
        if all(len(found) == HALF for found in orders.values()):
            break
    return {
        "verbs": [probe for half in halves for probe in first_probes(map(verb_probe, half))],
        "it": [*orders[True], *orders[False]],
    }


def without_marks(each: AttentionMap) -> AttentionMap:
    """The map without the rows and columns of marks, which stand in the word before them.

    A piece that is but the blank before a word stays: without it the word would be one with that before it.
    """
    rows, columns = (
        [n for n, piece in enumerate(pieces) if piece == "▁" or piece.strip("▁" + PUNCTUATION)]
        for pieces in (each.rows, each.columns)
    )
    weights = [[each.weights[row][column] for column in columns] for row in rows]
    return AttentionMap(each.name, [each.rows[n] for n in rows], [each.columns[n] for n in columns], weights)


def maps_of(
    translator: Translator[TorchEngine], probes: Sequence[Probe], kind: str
) -> dict[tuple[str, str], list[AttentionMap]]:
    """(layer's name, head) -> the map of each probe, the reference being forced. kind: cross, or encoder."""
    found: dict[tuple[str, str], list[AttentionMap]] = {}
    tokenizer, engine = translator.tokenizer, translator.engine
    sources = tokenizer.encode_source([probe.english for probe in probes])
    targets = tokenizer.encode_target([probe.korean for probe in probes])
    for source, target in zip(sources, targets, strict=True):
        with torch.inference_mode():
            attention = engine.model.eval().inspect(collate([source], [target]).to(engine.device)).attention
        columns = [*tokenizer.source_pieces(source), "</s>"]
        rows = [*tokenizer.target_pieces(target), "</s>"] if kind == "cross" else columns
        for name, (heads,) in attention.items():
            if kind in (name.partition(".")[0], name.rpartition(".")[2]):
                for head, weights in [*enumerate(heads), ("mean", heads.mean(0))]:
                    each = without_marks(AttentionMap(name, rows, columns, weights.tolist()))
                    found.setdefault((name, str(head)), []).append(each)
    return found


def verb_hit(probe: Probe, each: AttentionMap) -> bool:
    """Whether the Korean verb looked most at the English one."""
    return (probe.first, probe.second) in word_alignment([each])


def it_hit(probe: Probe, each: AttentionMap) -> bool:
    """Whether "it" looked more at what it refers to than at the other noun."""
    numbers = word_numbers(each.columns[:-1])
    it = words(probe.english).index("it")
    row = np.array(each.weights)[:-1, :-1][[number == it for number in numbers]].mean(axis=0)
    right, wrong = (row[[number == n for number in numbers]].sum() for n in (probe.first, probe.second))
    return bool(right > wrong)


def interval(hits: int, tried: int) -> tuple[float, float]:
    """Wilson's, 95 %."""
    z, share = 1.96, hits / tried
    middle = (share + z * z / (2 * tried)) / (1 + z * z / tried)
    half = z / (1 + z * z / tried) * (share * (1 - share) / tried + z * z / (4 * tried * tried)) ** 0.5
    return middle - half, middle + half


def measure(run: Path, name: str, probes: Sequence[Probe]) -> list[dict[str, Any]]:
    """The hits of every layer and head, and of their means. ConfigError for a model of other languages."""
    kind, hit = {"verbs": ("cross", verb_hit), "it": ("encoder", it_hit)}[name]
    if direction_of(load_settings(run)) != ("en", "ko"):
        raise ConfigError(f"{run} is no model of the embedded corpus, from en to ko")
    found = []
    for (layer, head), maps in maps_of(
        open_model(run, GreedyConfig(), DecodingConfig(backend="torch")), probes, kind
    ).items():
        hits = sum(hit(probe, each) for probe, each in zip(probes, maps, strict=True))
        found.append(
            {
                "probe": name,
                "run": run.name,
                "map": layer,
                "head": head,
                "hits": hits,
                "sentences": len(probes),
                "share": hits / len(probes),
                "interval": interval(hits, len(probes)),
            }
        )
    return found


def main() -> None:
    """A table of each probe, and with --json all numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--json", type=Path, help="write the numbers there too")
    options = parser.parse_args()
    numbers = []
    for name, probes in all_probes().items():
        rows = []
        for run in options.runs:
            try:
                measured = measure(run, name, probes)
            except TolkaError as error:
                parser.error(str(error))
            for line in measured:
                low, high = line["interval"]
                rows.append([run.name, line["map"], line["head"], f"{line['share']:.1%}", f"{low:.1%} to {high:.1%}"])
            if not measured:
                rows.append([run.name, "no such map", "", "", ""])
            numbers += measured
        longest = np.mean([1 / len(probe.english.split()) for probe in probes])
        chance = f"one word in the sentence's: {longest:.1%}" if name == "verbs" else "50%"
        print(f"\n{name}: {len(probes)} sentences, by chance {chance}\n")
        print(table(rows, ["run", "map", "head", "hits", "95% interval"], "lllrr"))
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
