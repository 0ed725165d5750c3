"""Score translations that are given, by forced decoding."""

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from tolka.text.characters import CharacterForm
from tolka.text.direction import Direction
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.translation.batch_decoder import Tick
from tolka.translation.results import Candidate, Translation
from tolka.translation.segments import LengthError
from tolka.translation.splitting import sentences
from tolka.translation.terminology import Terminology, complaints


class SegmentScorer(Protocol):
    """What scores segments of ids: a Translator."""

    def token_scores(self, pairs: Sequence[tuple[list[int], list[int]]], tick: Tick = ...) -> list[list[float]]:
        """Return the log-probability, in nats, of each target token and of `</s>`."""


class TextScorer(SegmentScorer, Protocol):
    """What encodes and scores texts: a Translator."""

    tokenizer: Tokenizer
    characters: CharacterForm
    max_length: int
    split: str

    @property
    def direction(self) -> Direction:
        """The direction of a call that names none."""

    @property
    def terminology(self) -> Terminology | None:
        """The terms and banned phrases of a call that names none."""


class ScoredPair(NamedTuple):
    """A given translation with its log-probability, and those of its tokens, `</s>` included, in nats."""

    translation: Translation
    token_scores: list[float]

    @property
    def score(self) -> float:
        """The log-probability of the whole translation, in nats."""
        return self.translation.score


def score_given(
    translator: TextScorer, sources: Sequence[str], targets: Sequence[str], tick: Tick = lambda share: None
) -> list[ScoredPair]:
    """Return the log-probability of each target, given its source: the sum over its tokens, `</s>` included.

    Where the translator splits texts into sentences, and both sides have as many, each sentence is scored by itself, as
    it is translated; any other pair as a whole, however long it is, with `split` "never". `sentences` is the number
    that the translator would split the source into. `too_long` is true where a part has more subwords than
    translator.max_length. A pair of two blank texts has score 0 and no tokens. tick: is called after each batch with
    its share of the pairs. LengthError if one is longer than what the engine can compute.
    """
    form = translator.characters
    texts = list(zip(map(form.source, sources), map(form.target, targets), strict=True))
    parts = [_parts(translator, *pair) for pair in texts]
    numbers = [number for number, each in enumerate(parts) for _ in each.pairs]
    share = len(texts) / max(1, len(numbers))
    try:
        scores = iter(
            translator.token_scores([pair for each in parts for pair in each.pairs], lambda count: tick(count * share))
        )
    except LengthError as error:
        error.number = numbers[error.number]
        raise
    results = []
    for each, (source, _), target in zip(parts, texts, targets, strict=True):
        token_scores = [score for part in islice(scores, len(each.pairs)) for score in part]
        total = sum(token_scores)
        matches = translator.terminology.matches(source) if translator.terminology else ()
        lacks = complaints(translator.terminology, target, [(matches, target)])
        candidate = Candidate(target, each.pairs, total, True, total, *lacks)
        too_long = any(len(ids) > translator.max_length for ids, _ in each.pairs)
        split = "sentences" if len(each.pairs) > 1 else "never"
        results.append(ScoredPair(Translation([candidate], too_long, each.sentences, split), token_scores))
    return results


class _Parts(NamedTuple):
    """What is scored of a pair of texts: ids of source and target, of each sentence or of the whole.

    sentences: how many the translator would split the source into.
    """

    pairs: list[tuple[list[int], list[int]]]
    sentences: int


def _parts(translator: TextScorer, source: str, target: str) -> _Parts:
    """Return the sentences of both sides if the translator splits texts and both have as many, else the whole texts."""
    sides, count = [[source], [target]], 1
    if translator.split == "sentences":
        found = [sentences(text, code) for text, code in zip((source, target), translator.direction, strict=True)]
        count = len(found[0])
        if count == len(found[1]) > 1:
            sides = [[part.rstrip() for part in side] for side in found]
    tokenizer = translator.tokenizer
    pairs = list(zip(tokenizer.encode_source(sides[0]), tokenizer.encode_target(sides[1]), strict=True))
    return _Parts([pair for pair in pairs if any(pair)], count)
