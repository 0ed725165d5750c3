"""Vocabularies beside SentencePiece models, as Marian's, whose ids are not those of the model.

`vocabulary.json` has the subwords in the order of their ids, one list for both sides or one for each.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tolka.errors import CheckpointError
from tolka.system.whole_files import read_text
from tolka.tokenizer.special_tokens import UNK

VOCABULARY = "vocabulary.json"
SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")
"""The first subwords of every vocabulary; their ids are PAD, BOS, EOS and UNK."""
MOST_BYTES = 2**26
"""Ceiling on the size of a vocabulary or a SentencePiece model."""
_MOST = 2_000_000  # subwords


@dataclass(frozen=True)
class Vocabulary:
    """Subwords in the order of their ids, `SPECIAL` first.

    places: ids of `</s>`, `<unk>` and `<pad>` in the original vocabulary, which has no `<s>`; all other subwords have
    the same order in both.
    """

    subwords: tuple[str, ...]
    places: tuple[int, int, int]

    @classmethod
    def of(cls, subwords: Sequence[str], eos: int, unk: int, pad: int) -> "Vocabulary":
        """Make a vocabulary of the subwords of another one, in which these ids are those of the special tokens."""
        special = {eos, unk, pad}
        others = [subword for number, subword in enumerate(subwords) if number not in special]
        return cls((*SPECIAL, *others), (eos, unk, pad))

    def ids_in_original_order(self) -> list[int]:
        """Return, for each id of the original vocabulary, the id here; for its `<pad>`, BOS."""
        # Marian's decoder starts from <pad>: it is our <s>, and our <pad> has no counterpart.
        eos, unk, pad = self.places
        special = {eos: SPECIAL.index("</s>"), unk: UNK, pad: SPECIAL.index("<s>")}
        others = iter(range(len(SPECIAL), len(self.subwords)))
        return [special[place] if place in special else next(others) for place in range(len(self.subwords) - 1)]


def in_sentencepiece_order(pieces: Sequence[str]) -> Vocabulary:
    """Return the vocabulary of a SentencePiece model with tolka's ids. pieces: all subwords of the model."""
    # The places are those of Marian's usual order: </s>, <unk>, the others, <pad>.
    return Vocabulary((*SPECIAL, *pieces[len(SPECIAL) :]), (0, 1, len(pieces) - 2))


def as_json(vocabularies: Sequence[Vocabulary]) -> str:
    """Return the content of `vocabulary.json`. vocabularies: one for both sides, or the source's and the target's."""
    content = {"subwords": [each.subwords for each in vocabularies], "places": [each.places for each in vocabularies]}
    return json.dumps(content, ensure_ascii=False, indent=0)


def read_vocabularies(folder: Path) -> list[Vocabulary]:
    """Read `vocabulary.json`; [] if there is no such file. CheckpointError if it is damaged."""
    path = folder / VOCABULARY
    try:
        content = json.loads(read_text(path, MOST_BYTES))
        lists, places = content["subwords"], content["places"]
        if len(lists) not in (1, 2):
            raise ValueError(f"it has {len(lists)} lists of subwords")
        return [_checked(*each) for each in zip(lists, places, strict=True)]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged ({' '.join(str(error).split())[:200]})") from None


def _checked(subwords: Any, places: Any) -> Vocabulary:
    """Return the vocabulary; ValueError for anything else."""
    if not isinstance(subwords, list) or not all(isinstance(subword, str) for subword in subwords):
        raise ValueError("a vocabulary is a list of texts")
    if tuple(subwords[: len(SPECIAL)]) != SPECIAL or len(subwords) > _MOST:
        raise ValueError(f"a vocabulary begins with {', '.join(SPECIAL)}, and has at most {_MOST} subwords")
    size = len(subwords) - 1
    fit = isinstance(places, list) and all(type(place) is int and 0 <= place < size for place in places)
    if not fit or len({*places}) != 3:
        raise ValueError(f"places are three ids below {size}")
    eos, unk, pad = places
    return Vocabulary(tuple(subwords), (eos, unk, pad))
