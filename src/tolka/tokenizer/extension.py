"""Subwords of new text for a trained tokenizer: the old ids keep their meaning, the new ones follow.

Where a text has none of the new subwords in its old segmentation, its ids stay as they are:

- BPE: merging continues after the old merges (`merges.py`); the new ones have lower scores than all of the old.
- unigram: so it does for subwords of characters that the tokenizer knows; the score of each is what its two parts have
  together, and a little more, so that it replaces just these. Subwords with new characters are those of a unigram model
  of the new text, with its log-probabilities.
- char, word: the most frequent new ones.

New characters come first, the most frequent ones first, so that nothing is built of what is unknown.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from tolka.text.pairs import Pair
from tolka.tokenizer.extended_side import ExtendedSide, NewSubword
from tolka.tokenizer.special_tokens import UNK
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.tokenizer.vocabulary import Vocabulary

_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
_COUNTED = 2000  # lines whose subwords are counted for the note
MUCH_UNSPELT = 0.1
"""Share of a side's subwords that are bytes or unknown, from which on new ones are worth adding."""


@dataclass(frozen=True)
class Extension:
    """A tokenizer to extend. size: most new subwords of each vocabulary.

    learns_from: both, source or target; the other side's own vocabulary does not change. sample: number of pairs to
    learn from; 0 = all. character_coverage: see `TokenizerConfig`.
    """

    base: Tokenizer
    size: int
    learns_from: str
    sample: int
    character_coverage: float

    def as_dict(self) -> dict[str, Any]:
        """Return the values that the result depends on, beside the text."""
        own = {key: value for key, value in vars(self).items() if key != "base"}
        return {"base": self.base.digests, **own}

    def texts(self, pair: Pair) -> list[list[str]]:
        """Return the texts of a pair that each SentencePiece model learns from."""
        sides = [[getattr(pair, side)] if self.learns_from in (side, "both") else [] for side in ("source", "target")]
        return sides if len(self.base.models) == 2 else [sides[0] + sides[1]]

    def others(self, pair: Pair) -> list[str]:
        """Return the texts of a pair that one model for both sides learns only characters from."""
        if len(self.base.models) == 2 or self.learns_from == "both":
            return []
        return [pair.target if self.learns_from == "source" else pair.source]


def extend_tokenizer(
    extension: Extension, pairs: Callable[[], Iterator[Pair]], say: Callable[[str], None]
) -> Tokenizer:
    """Return the tokenizer with subwords of the pairs' text added, the same for the same text on every machine.

    pairs: returns the training pairs from the start each time it is called. say: receives notes.
    """
    base = extension.base
    sides = [ExtendedSide(model, vocabulary) for model, vocabulary in zip(base.models, _beside(base), strict=True)]
    for pair in pairs():
        for side, own in zip(sides, extension.texts(pair), strict=True):
            side.read(own)
        sides[0].read_characters(extension.others(pair))
    candidates = []
    for number, side in enumerate(sides):
        texts = (text for pair in pairs() for text in extension.texts(pair)[number])
        candidates.append(side.candidates(extension.size, extension.character_coverage, texts))
    models, vocabularies = list(base.models), list(base.listed)
    for vocabulary, group in enumerate(_groups(base)):
        chosen, known = _chosen(
            [candidates[number] for number in group], [sides[number] for number in group], extension.size
        )
        for number, added in zip(group, chosen, strict=True):
            models[number] = sides[number].extended_model(added)
        if vocabularies:
            old = vocabularies[vocabulary]
            vocabularies[vocabulary] = replace(old, subwords=(*old.subwords, *known))
    extended = Tokenizer(models, vocabularies)
    for note in _notes(extension, extended, sides, list(islice(pairs(), _COUNTED))):
        say(note)
    return extended


def spellings(
    old: Tokenizer, new: Tokenizer, like: Mapping[str, str] | None = None
) -> tuple[list[list[int]], list[list[int]]]:
    """Return the old ids that spell the subword of each new id, of the source and of the target.

    new: the result of `extend_tokenizer` or `add_tags` for `old`. like: new language -> the one whose tag spells its.
    """
    sides = [ExtendedSide(model, vocabulary) for model, vocabulary in zip(old.models, _beside(old), strict=True)]
    owners = [ExtendedSide(model, vocabulary) for model, vocabulary in zip(new.models, _beside(new), strict=True)]

    def ids(subword: str, group: Sequence[int]) -> list[int]:
        # Of two models with one vocabulary, the first that has the subword spells it: the source's if both have it.
        # Neither has the tag of a language.
        having = [number for number in group if subword in owners[number].names]
        return sides[having[0]].ids(subword) if having else []

    groups = _groups(old)
    source, target = (
        [ids(subword, group) for subword in subwords]
        for group, subwords in zip((groups[0], groups[-1]), _new_subwords(old, new), strict=True)
    )
    for spelt, first, known, now in zip(
        (source, target), (old.source_size, old.target_size), old.tag_ids, new.tag_ids, strict=True
    ):
        for language, nearest in (like or {}).items():
            spelt[now[language] - first] = [known[nearest]]
    return source, target


def unspelt_share(ids: Sequence[int], pieces: Callable[[Sequence[int]], list[str]]) -> float:
    """Return the share of ids that are bytes or unknown; 0 of none. pieces: returns the subwords of ids."""
    counts = Counter(ids)
    numbers = list(counts)
    named = zip(numbers, pieces(numbers), strict=True)
    unspelt = sum(counts[number] for number, piece in named if number == UNK or _BYTE.fullmatch(piece))
    return unspelt / max(len(ids), 1)


def _new_subwords(old: Tokenizer, new: Tokenizer) -> tuple[list[str], list[str]]:
    """Return the subwords of the source's new ids, and of the target's."""
    source, target = range(old.source_size, new.source_size), range(old.target_size, new.target_size)
    return new.source_pieces(source), new.target_pieces(target)


def _beside(tokenizer: Tokenizer) -> Sequence[Vocabulary | None]:
    """Return the vocabulary beside each SentencePiece model, if there is one."""
    if not tokenizer.listed:
        return [None] * len(tokenizer.models)
    return [tokenizer.listed[0], tokenizer.listed[-1]][: len(tokenizer.models)]


def _groups(tokenizer: Tokenizer) -> list[list[int]]:
    """Return the numbers of the SentencePiece models that each vocabulary belongs to."""
    models = range(len(tokenizer.models))
    return [[*models]] if tokenizer.shared else [[number] for number in models]


def _chosen(
    candidates: Sequence[list[NewSubword]], sides: Sequence[ExtendedSide], size: int
) -> tuple[list[list[NewSubword]], list[str]]:
    """Return the new subwords of each SentencePiece model of a vocabulary, and the vocabulary's, at most `size`."""
    # Of two models the one whose next candidate ranks higher is served first; each keeps its own order, on which merges
    # depend. Reversed, since lists are popped at their end.
    waiting = [list(reversed(own)) for own in candidates]
    chosen: list[list[NewSubword]] = [[] for _ in candidates]
    new: dict[str, None] = {}
    while any(waiting):
        number = max((n for n, own in enumerate(waiting) if own), key=lambda n: (waiting[n][-1].rank, -n))
        candidate = waiting[number].pop()
        if not sides[number].has_id(candidate.text):
            if candidate.text not in new and len(new) == size:
                break
            new[candidate.text] = None
        chosen[number].append(candidate)
    return chosen, list(new)


def _notes(extension: Extension, new: Tokenizer, sides: Sequence[ExtendedSide], pairs: Sequence[Pair]) -> Iterator[str]:
    """Yield notes on the new subwords, on what they save, and on old text that gets other ids."""
    old = extension.base
    for group, side, added in zip(_groups(old), ("source", "target"), _new_subwords(old, new), strict=False):
        if old.shared and extension.learns_from != "both":
            side = extension.learns_from
        elif extension.learns_from not in (side, "both"):
            continue
        name = "both sides" if old.shared and extension.learns_from == "both" else f"the {side}"
        fewer = "" if len(added) == extension.size else "; the text has no more that would save anything"
        single = sum(len(subword) == 1 for subword in added)
        yield f"{len(added)} subwords of {name} added, {single} of them characters (tokenizer.extend){fewer}"
        characters = frozenset().union(*(sides[each].characters for each in group))
        known = [subword for subword in added if characters.issuperset(subword.strip("\u2581"))]
        if known:
            yield (
                f"{len(known)} of them are spelt in characters that the model knows, such as {known[0]!r}: old text "
                "that has them gets these ids"
            )
    encoders = {"source": (old.encode_source, new.encode_source), "target": (old.encode_target, new.encode_target)}
    for side, (before, after) in encoders.items():
        texts = [getattr(pair, side) for pair in pairs]
        counts = [sum(map(len, encode(texts))) / max(len(texts), 1) for encode in (before, after)]
        unknown = [sum(row.count(UNK) for row in encode(texts)) / max(len(texts), 1) for encode in (before, after)]
        lost = f", {unknown[1]:.1f} of them unknown instead of {unknown[0]:.1f}" if unknown[0] else ""
        yield f"a {side} of the new text has {counts[1]:.1f} subwords on average, without them {counts[0]:.1f}{lost}"
