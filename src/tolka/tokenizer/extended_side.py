"""One SentencePiece model to which subwords of new text are added; see `extension.py`."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, groupby
from typing import Any

from tolka.errors import ConfigError
from tolka.tokenizer.merges import continued_merges
from tolka.tokenizer.sentencepiece_model import model_proto, processor_of
from tolka.tokenizer.special_tokens import BLANK, UNK
from tolka.tokenizer.vocabulary import Vocabulary

_MARGIN = 0.01  # added to the sum of a unigram subword's parts: far more than rounding, far less than a score
_INHERITED = "inherited"  # script of marks, which join any letter
_TAG = re.compile(r">>[^<>\s]+<<\s*")


@dataclass(frozen=True)
class NewSubword:
    """A subword to add. score: for a unigram model. saves: number of subwords that it saves in the new text, about.

    is_unknown: whether no other subwords of the model spell it; `saves` is then the number of its occurrences.
    """

    text: str
    score: float
    saves: int
    is_unknown: bool = False

    @property
    def rank(self) -> tuple[bool, int]:
        """Sort key, the largest first: unknown subwords, then those that save most."""
        return self.is_unknown, self.saves


class ExtendedSide:
    """A SentencePiece model, the vocabulary beside it if there is one, and the words of the text read for it."""

    def __init__(self, content: bytes, vocabulary: Vocabulary | None) -> None:
        self._content, self._model = content, _proto(content)
        self._spec = self._model.trainer_spec
        self._processor = processor_of(content)
        kinds = type(self._model).SentencePiece
        pieces = self._model.pieces
        self.names = {piece.piece for piece in pieces}
        listed = None if vocabulary is None else {subword: number for number, subword in enumerate(vocabulary.subwords)}
        self._ids = listed or {piece.piece: number for number, piece in enumerate(pieces)}
        self._scores = {piece.piece: piece.score for piece in pieces if piece.type == kinds.NORMAL}
        self._bytes = {piece.piece: int(piece.piece[3:-1], 16) for piece in pieces if piece.type == kinds.BYTE}
        symbols = [piece.piece for piece in pieces if piece.type == kinds.USER_DEFINED]
        self.characters = {name for name in (*self._scores, *symbols) if len(name) == 1 and self.has_id(name)}
        self._tags = vocabulary is not None
        # Longer symbols first, as a regular expression takes the first alternative that matches; (?!) never does.
        self._symbols = re.compile("|".join(map(re.escape, sorted(symbols, key=len, reverse=True))) or r"(?!)")
        around = (r"{0}*[^{0}]+|{0}+", r"[^{0}]+{0}*|{0}+")[self._spec.treat_whitespace_as_suffix]
        self._word = re.compile(around.format(BLANK))
        self._words: Counter[str] = Counter()
        self._characters: Counter[str] = Counter()  # of text that has no words here

    def has_id(self, subword: str) -> bool:
        """Return whether the vocabulary has the subword."""
        return subword in self._ids

    def read(self, texts: Iterable[str]) -> None:
        """Count the words of texts."""
        for text in texts:
            for stretch in self._stretches(text):
                self._words.update(self._word.findall(stretch))

    def read_characters(self, texts: Iterable[str]) -> None:
        """Count the characters of texts that nothing spells, as bytes do."""
        for text in texts if not self._bytes else ():
            self._characters.update({*self._processor.normalize(text)} - self.characters)

    def _stretches(self, text: str) -> list[str]:
        """Return a text as SentencePiece normalises it, without language tags, cut at symbols that are never split."""
        tag = _TAG.match(text) if self._tags else None
        plain = text[tag.end() :] if tag and self.has_id(tag[0].strip()) else text
        return [stretch for stretch in self._symbols.split(self._processor.normalize(plain)) if stretch]

    def candidates(self, most: int, coverage: float) -> list[NewSubword]:
        """Return subwords that the model lacks, the most useful first, about `most` beside the characters.

        coverage: share of the characters read that get subwords; all of them, if nothing else spells the others.
        ConfigError for a model of whole words.
        """
        characters = self._new_characters(coverage if self._bytes else 1.0)
        lowest = min(self._scores.values(), default=0.0)
        unknown = characters | self._without_ids()
        new = [NewSubword(text, lowest, number, is_unknown=True) for text, number in _in_order(unknown)]
        kind = self._spec.model_type
        if kind == self._spec.WORD:
            raise ConfigError("tokenizer.extend adds subwords, and the tokenizer has whole words: leave it out")
        if kind == self._spec.CHAR:
            return new
        found = self._merges(most, self.characters | characters.keys(), lowest)
        return [*new, *(found if kind == self._spec.BPE else sorted(found, key=lambda each: (-each.saves, each.text)))]

    def _without_ids(self) -> dict[str, int]:
        """Return subwords of the model that the vocabulary beside it lacks -> occurrences."""
        counts: Counter[str] = Counter()
        for word, number in self._words.items() if self._tags else ():
            for piece in self._plain.encode(word.replace(BLANK, " "), out_type=str):
                if piece in self.names and not self.has_id(piece):
                    counts[piece] += number
        return {piece: number for piece, number in counts.items() if number > 1 and (len(piece) > 1 or piece == BLANK)}

    def _new_characters(self, coverage: float) -> dict[str, int]:
        """Return the characters that the model lacks -> occurrences, the frequent ones first, as far as `coverage`."""
        counts: Counter[str] = Counter()
        for word, number in self._words.items():
            for character in word.replace(BLANK, ""):
                counts[character] += number
        counts.update({each: number for each, number in self._characters.items() if each != BLANK})
        new, seen, enough = {}, 0, coverage * counts.total()
        for character, number in _in_order(counts):
            if seen >= enough:
                break
            seen += number
            if character not in self.characters and character != "\0":
                new[character] = number
        return new

    def _merges(self, most: int, characters: Set[str], lowest: float) -> list[NewSubword]:
        """Return new subwords of these characters by continued merging. lowest: score of new characters."""
        segmented: Counter[tuple[str, ...]] = Counter()
        for word, number in self._words.items():
            segmented[self._segmentation(word)] += number
        splits = self._spec.split_by_unicode_script

        def allowed(text: str) -> bool:
            # The rules by which SentencePiece trained the model, from its trainer_spec.
            body = text.strip(BLANK)
            return (
                len(text) <= self._spec.max_sentencepiece_length
                and text not in self.names
                and BLANK not in body
                and characters >= {*body}
                and (not splits or len({*map(_script, body)} - {_INHERITED}) <= 1)
                and not (self._spec.split_digits and any(map(str.isdigit, body)))
            )

        if self._spec.model_type == self._spec.BPE:
            merges = continued_merges(segmented, self._scores, most, allowed)
            return [NewSubword(merge.text, 0.0, merge.occurrences) for merge in merges]
        # A unigram model prefers the segmentation with the largest sum of scores: a new subword has that of its parts
        # and a little more, so that it replaces just these.
        summed = dict.fromkeys(characters, lowest) | self._scores
        found, parts = list[NewSubword](), dict.fromkeys(summed, 1)
        for merge in continued_merges(segmented, {}, 2 * most, allowed):
            summed[merge.text] = sum(summed[part] for part in merge.parts) + _MARGIN
            parts[merge.text] = sum(parts[part] for part in merge.parts)
            # Nothing is merged by a unigram model: a subword that is only a part of others is not needed.
            if merge.left > 1:
                found.append(NewSubword(merge.text, summed[merge.text], merge.left * (parts[merge.text] - 1)))
        return found

    def _segmentation(self, word: str) -> tuple[str, ...]:
        """Return the subwords of a word, with unknown stretches cut into characters."""
        parts: list[str] = []
        pieces = self._plain.encode(word.replace(BLANK, " "), out_type=str)
        for is_byte, group in groupby(pieces, self._bytes.__contains__):
            if is_byte:
                parts += bytes(self._bytes[piece] for piece in group).decode(errors="replace")
            else:
                parts += chain.from_iterable([piece] if piece in self._scores else piece for piece in group)
        return tuple(parts)

    @cached_property
    def _plain(self) -> Any:
        """The SentencePiece model without normalisation, for stretches of text that are normalised already."""
        model = _proto(self._content)
        normalizer = model.normalizer_spec
        normalizer.name, normalizer.precompiled_charsmap = "identity", b""
        normalizer.add_dummy_prefix = normalizer.remove_extra_whitespaces = False
        normalizer.escape_whitespaces = True
        return processor_of(model.SerializeToString())

    def ids(self, subword: str) -> list[int]:
        """Return the ids by which the model spells a subword, one for each stretch that it does not know."""
        return [self._ids.get(piece, UNK) for piece in self._plain.encode(subword.replace(BLANK, " "), out_type=str)]

    def extended_model(self, added: Sequence[NewSubword]) -> bytes:
        """Return the SentencePiece model with subwords appended, which BPE merges after all old ones."""
        model = _proto(self._content)
        is_unigram, lowest = self._spec.model_type == self._spec.UNIGRAM, min(self._scores.values(), default=0.0)
        for place, candidate in enumerate(each for each in added if each.text not in self.names):
            model.pieces.add(piece=candidate.text, score=candidate.score if is_unigram else lowest - place - 1)
        model.trainer_spec.vocab_size = len(model.pieces)
        return bytes(model.SerializeToString())


def _proto(content: bytes) -> Any:
    """Parse a model, without its self-test: new subwords may change the segmentations that it expects."""
    model = model_proto(content)
    model.DiscardUnknownFields()  # in which Python's protobuf keeps the self-test
    return model


def _in_order(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return texts with their counts, the largest first, equal ones by the alphabet."""
    return sorted(counts.items(), key=lambda each: (-each[1], each[0]))


@cache
def _script(character: str) -> str:
    """Return the script of a letter, or "" for digits and all else: SentencePiece mixes no scripts in a subword."""
    category = unicodedata.category(character)[0]
    if category != "L":
        return _INHERITED if category == "M" else ""
    script = unicodedata.name(character, "").partition(" ")[0]
    return "CJK" if script in ("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA") else script
