"""Score translations that are given, by forced decoding."""

from collections.abc import Sequence
from typing import NamedTuple

from tolka.text.normalization import spelt
from tolka.translation.translator import Candidate, E, Tick, Translation, Translator


class ScoredPair(NamedTuple):
    """A given translation with its log-probability, and those of its tokens, `</s>` included, in nats."""

    translation: Translation
    token_scores: list[float]


def score_given(
    translator: Translator[E], sources: Sequence[str], targets: Sequence[str], tick: Tick = lambda share: None
) -> list[ScoredPair]:
    """Return the log-probability of each target, given its source: the sum over its tokens, `</s>` included.

    A pair is scored as a whole, however long it is; `too_long` is true where the source has more subwords than
    translator.max_length. A pair of two blank texts has score 0 and no tokens. tick: is called after each batch with
    its share of the pairs.
    """
    stripped = [[spelt(text.strip(), translator.unicode) for text in texts] for texts in (sources, targets)]
    tokenizer = translator.tokenizer
    ids = list(zip(tokenizer.encode_source(stripped[0]), tokenizer.encode_target(stripped[1]), strict=True))
    asked = [number for number, pair in enumerate(ids) if any(pair)]
    share = len(ids) / max(1, len(asked))
    found = translator.token_scores([ids[number] for number in asked], lambda count: tick(count * share))
    scores = dict(zip(asked, found, strict=True))
    results = []
    for number, (pair, target) in enumerate(zip(ids, targets, strict=True)):
        token_scores = scores.get(number, [])
        total = sum(token_scores)
        segments = [pair] if number in scores else []
        candidate = Candidate(target, segments, total, complete=True, log_probability=total)
        too_long = len(pair[0]) > translator.max_length
        results.append(ScoredPair(Translation([candidate], too_long, split="never"), token_scores))
    return results
