"""Subwords of new text, and tags of new languages, for a tokenizer: the old ids keep their meaning.

Where a text has none of the new subwords in its old segmentation, its ids stay as they are:

- BPE: merging continues after the old merges (`merges.py`); the new ones have lower scores than all of the old.
- unigram: so it does; the score of each new subword is what its two parts have together, and a little more, so that it
  replaces just these. A new character has the lowest score of the old subwords.
- char: the most frequent new characters.

New characters come first, the most frequent ones first, so that nothing is built of what is unknown.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain, islice

from tolka.errors import ConfigError
from tolka.text.direction import Direction
from tolka.text.pairs import Pair
from tolka.tokenizer.extended_side import ExtendedSide, NewSubword
from tolka.tokenizer.language_tags import FORMS
from tolka.tokenizer.sentencepiece_model import model_proto
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

    known: the languages that its model was trained on. sample: number of pairs to learn from; 0 = all.
    character_coverage: see `TokenizerConfig`.
    """

    base: Tokenizer
    size: int
    known: Sequence[str]
    sample: int
    character_coverage: float

    def sides(self, directions: Sequence[Direction]) -> list[str]:
        """Return which side of texts in these directions subwords are learnt from: both, source, target or "" for none.

        They are learnt from all sides in a new language; if there is none, from both sides of the first text. A model
        without tags learns from the first text alone, so that old text can stand beside it.
        """
        new = [new_side(direction, self.known) for direction in directions]
        return new if self.base.languages and any(new) else [new[0] or "both", *("" for _ in new[1:])]

    def texts(self, pair: Pair, learns_from: str) -> list[list[str]]:
        """Return the texts of a pair that each SentencePiece model learns from."""
        sides = [[getattr(pair, side)] if learns_from in (side, "both") else [] for side in ("source", "target")]
        return sides if len(self.base.models) == 2 else [sides[0] + sides[1]]

    def others(self, pair: Pair, learns_from: str) -> list[list[str]]:
        """Return the texts of a pair that each SentencePiece model learns only characters from."""
        # In one direction, a side with a model of its own stays as it is if subwords are learnt from the other one.
        is_apart = len(self.base.models) == 2 and learns_from and not self.base.languages
        other = {"": "both", "source": "target", "target": "source"}.get(learns_from, "")
        return self.texts(pair, "" if is_apart else other)


def new_side(direction: Direction, known: Collection[str]) -> str:
    """Return which side has a language that is new: source, target, both or "". known: none if nobody can say."""
    new = [side for side, code in direction._asdict().items() if known and code not in known]
    return "both" if len(new) == 2 else "".join(new)


def extend_tokenizer(
    extension: Extension, texts: Mapping[str, Callable[[], Iterator[Pair]]], say: Callable[[str], None]
) -> Tokenizer:
    """Return the tokenizer with subwords of texts added, the same for the same text on every machine.

    texts: which side subwords are learnt from, of `Extension.sides` -> function that returns such training pairs, from
    the start each time it is called. The characters of all of it are learnt. say: receives notes.
    """
    base = extension.base
    sides = _sides(base)
    for learns_from, pairs in texts.items():
        for pair in pairs():
            own, others = extension.texts(pair, learns_from), extension.others(pair, learns_from)
            for side, learnt, known in zip(sides, own, others, strict=True):
                side.read(learnt)
                side.read_characters(known)
    candidates = [side.candidates(extension.size, extension.character_coverage) for side in sides]
    models, vocabularies = list(base.models), list(base.listed)
    for vocabulary, group in enumerate(_groups(base)):
        of_group = [candidates[number] for number in group], [sides[number] for number in group]
        chosen, known = _chosen(*of_group, extension.size)
        for number, added in zip(group, chosen, strict=True):
            models[number] = sides[number].extended_model(added)
        if vocabularies:
            old = vocabularies[vocabulary]
            vocabularies[vocabulary] = replace(old, subwords=(*old.subwords, *known))
    extended = Tokenizer(models, vocabularies)
    counted = [pair for pairs in texts.values() for pair in islice(pairs(), _COUNTED // len(texts))]
    for note in _notes(extension, extended, counted, {*texts} - {""}):
        say(note)
    return extended


def spellings(
    old: Tokenizer, new: Tokenizer, like: Mapping[str, str] | None = None
) -> tuple[list[list[int]], list[list[int]]]:
    """Return the old ids that spell the subword of each new id, of the source and of the target.

    new: the result of `extend_tokenizer` or `add_tags` for `old`. like: new language -> the one whose tag spells its.
    """
    sides, owners = _sides(old), _sides(new)

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


def _sides(tokenizer: Tokenizer) -> list[ExtendedSide]:
    """Return each SentencePiece model with the vocabulary beside it, if there is one."""
    listed = [tokenizer.listed[0], tokenizer.listed[-1]] if tokenizer.listed else [None, None]
    return list(map(ExtendedSide, tokenizer.models, listed))


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


def _notes(extension: Extension, new: Tokenizer, pairs: Sequence[Pair], learnt: Set[str]) -> Iterator[str]:
    """Yield notes on the new subwords, and on what they save.

    learnt: the sides that subwords are learnt from.
    """
    old = extension.base
    for _, side, added in zip(_groups(old), ("source", "target"), _new_subwords(old, new), strict=False):
        if old.shared:
            side = "both" if len(learnt) > 1 else min(learnt)
        elif not added and learnt.isdisjoint({side, "both"}):
            continue
        name = "both sides" if side == "both" else f"the {side}"
        fewer = "" if len(added) == extension.size else "; the text has no more that would save anything"
        characters = sum(len(each) == 1 for each in added)
        yield f"{len(added)} subwords of {name} added, {characters} of them characters (tokenizer.extend){fewer}"
    encoders = {"source": (old.encode_source, new.encode_source), "target": (old.encode_target, new.encode_target)}
    for side, (before, after) in encoders.items():
        texts = [getattr(pair, side) for pair in pairs]
        ids = [list(chain.from_iterable(encode(texts))) for encode in (before, after)]
        unknown = [each.count(UNK) for each in ids]
        means = [len(each) / max(len(texts), 1) for each in ids]
        lost = f"; {unknown[1]} are unknown in {len(texts)} texts, without them {unknown[0]}" if unknown[0] else ""
        yield f"a {side} of the new text has {means[1]:.1f} subwords on average, without them {means[0]:.1f}{lost}"


def add_tags(tokenizer: Tokenizer, languages: Sequence[str], form: str) -> Tokenizer:
    """Return the tokenizer with a tag for each of these languages; itself if it has them all.

    form: of FORMS, for a tokenizer that has no tags; others keep theirs. ConfigError where a subword is spelt as a tag.
    """
    new = [language for language in languages if language not in tokenizer.languages]
    if not new:
        return tokenizer
    if tokenizer.listed:
        return Tokenizer(tokenizer.models, [_with_tags(each, new) for each in tokenizer.listed])
    written = FORMS[tokenizer.tag_form if tokenizer.languages else form]
    return Tokenizer([_with_symbols(model, [written.format(code) for code in new]) for model in tokenizer.models])


def _with_symbols(content: bytes, symbols: Sequence[str]) -> bytes:
    """Return a SentencePiece model with control symbols, which no text is spelt with, and which are no text."""
    model = model_proto(content)
    if taken := {each.piece for each in model.pieces}.intersection(symbols):
        raise ConfigError(
            f"the tokenizer has {min(taken)} as a subword, and it is to be a language's tag: leave it out of "
            "tokenizer.symbols, or choose another tokenizer.tags"
        )
    for symbol in symbols:
        model.pieces.add(piece=symbol, score=0.0, type=model.SentencePiece.CONTROL)
    model.trainer_spec.vocab_size = len(model.pieces)
    return bytes(model.SerializeToString())


def _with_tags(vocabulary: Vocabulary, languages: Sequence[str]) -> Vocabulary:
    """Return a vocabulary with tags written as those that it has: NLLB-200's are codes, M2M-100's are __en__."""
    known_code, known_tag = next(iter(vocabulary.tags.items()))
    tags = {code: known_tag.replace(known_code, code) for code in languages}
    return replace(vocabulary, subwords=(*vocabulary.subwords, *tags.values()), tags={**vocabulary.tags, **tags})
