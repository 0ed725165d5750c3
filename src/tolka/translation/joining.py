"""Join the translations of a text's segments to that of the text."""

from collections.abc import Sequence

from tolka.search.hypothesis import Rendered
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.translation.results import Candidate, Translation
from tolka.translation.segments import Segment, SegmentedText
from tolka.translation.terminology import Terminology, complaints

_BROKEN = "\N{REPLACEMENT CHARACTER}"  # stands for what could not be read; training text may have it


def joined_translation(
    text: SegmentedText,
    results: Sequence[Sequence[Rendered]],
    tokenizer: Tokenizer,
    split: str,
    terminology: Terminology | None,
) -> Translation:
    """Join the translations of a text's segments: the best ones of all, then the second ones, and so on.

    A segment with fewer of them has its last one in all further places. Of equal texts, the first one is kept. split:
    from `resolved_split`. terminology: says what the text lacks and must not have.
    """
    candidates = dict[str, Candidate]()
    for place in range(max(map(len, results), default=1)):
        chosen = [each[min(place, len(each) - 1)] for each in results]
        pairs = list(zip(text.segments, chosen, strict=True))
        parts = [(segment, _without_broken(segment, part, tokenizer)) for segment, (part, _) in pairs]
        joined = "".join(segment.separator + part for segment, part in parts)
        candidate = Candidate(
            joined,
            [(segment.ids, hypothesis.tokens) for segment, (_, hypothesis) in pairs],
            sum(hypothesis.score for _, hypothesis in chosen),
            all(hypothesis.finished for _, hypothesis in chosen),
            sum(hypothesis.log_probability for _, hypothesis in chosen),
            *complaints(terminology, joined, [(segment.matches, part) for segment, part in parts]),
        )
        candidates.setdefault(joined, candidate)
    return Translation(list(candidates.values()), text.too_long, text.sentences, split)


def _without_broken(segment: Segment, part: str, tokenizer: Tokenizer) -> str:
    """Return the translation of a segment without U+FFFD, unless its source or prefix has that."""
    if _BROKEN not in part:
        return part
    given = tokenizer.decode_source([segment.ids]) + tokenizer.decode_target([segment.wish.prefix])
    return part if _BROKEN in "".join(given) else part.replace(_BROKEN, "")
