"""One side of a tokenizer: text to ids and back, by a SentencePiece model, or by one and a vocabulary beside it."""

from collections.abc import Sequence
from functools import cached_property
from itertools import groupby
from typing import Any

from tolka.tokenizer.resampling import Resampler
from tolka.tokenizer.special_tokens import BLANK, UNK
from tolka.tokenizer.vocabulary import Vocabulary

# A translation is one line, and tools take a file with a NUL byte for binary.
_REPLACEMENTS = str.maketrans(dict.fromkeys(f"\n\r\0{BLANK}", " "))
_BROKEN = "\N{REPLACEMENT CHARACTER}"  # what SentencePiece writes for bytes that are not UTF-8
_BYTES = {f"<0x{byte:02X}>": byte for byte in range(256)}  # how SentencePiece names them
Rows = Sequence[Sequence[int]]


class Coder:
    """Text to ids and back, without `<s>` and `</s>`: the ids are the SentencePiece model's own.

    Bytes that make no character are left out of decoded text.
    """

    def __init__(self, processor: Any) -> None:
        self._processor = processor

    @property
    def size(self) -> int:
        """The number of subwords, special tokens included."""
        return int(self._processor.get_piece_size())

    @property
    def control_symbols(self) -> dict[str, int]:
        """Name -> id of the symbols that no text is spelt with, and that are no text."""
        numbers = list(range(self._processor.get_piece_size()))
        named = zip(self._processor.id_to_piece(numbers), self._processor.is_control(numbers), numbers, strict=True)
        return {name: number for name, is_control, number in named if is_control}

    @property
    def without_text(self) -> set[int]:
        """The ids beside the first four that stand for no text, as tags of languages do."""
        return {number for number in self.control_symbols.values() if number > UNK}

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text; none for a blank one."""
        return [*self._processor.encode(text, out_type=int)]

    def decode(self, row: Sequence[int]) -> str:
        """Return the text of ids, as one line."""
        text = self._processor.decode(list(row))
        return self._text(self.pieces(row)) if _BROKEN in text else as_line(text)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the subwords of ids, as SentencePiece writes them (▁ for a word boundary)."""
        return [str(self._processor.id_to_piece(piece)) for piece in ids]

    def resample(self, rows: Rows, amount: float, seed: int) -> list[list[int]]:
        """Return other segmentations of the same texts, as `Resampler` draws them."""
        return self._resampler(rows, amount, seed)

    def _text(self, subwords: list[str]) -> str:
        """Return the text of subwords, without bytes that make no character and without the first word boundary."""
        text = self._processor.decode(subwords)
        # U+FFFD may also be in the text itself: then the second decoding returns the same.
        return as_line(self._processor.decode(whole_characters(subwords)) if _BROKEN in text else text)

    @cached_property
    def _resampler(self) -> Resampler:
        return Resampler(self._processor)


class VocabularyCoder(Coder):
    """Text to ids and back, where ids are places in a vocabulary; subwords that it lacks are unknown, as in Marian.

    tags: whether a language tag (`>>deu<<`) at the beginning of a text is one subword, if the vocabulary has it.
    """

    def __init__(self, processor: Any, vocabulary: Vocabulary, tags: bool) -> None:
        super().__init__(processor)
        self._vocabulary, self._subwords, self._tags = vocabulary, vocabulary.subwords, tags
        # No text becomes a tag of a language, and a tag no text.
        never = vocabulary.never_text
        self._ids = {name: number for number, name in enumerate(self._subwords) if number > UNK and name not in never}
        self._never = {number for number, name in enumerate(self._subwords) if number <= UNK or name in never}
        names = super().pieces(range(processor.get_piece_size()))
        self._known = [self._ids.get(name, UNK) for name in names]  # SentencePiece's id -> ours
        self._own = {known: number for number, known in enumerate(self._known) if known != UNK}

    @property
    def size(self) -> int:
        return len(self._subwords)

    @property
    def without_text(self) -> set[int]:
        names = self._vocabulary.not_in_targets
        return {number for number, name in enumerate(self._subwords) if name in names and number > UNK}

    def encode(self, text: str) -> list[int]:
        start = []
        if self._tags and text.startswith(">>") and (end := text.find("<<") + 2) > 1 and text[:end] in self._ids:
            start, text = [self._ids[text[:end]]], text[end:]
        pieces = self._processor.encode(text, out_type=int)
        # What is unknown to this side's model may be in a vocabulary that both share: look it up by its text.
        if self._processor.unk_id() in pieces:
            return start + [self._ids.get(piece, UNK) for piece in self._processor.encode(text, out_type=str)]
        return start + [self._known[piece] for piece in pieces]

    def decode(self, row: Sequence[int]) -> str:
        """Return the text of ids; unknown subwords are left out, as by Marian's tokenizer, and tags of languages."""
        return self._text([self._subwords[number] for number in row if number not in self._never]).strip()

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._subwords[number] for number in ids]

    def resample(self, rows: Rows, amount: float, seed: int) -> list[list[int]]:
        """Return other segmentations; subwords that the SentencePiece model does not have stay as they are."""
        # Stretches of its own subwords are drawn again; an empty draw stands for the stretches between them.
        stretches = [[[*group] for _, group in groupby(row, self._own.__contains__)] for row in rows]
        own = [[self._own[number] for number in each if number in self._own] for row in stretches for each in row]
        drawn = iter(self._resampler(own, amount, seed))
        return [
            [number for each in row for number in [self._known[piece] for piece in next(drawn)] or each]
            for row in stretches
        ]

    @cached_property
    def _resampler(self) -> Resampler:
        return Resampler(self._processor, frozenset(self._own.values()))


def whole_characters(subwords: Sequence[str]) -> list[str]:
    """Return the subwords without the bytes that make no character of UTF-8, as where a translation was cut."""
    result = list[str]()
    for is_byte, group in groupby(subwords, _BYTES.__contains__):
        if is_byte:
            text = bytes(_BYTES[each] for each in group).decode(errors="ignore")
            result += [f"<0x{byte:02X}>" for byte in text.encode()]
        else:
            result += group
    return result


def as_line(decoded: str) -> str:
    """Return decoded text as one line, without the word boundary at its beginning."""
    return decoded.removeprefix(BLANK).translate(_REPLACEMENTS)
