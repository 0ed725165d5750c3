"""Split texts into segments that the model can translate, and join their translations; needs no torch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tolka.errors import DataError
from tolka.search.hypothesis import NO_WISH, Rendered, Wish
from tolka.terminology.glossary import Match
from tolka.text.characters import CharacterForm
from tolka.text.direction import Direction
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.translation.results import Candidate, Translation
from tolka.translation.splitting import best_cut, sentences, separator_between
from tolka.translation.terminology import Terminology

# Stands for bytes that could not be read. A model writes it if its training text had it, where nothing calls for it.
_BROKEN = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True)
class Segment:
    """A part of a text, of at most max_length subwords.

    separator: text between its translation and the one before. wish: constraints on its translation. matches: the
    glossary's terms in it.
    """

    separator: str
    ids: list[int]
    wish: Wish = NO_WISH
    matches: tuple[Match, ...] = ()


@dataclass(frozen=True)
class SegmentedText:
    """A text split into segments. sentences: of the text. too_long: whether one of them was split at max_length."""

    segments: list[Segment]
    sentences: int
    too_long: bool


class TextError(DataError):
    """A text that cannot be translated. number: of the text, from 0. of_prefix: whether its prefix is to blame."""

    def __init__(self, number: int, message: str, of_prefix: bool = False) -> None:
        super().__init__(message)
        self.number, self.of_prefix = number, of_prefix


@dataclass(frozen=True)
class Segmenter:
    """Splits texts into segments, and joins their translations; the fields are those of Translator.

    splitting: from `resolved_split`.
    """

    tokenizer: Tokenizer
    max_length: int
    characters: CharacterForm
    splitting: str
    direction: Direction
    terminology: Terminology

    def segment(self, text: str, prefix: str = "") -> SegmentedText:
        """Split a text. prefix: the beginning of the translation of its first segment."""
        # Line feeds stay for now: those between sentences come between their translations.
        text = self.characters.source_lines(text).strip()
        if not text:  # a blank text never reaches the model
            return SegmentedText([], 0, False)
        parts = sentences(text, self.direction[0])
        segments, separator, too_long = list[Segment](), "", False
        for part in parts if self.splitting == "sentences" else [text]:
            content = part.rstrip()
            segments += (part_segments := list(self.split(self.characters.source(content), separator)))
            separator = separator_between(part[len(content) :], True, self.direction[1])
            too_long |= len(part_segments) > 1
        (ids,) = self.tokenizer.encode_target([self.characters.target(prefix)]) if prefix else ([],)
        if ids:
            segments[0] = replace(segments[0], wish=replace(segments[0].wish, prefix=tuple(ids)))
        return SegmentedText(segments, len(parts), too_long)

    def split(self, text: str, separator: str = "") -> Iterator[Segment]:
        """Split at the best place near the middle until each part has at most max_length subwords."""
        (ids,) = self.tokenizer.encode_source([text], self.direction)
        # No cut within a single character, however many subwords it has: such a segment stays too long.
        cut = best_cut(text) if len(ids) > self.max_length and self.splitting != "never" else None
        if cut is None:
            matches = self.terminology.matches(text)
            yield Segment(separator, ids, self.terminology.wish(matches), matches)
            return
        yield from self.split(text[: cut.end], separator)
        separator = separator_between(text[cut.end : cut.start], cut.at_mark, self.direction[1])
        yield from self.split(text[cut.start :], separator)

    def join(self, text: SegmentedText, results: Sequence[Sequence[Rendered]]) -> Translation:
        """Join the translations of a text's segments: the best ones of all segments, then the second ones, and so on.

        results: of each segment, best first.
        """
        candidates = dict[str, Candidate]()  # by text: of equal texts the first, which is the better one, stays
        for place in range(max(map(len, results), default=1)):
            # A segment with fewer translations has its last one in all further places.
            chosen = [each[min(place, len(each) - 1)] for each in results]
            pairs = list(zip(text.segments, chosen, strict=True))
            parts = [(segment, self._without_broken(segment, part)) for segment, (part, _) in pairs]
            joined = "".join(segment.separator + part for segment, part in parts)
            candidate = Candidate(
                joined,
                [(segment.ids, hypothesis.tokens) for segment, (_, hypothesis) in pairs],
                sum(hypothesis.score for _, hypothesis in chosen),
                all(hypothesis.finished for _, hypothesis in chosen),
                sum(hypothesis.log_probability for _, hypothesis in chosen),
                *self.terminology.complaints(joined, [(segment.matches, part) for segment, part in parts]),
            )
            candidates.setdefault(joined, candidate)
        return Translation(list(candidates.values()), text.too_long, text.sentences, self.splitting)

    def _without_broken(self, segment: Segment, part: str) -> str:
        """Return the translation of a segment without U+FFFD, unless its source or prefix has that."""
        if _BROKEN not in part:
            return part
        inputs = self.tokenizer.decode_source([segment.ids]) + self.tokenizer.decode_target([segment.wish.prefix])
        return part if _BROKEN in "".join(inputs) else part.replace(_BROKEN, "")
