"""Join the translations of a text's segments to that of the text."""

from collections.abc import Sequence

from tolka.search.hypothesis import Rendered
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.translation.results import Candidate, Translation
from tolka.translation.segments import Segment, SegmentedText
from tolka.translation.terminology import Terminology, complaints

# Stands for bytes that could not be read. A model writes it if its training text had it, where nothing calls for it.
_BROKEN = "\N{REPLACEMENT CHARACTER}"


def joined_translation(
    text: SegmentedText,
    results: Sequence[Sequence[Rendered]],
    tokenizer: Tokenizer,
    split: str,
    terminology: Terminology | None,
) -> Translation:
    """Join the translations of a text's segments: the best ones of all segments, then the second ones, and so on.

    results: of each segment, best first. split: from `resolved_split`. terminology: None = no complaints.
    """
    candidates = dict[str, Candidate]()  # by text: of equal texts the first, which is the better one, stays
    for place in range(max(map(len, results), default=1)):
        # A segment with fewer translations has its last one in all further places.
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
    inputs = tokenizer.decode_source([segment.ids]) + tokenizer.decode_target([segment.wish.prefix])
    return part if _BROKEN in "".join(inputs) else part.replace(_BROKEN, "")
