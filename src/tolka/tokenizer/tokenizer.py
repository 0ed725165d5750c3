"""SentencePiece tokenizers (Kudo and Richardson 2018); the model *is* the vocabulary."""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tolka.errors import CheckpointError, ConfigError, DataError
from tolka.options.checks import at_most, one_of, zero_or_more
from tolka.options.settings import setting
from tolka.system.whole_files import read_whole
from tolka.text.direction import UNKNOWN, Direction
from tolka.text.lines import user_path
from tolka.tokenizer.coders import Coder, VocabularyCoder
from tolka.tokenizer.language_tags import FORMS, NO_TAGS, Tags, tags_of, written_tags
from tolka.tokenizer.sentencepiece_model import model_proto, processor_of
from tolka.tokenizer.special_tokens import BLANK, BOS, EOS, PAD, UNK
from tolka.tokenizer.vocabulary import (
    MOST_BYTES,
    SPECIAL,
    TYPED_TAG,
    VOCABULARY,
    Vocabulary,
    as_json,
    in_sentencepiece_order,
    read_vocabularies,
)

_TYPES = ("bpe", "unigram", "char", "word")
_RESERVED = re.compile(r"<(?:pad|s|/s|unk|0x[0-9A-F]{2})>")
SEED_SYMBOLS = 4 + 256  # the four special ids and, with byte fallback, a subword for each byte
_TRAINED_HERE = ("tokenizer.is_trained_here", "a tokenizer to train")


@dataclass(frozen=True)
class TokenizerConfig:
    """Options of the SentencePiece models."""

    type: str = setting("bpe", needs=_TRAINED_HERE)
    """bpe (Sennrich et al. 2016), unigram (Kudo 2018), char (characters), or word (separated by whitespace)"""
    vocab_size: int = setting(8000, needs=_TRAINED_HERE)
    """subwords in each vocabulary; fewer, with a note, when the corpus is too small for it"""
    shared: bool = True
    """one vocabulary for both languages, or one for each"""
    byte_fallback: bool = setting(True, needs=_TRAINED_HERE)
    """encode unknown characters as bytes, so that nothing becomes an unknown token"""
    normalization: str = setting("identity", needs=_TRAINED_HERE)
    """identity (text as it is) or nfkc (Unicode compatibility composition, applied to what is read, never undone)"""
    character_coverage: float = setting(0.9995, needs=_TRAINED_HERE)
    """share of the characters that get subwords of their own; the others are spelt as bytes; 0.98 to 1"""
    symbols: list[str] = setting(default_factory=list, needs=_TRAINED_HERE)
    """texts that are always one piece, as placeholders and tags are: ['%s','<br>']"""
    sample: int = setting(1_000_000, needs=_TRAINED_HERE)
    """pairs that the tokenizer learns from, drawn from all of the training text, always the same ones; 0 = all"""
    model: list[str] = setting(default_factory=list, literal=True)
    """SentencePiece model to use instead of training one: a file for both sides, or the source's and the target's"""
    tags: str = setting("source", needs=("corpus.is_of_several_directions", "texts of several directions"))
    """of several directions, where a language's tag stands: source (>>ko<< before the source), target, or both"""
    extend: int = 0
    """subwords of the new text, or of its new language, added to each vocabulary of run.init_from's model; 0 = none"""

    def __post_init__(self) -> None:
        one_of(self, "tokenizer", "type", _TYPES)
        one_of(self, "tokenizer", "normalization", ("identity", "nfkc"))
        zero_or_more(self, "tokenizer", "all", "sample")
        zero_or_more(self, "tokenizer", "none", "extend")
        one_of(self, "tokenizer", "tags", FORMS)
        at_most(self, "tokenizer", 1_000_000, "extend", "vocab_size")
        least = SEED_SYMBOLS + 40 if self.byte_fallback else 50
        if self.vocab_size < least:
            raise ConfigError(
                f"tokenizer.vocab_size ({self.vocab_size}) must be at least {least}"
                + (", because 260 of the subwords are bytes and special symbols" if self.byte_fallback else "")
            )
        # SentencePiece's own limits.
        if not 0.98 <= self.character_coverage <= 1.0:
            raise ConfigError(f"tokenizer.character_coverage ({self.character_coverage}) must be from 0.98 to 1.0")
        if self.symbols:
            self._check_symbols(self.vocab_size - least)
        if self.model and len(self.model) != (1 if self.shared else 2):
            raise ConfigError(
                f"tokenizer.model ({', '.join(self.model)}) must be one file for both sides, with "
                "tokenizer.shared=true, or the source's and the target's, with tokenizer.shared=false"
            )

    def _check_symbols(self, max_symbols: int) -> None:
        """Raise ConfigError unless each symbol can be a subword and all of them fit into the vocabulary."""
        if self.type == "word":
            raise ConfigError(
                "tokenizer.symbols have no effect where words are whole: choose tokenizer.type=bpe, unigram or char"
            )
        for symbol, times in Counter(self.symbols).items():
            if times > 1 or _RESERVED.fullmatch(symbol) or symbol.split() != [symbol] or BLANK in symbol:
                raise ConfigError(
                    f"tokenizer.symbols: '{symbol}' must be a text without blanks, named once, and no special symbol"
                )
        if len(self.symbols) > max_symbols:
            raise ConfigError(
                f"tokenizer.symbols ({len(self.symbols)} of them) leave no space for other subwords: raise "
                f"tokenizer.vocab_size ({self.vocab_size})"
            )

    @property
    def is_trained_here(self) -> bool:
        """Whether a new tokenizer is trained; False if `model` gives one."""
        return not self.model

    def load_given(self) -> "Tokenizer | None":
        """Return the tokenizer in `model`; DataError when a file is invalid."""
        return Tokenizer([load_pretrained(user_path(path)) for path in self.model]) if self.model else None


_SHARED, _SEPARATE = ["tokenizer.model"], ["source.model", "target.model"]  # files of a saved tokenizer


class Tokenizer:
    """Text to ids and back, for both sides, without special tokens: `collate` adds `<s>` and `</s>`."""

    def __init__(self, models: Sequence[bytes], vocabularies: Sequence[Vocabulary] = ()) -> None:
        """models: one serialised SentencePiece model for both sides, or one for each (source, target).

        vocabularies: if ids are not those of the models, one for both sides or one for each.
        """
        self.models, self.listed = list(models), list(vocabularies)
        self._processors = [processor_of(model) for model in self.models]
        if vocabularies:
            # One model with one vocabulary is one coder: of 256 000 subwords it takes a second.
            sides = range(max(len(models), len(vocabularies)))
            self._coders: list[Coder] = [
                VocabularyCoder(self._processors[: n + 1][-1], vocabularies[: n + 1][-1], tags=n == 0) for n in sides
            ]
            return
        # Batches, losses and searches know these tokens by their ids.
        for processor in self._processors:
            if (ids := _special_ids(processor)) != (PAD, BOS, EOS, UNK):
                raise CheckpointError(f"this SentencePiece model numbers its special symbols {ids}, not (0, 1, 2, 3)")
        self._coders = [Coder(processor) for processor in self._processors]

    @property
    def shared(self) -> bool:
        """Whether source and target ids mean the same subwords."""
        return len(self.listed or self.models) == 1

    @property
    def vocabularies(self) -> list[Vocabulary]:
        """The vocabulary of both sides, or of each, with the places of its special tokens in another program's."""
        return [*self.listed] or [in_sentencepiece_order(coder.pieces(range(coder.size))) for coder in self._coders]

    @property
    def digests(self) -> list[str]:
        """SHA-256 of each SentencePiece model, and of the vocabularies beside them: equal ones give equal ids."""
        return [hashlib.sha256(content).hexdigest() for content in self._files.values()]

    @property
    def source_size(self) -> int:
        """Number of source subwords."""
        return self._coders[0].size

    @property
    def target_size(self) -> int:
        """Number of target subwords."""
        return self._coders[-1].size

    @cached_property
    def _tags(self) -> tuple[str, list[dict[str, int]]]:
        """The form of the tags, and language -> id of its tag on each side."""
        if self.listed:
            form = "both" if self.listed[0].tags else "source"  # Marian's are those of OPUS-MT
            return form, [self.listed[0].tag_ids, self.listed[-1].tag_ids]
        (form, source), (_, target) = (written_tags(self._coders[side].control_symbols) for side in (0, -1))
        return form, [source, target]

    @property
    def tag_ids(self) -> list[dict[str, int]]:
        """Language -> id of its tag, of the source and of the target."""
        return self._tags[1]

    @property
    def tag_form(self) -> str:
        """Where the tags of languages stand, of `FORMS`."""
        return self._tags[0]

    @property
    def languages(self) -> list[str]:
        """The languages for which there are tags; none for a model of one direction."""
        return list(self._tags[1][0])

    def tags(self, direction: Direction) -> Tags:
        """Return the ids of the tags of a direction; none for a model that has no tags. ConfigError as `tags_of`."""
        form, (source, target) = self._tags
        if typed := self.replaced_tags(direction):
            return Tags((typed[direction.target],))
        return tags_of(direction, source, target, form) if source else NO_TAGS

    @cached_property
    def typed_tags(self) -> dict[str, int]:
        """Language -> id of the tag that may be typed before a source, as `>>deu<<` in Marian's multilingual models.

        A target language that has one gets it; for any other, as the group `roa`, the texts bring theirs.
        """
        names = self.listed[0].subwords if self.listed and not self.languages else ()
        return {tag[1]: n for n, name in enumerate(names) if (tag := TYPED_TAG.fullmatch(name))}

    @cached_property
    def without_text(self) -> tuple[int, ...]:
        """The target ids that no translation has: tags of languages, and rows that only fill a vocabulary up."""
        return tuple(sorted(self._coders[-1].without_text))

    def replaced_tags(self, direction: Direction) -> dict[str, int]:
        """Return the typed tags that give way to the direction's own; none for a direction that has none of them."""
        return self.typed_tags if direction.target in self.typed_tags else {}

    def tag_before(self, direction: Direction) -> str:
        """Return the tags to type before a source in another program, as `>>ko<< `; "" if there are none."""
        ids = self.tags(direction).source if self.tag_form == "source" else ()
        return "".join(f"{tag} " for tag in self.source_pieces(ids))

    # Texts are encoded one by one: SentencePiece passes lists to its thread pool, which was seen to hang (0.2.3, on a
    # busy machine).
    def encode_source(self, texts: Sequence[str], direction: Direction = UNKNOWN) -> list[list[int]]:
        """Return the ids of each source text; none for a blank one.

        direction: if it has a tag that may be typed, one that a text begins with is left out.
        """
        rows = [self._coders[0].encode(text) for text in texts]
        typed = {*self.replaced_tags(direction).values()}
        return [row[1:] if typed and row and row[0] in typed else row for row in rows]

    def encode_target(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each target text; none for a blank one."""
        return [self._coders[-1].encode(text) for text in texts]

    def resample_source(self, rows: Sequence[Sequence[int]], amount: float, seed: int) -> list[list[int]]:
        """Return other segmentations of the same source texts, as `Resampler` draws them."""
        return self._coders[0].resample(rows, amount, seed)

    def resample_target(self, rows: Sequence[Sequence[int]], amount: float, seed: int) -> list[list[int]]:
        """Return other segmentations of the same target texts, as `Resampler` draws them."""
        return self._coders[-1].resample(rows, amount, seed)

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the subwords of source ids, as SentencePiece writes them (▁ for a word boundary)."""
        return self._coders[0].pieces(ids)

    def target_pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the subwords of target ids."""
        return self._coders[-1].pieces(ids)

    def decode_source(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Return the text of each row of source ids."""
        return [self._coders[0].decode(row) for row in rows]

    def decode_target(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Return the text of each row of target ids."""
        return [self._coders[-1].decode(row) for row in rows]

    @property
    def _files(self) -> dict[str, bytes]:
        """The content of each file that `save` writes."""
        files = dict(zip(_SHARED if len(self.models) == 1 else _SEPARATE, self.models, strict=True))
        return {**files, VOCABULARY: as_json(self.listed).encode()} if self.listed else files

    @property
    def file_names(self) -> list[str]:
        """Names of the files that `save` writes: tokenizer.model, or source.model and target.model; vocabulary.json."""
        return list(self._files)

    def save(self, folder: Path) -> None:
        """Write the models and the vocabularies beside them."""
        for name, content in self._files.items():
            (folder / name).write_bytes(content)

    @classmethod
    def load(cls, folder: Path) -> "Tokenizer":
        """Load what `save` wrote."""
        vocabularies = read_vocabularies(folder)
        names = _SHARED if (folder / _SHARED[0]).exists() else _SEPARATE
        try:
            return cls([read_whole(folder / name, MOST_BYTES) for name in names], vocabularies)
        except FileNotFoundError as error:
            raise CheckpointError(f"{error.filename} is missing: the folder has no tokenizer") from None
        except ValueError as error:
            raise CheckpointError(f"{folder / names[0]} cannot be read ({error})") from None
        except RuntimeError:
            raise CheckpointError(f"{folder / names[0]} is not a SentencePiece model") from None


def load_pretrained(path: Path) -> bytes:
    """Return the serialised model, renumbered: `<pad>`, `<s>`, `</s>` and `<unk>` first, the other subwords in order.

    Its segmentations do not change. DataError when the file is not a SentencePiece model.
    """
    try:
        content = read_whole(path, MOST_BYTES)
        processor = processor_of(content)
    except (OSError, ValueError) as error:
        raise DataError(f"tokenizer.model: {path} cannot be read ({getattr(error, 'strerror', error)})") from None
    except RuntimeError:
        raise DataError(
            f"tokenizer.model: {path} is not a SentencePiece model (as spm_train writes, NAME.model)"
        ) from None
    model = model_proto(content)
    ids = _special_ids(processor)  # -1 for one that the model lacks
    if ids == (PAD, BOS, EOS, UNK):
        return content
    others = [piece for number, piece in enumerate(model.pieces) if number not in ids]
    kinds = model.SentencePiece
    del model.pieces[:]
    for number, name in enumerate(SPECIAL):
        model.pieces.add(piece=name, score=0.0, type=kinds.UNKNOWN if number == UNK else kinds.CONTROL)
    model.pieces.extend(others)
    spec = model.trainer_spec
    spec.pad_id, spec.bos_id, spec.eos_id, spec.unk_id = PAD, BOS, EOS, UNK
    spec.pad_piece, spec.bos_piece, spec.eos_piece, spec.unk_piece = SPECIAL
    return bytes(model.SerializeToString())


def _special_ids(processor: Any) -> tuple[int, ...]:
    return processor.pad_id(), processor.bos_id(), processor.eos_id(), processor.unk_id()
