"""Score translations that are given, by forced decoding."""

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from tolka.translation.batch_decoder import Tick
from tolka.translation.results import Candidate, Translation
from tolka.translation.segments import Segmenter, TextError
from tolka.translation.splitting import sentences

IdPair = tuple[list[int], list[int]]
"""Source and target ids of a segment, without `</s>`."""


class SegmentScorer(Protocol):
    """The part of Translator that scores segments of ids."""

    def token_scores(self, pairs: Sequence[IdPair], tick: Tick = ...) -> list[list[float]]:
        """Return the log-probability, in nats, of each target token and of `</s>`."""


class ScoredPair(NamedTuple):
    """A given translation with its log-probability, and those of its tokens, `</s>` included, in nats."""

    translation: Translation
    token_scores: list[float]

    @property
    def score(self) -> float:
        """The log-probability of the whole translation, in nats."""
        return self.translation.score


def scores_of_texts(
    scorer: SegmentScorer, texts: Sequence[Sequence[IdPair]], tick: Tick = lambda share: None
) -> list[list[float]]:
    """Return the log-probabilities of each text's tokens, those of all its segments in one list."""
    scores = iter(scorer.token_scores([pair for segments in texts for pair in segments], tick))
    return [[score for segment in islice(scores, len(segments)) for score in segment] for segments in texts]


def score_given(
    segmenter: Segmenter, scorer: SegmentScorer, sources: Sequence[str], targets: Sequence[str], tick: Tick
) -> list[ScoredPair]:
    """Return the log-probability of each target, given its source: the sum over its tokens, `</s>` included.

    Sentences are scored one by one if the segmenter does so and both sides have as many; any other pair is scored
    as a whole, however long it is, with `split` "never". `too_long` is true if a part has more subwords than
    segmenter.max_length. A pair of blank texts has score 0 and no tokens. tick: receives each batch's share of the
    pairs. TextError for a pair that is longer than the engine can compute.
    """
    form = segmenter.characters
    texts = list(zip(map(form.source, sources), map(form.target, targets), strict=True))
    parts = [_parts(segmenter, *pair) for pair in texts]
    numbers = [number for number, (pairs, _) in enumerate(parts) for _ in pairs]  # of the text of each segment
    share = len(texts) / max(1, len(numbers))
    try:
        scores = scores_of_texts(scorer, [pairs for pairs, _ in parts], lambda count: tick(count * share))
    except TextError as error:
        error.number = numbers[error.number]  # the engine numbers segments, and a user knows texts
        raise
    results = []
    # Complaints are about the target as it was given, not in the model's form of characters.
    for (pairs, count), (source, _), target, token_scores in zip(parts, texts, targets, scores, strict=True):
        total = sum(token_scores)
        lacks = segmenter.terminology.complaints(target, [(segmenter.terminology.matches(source), target)])
        candidate = Candidate(target, pairs, total, True, total, *lacks)
        too_long = any(len(ids) > segmenter.max_length for ids, _ in pairs)
        split = "sentences" if len(pairs) > 1 else "never"
        results.append(ScoredPair(Translation([candidate], too_long, count, split), token_scores))
    return results


def _parts(segmenter: Segmenter, source: str, target: str) -> tuple[list[IdPair], int]:
    """Return the segments of a pair of texts, and the number of sentences that the source would be split into.

    Segments are the sentences if the segmenter splits texts and both sides have as many, else the whole texts.
    """
    sides, count = [[source], [target]], 1
    if segmenter.splitting == "sentences":
        split = [sentences(text, code) for text, code in zip((source, target), segmenter.direction, strict=True)]
        count = len(split[0])
        if count == len(split[1]) > 1:
            sides = [[part.rstrip() for part in side] for side in split]
    sources = segmenter.tokenizer.encode_source(sides[0], segmenter.direction)
    pairs = list(zip(sources, segmenter.tokenizer.encode_target(sides[1]), strict=True))
    return [pair for pair in pairs if any(pair)], count
