"""Score translations that are given, by forced decoding."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from tolka.text.characters import CharacterForm
from tolka.text.tokenizer.tokenizer import Tokenizer
from tolka.translation.batch_decoder import Tick
from tolka.translation.results import Candidate, Translation
from tolka.translation.segments import LengthError
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
    terminology: Terminology | None


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

    A pair is scored as a whole, however long it is; `too_long` is true where the source has more subwords than
    translator.max_length. A pair of two blank texts has score 0 and no tokens. tick: is called after each batch with
    its share of the pairs. LengthError if one is longer than what the engine can compute.
    """
    tokenizer, form = translator.tokenizer, translator.characters
    texts = list(map(form.source, sources)), list(map(form.target, targets))
    ids = list(zip(tokenizer.encode_source(texts[0]), tokenizer.encode_target(texts[1]), strict=True))
    asked = [number for number, pair in enumerate(ids) if any(pair)]
    share = len(ids) / max(1, len(asked))
    try:
        found = translator.token_scores([ids[number] for number in asked], lambda count: tick(count * share))
    except LengthError as error:
        error.number = asked[error.number]
        raise
    scores = dict(zip(asked, found, strict=True))
    results = []
    for number, (pair, source, target) in enumerate(zip(ids, texts[0], targets, strict=True)):
        token_scores = scores.get(number, [])
        total = sum(token_scores)
        segments = [pair] if number in scores else []
        matches = translator.terminology.matches(source) if translator.terminology else ()
        lacks = complaints(translator.terminology, target, [(matches, target)])
        candidate = Candidate(target, segments, total, True, total, *lacks)
        too_long = len(pair[0]) > translator.max_length
        results.append(ScoredPair(Translation([candidate], too_long, split="never"), token_scores))
    return results
