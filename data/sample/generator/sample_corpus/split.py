"""Division into training, validation and the two test halves, and the checks on the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from sample_corpus import lexicon as lex
from sample_corpus.phrases import Pair
from sample_corpus.sentences import Sentence, anchors, random_sentence

DEFAULT_SEED = 20240
SPLIT_SIZES = {"train": 20000, "valid": 500, "test_fresh": 250, "test_unseen": 250}
HELD_OUT_PER_KIND = 40
MIN_CONTENT_COUNT = 40
_SURVEY_SENTENCES = 12000
# A pair is worth holding out only if it would otherwise turn up, but no word may lose a main partner.
_SURVEY_MIN, _SURVEY_MAX = 3, 14
_MAX_PER_WORD = 2


@dataclass(frozen=True, slots=True)
class Corpus:
    """The four splits and the word pairs kept for the unseen test half."""

    splits: dict[str, list[Sentence]]
    held_out: frozenset[Pair]


def pair_kind(pair: Pair) -> str:
    """Name the kind of a pair: verb-noun, adjective-noun or number-noun."""
    return "-".join(lexeme.partition(":")[0] for lexeme in pair)


KINDS = ("verb-noun", "adjective-noun", "number-noun")


def choose_held_out(seed: int) -> frozenset[Pair]:
    """Choose the held-out pairs from a first survey of the language, the same number of each kind."""
    rng = Random(f"held out {seed}")
    seen = Counter(pair for _ in range(_SURVEY_SENTENCES) for pair in sorted(random_sentence(rng).pairs))
    chosen: set[Pair] = set()
    for kind in KINDS:
        options = sorted(
            pair for pair, count in seen.items() if pair_kind(pair) == kind and _SURVEY_MIN <= count <= _SURVEY_MAX
        )
        rng.shuffle(options)
        uses: Counter[str] = Counter()
        kept = 0
        limit = HELD_OUT_PER_KIND if kind != "number-noun" else HELD_OUT_PER_KIND // 5
        for first, second in options:
            # Ten numerals share all number pairs, so each of them may lose a few more partners.
            if kept == HELD_OUT_PER_KIND or uses[second] == _MAX_PER_WORD:
                continue
            if uses[first] == (_MAX_PER_WORD if kind != "number-noun" else limit):
                continue
            uses.update((first, second))
            chosen.add((first, second))
            kept += 1
    return frozenset(chosen)


class _Stream:
    """Distinct sentence pairs; an English sentence with two translations is an error in the grammar."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(f"sentences {seed}")
        self._korean_of: dict[str, str] = {}
        self._korean_seen: set[str] = set()

    def claim(self, sentence: Sentence) -> bool:
        """Register a sentence; return False if either side has been seen before."""
        known = self._korean_of.setdefault(sentence.english, sentence.korean)
        if known != sentence.korean:
            raise ValueError(f"two translations of {sentence.english!r}: {known!r}, {sentence.korean!r}")
        if sentence.korean in self._korean_seen:
            return False
        self._korean_seen.add(sentence.korean)
        return True

    def __iter__(self) -> Iterator[Sentence]:
        while True:
            sentence = random_sentence(self._rng)
            if self.claim(sentence):
                yield sentence


def _cooccurring(sentence: Sentence, by_first: dict[str, list[str]]) -> bool:
    """Tell whether both words of a held-out pair stand anywhere in the sentence."""
    return any(second in sentence.lexemes for word in sentence.lexemes for second in by_first.get(word, ()))


def _tokens(sentence: Sentence) -> set[str]:
    return set(sentence.english.split()) | set(sentence.korean.split())


def _take(
    stream: Iterator[Sentence], count: int, accept: Callable[[Sentence], bool], first: Sequence[Sentence] = ()
) -> list[Sentence]:
    taken = list(first)
    while len(taken) < count:
        sentence = next(stream)
        if accept(sentence):
            taken.append(sentence)
    return taken


class _Quota:
    """Accept unseen sentences evenly over the three kinds of held-out pairs."""

    def __init__(self, held_out: frozenset[Pair], size: int) -> None:
        self._held_out = held_out
        self._left = dict.fromkeys(KINDS, -(-size // len(KINDS)))

    def accept(self, sentence: Sentence) -> bool:
        """Accept a sentence whose held-out pairs are all of one kind that is still wanted."""
        kinds = {pair_kind(pair) for pair in sentence.pairs & self._held_out}
        # Sentences of two kinds would use up two places and leave the quota unfillable.
        if len(kinds) != 1:
            return False
        kind = kinds.pop()
        self._left[kind] -= 1
        return self._left[kind] >= 0


def build(seed: int = DEFAULT_SEED) -> Corpus:
    """Write the whole corpus in memory; the same seed gives the same corpus."""
    held_out = choose_held_out(seed)
    by_first: dict[str, list[str]] = {}
    for first, second in sorted(held_out):
        by_first.setdefault(first, []).append(second)
    stream = _Stream(seed)
    fixed = [sentence for sentence in anchors() if stream.claim(sentence)]
    sentences = iter(stream)
    train = _take(sentences, SPLIT_SIZES["train"], lambda s: not _cooccurring(s, by_first), fixed)
    Random(f"order {seed}").shuffle(train)
    vocabulary = set().union(*map(_tokens, train))
    splits = {"train": train}
    for name in ("valid", "test_fresh"):
        splits[name] = _take(
            sentences, SPLIT_SIZES[name], lambda s: _tokens(s) <= vocabulary and not _cooccurring(s, by_first)
        )
    size = SPLIT_SIZES["test_unseen"]
    quota = _Quota(held_out, size)
    splits["test_unseen"] = _take(sentences, size, lambda s: _tokens(s) <= vocabulary and quota.accept(s))
    return Corpus(splits, held_out)


def check(corpus: Corpus) -> None:
    """Raise ValueError unless the corpus keeps every promise its card makes."""
    everything = [sentence for split in corpus.splits.values() for sentence in split]
    for side in ("english", "korean"):
        if len({getattr(sentence, side) for sentence in everything}) != len(everything):
            raise ValueError(f"a sentence occurs twice on the {side} side")
    train = corpus.splits["train"]
    counts = Counter(lexeme for sentence in train for lexeme in sentence.lexemes)
    rare = sorted(lexeme for lexeme in lex.surface_forms() if counts[lexeme] < MIN_CONTENT_COUNT)
    if rare:
        raise ValueError(f"too rare in train: {[(lexeme, counts[lexeme]) for lexeme in rare]}")
    vocabulary = set().union(*map(_tokens, train))
    for name in ("valid", "test_fresh", "test_unseen"):
        if any(not _tokens(sentence) <= vocabulary for sentence in corpus.splits[name]):
            raise ValueError(f"{name} holds a word that train does not")
    for name in ("train", "valid", "test_fresh"):
        if any({a, b} <= sentence.lexemes for sentence in corpus.splits[name] for a, b in corpus.held_out):
            raise ValueError(f"{name} holds a held-out pair")
    if any(not sentence.pairs & corpus.held_out for sentence in corpus.splits["test_unseen"]):
        raise ValueError("test_unseen holds a sentence without a held-out pair")
