"""Vocabularies beside SentencePiece models, as Marian's or M2M-100's, whose ids are not those of the model.

`vocabulary.json` has the subwords in the order of their ids, one list for both sides or one for each, and the tags of
languages.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tolka.errors import CheckpointError
from tolka.system.whole_files import read_text

VOCABULARY = "vocabulary.json"
SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")
"""The first subwords of every vocabulary; their ids are PAD, BOS, EOS and UNK."""
MOST_BYTES = 2**26
"""Ceiling on the size of a vocabulary or a SentencePiece model."""
TYPED_TAG = re.compile(r">>(\S+)<<")
"""A tag that is typed before a source, as in Marian's multilingual models."""
_MOST = 2_000_000  # subwords
_NEVER_TEXT = re.compile(r"<mask>|madeupword\d+")  # of fairseq's vocabularies: rows without a text


@dataclass(frozen=True)
class Vocabulary:
    """Subwords in the order of their ids, `SPECIAL` first.

    places: ids of `</s>`, `<unk>`, `<pad>` and, if it has one, `<s>` in the original vocabulary; all other subwords
    have the same order in both. tags: language -> the subword that is its tag.
    """

    subwords: tuple[str, ...]
    places: tuple[int, ...]
    tags: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, subwords: Sequence[str], places: tuple[int, ...], tags: Mapping[str, str] | None = None
    ) -> "Vocabulary":
        """Make a vocabulary of the subwords of another one, in which these are the ids of the special tokens."""
        others = [subword for number, subword in enumerate(subwords) if number not in places]
        return cls((*SPECIAL, *others), places, tags or {})

    @cached_property
    def tag_ids(self) -> dict[str, int]:
        """Language -> id of its tag."""
        ids = {subword: number for number, subword in enumerate(self.subwords)} if self.tags else {}
        return {language: ids[tag] for language, tag in self.tags.items()}

    @property
    def never_text(self) -> set[str]:
        """The subwords that stand for no text: tags, and rows that other programs fill up a vocabulary with."""
        return {*self.tags.values(), *filter(_NEVER_TEXT.fullmatch, self.subwords if self.tags else ())}

    @property
    def not_in_targets(self) -> set[str]:
        """The subwords that no translation has: those of `never_text`, and tags that are typed before a source."""
        return {*self.never_text, *filter(TYPED_TAG.fullmatch, self.subwords)}

    def ids_in_original_order(self) -> list[int]:
        """Return, for each id of the original vocabulary, the id here; without an `<s>`, for its `<pad>` BOS."""
        # Marian's decoder starts from <pad>: it is our <s>, and our <pad> has no counterpart.
        names = ("</s>", "<unk>", "<pad>", "<s>") if len(self.places) == 4 else ("</s>", "<unk>", "<s>")
        special = {place: SPECIAL.index(name) for place, name in zip(self.places, names, strict=True)}
        others, size = iter(range(len(SPECIAL), len(self.subwords))), original_size(len(self.subwords), self.places)
        return [special[place] if place in special else next(others) for place in range(size)]


def original_size(size: int, places: Sequence[int]) -> int:
    """Return the number of subwords in the original of a vocabulary of `size`, which may lack our `<s>` or `<pad>`."""
    return size - len(SPECIAL) + len(places)


def in_sentencepiece_order(pieces: Sequence[str]) -> Vocabulary:
    """Return the vocabulary of a SentencePiece model with tolka's ids. pieces: all subwords of the model."""
    # The places are those of Marian's usual order: </s>, <unk>, the others, <pad>.
    return Vocabulary((*SPECIAL, *pieces[len(SPECIAL) :]), (0, 1, len(pieces) - 2))


def as_json(vocabularies: Sequence[Vocabulary]) -> str:
    """Return the content of `vocabulary.json`. vocabularies: one for both sides, or the source's and the target's."""
    content: dict[str, Any] = {name: [getattr(each, name) for each in vocabularies] for name in ("subwords", "places")}
    if any(each.tags for each in vocabularies):
        content["tags"] = [each.tags for each in vocabularies]
    return json.dumps(content, ensure_ascii=False, indent=0)


def read_vocabularies(folder: Path) -> list[Vocabulary]:
    """Read `vocabulary.json`; [] if there is no such file. CheckpointError if it is damaged."""
    path = folder / VOCABULARY
    try:
        content = json.loads(read_text(path, MOST_BYTES))
        lists, places = content["subwords"], content["places"]
        tags = content.get("tags", [{}] * len(lists))
        if len(lists) not in (1, 2):
            raise ValueError(f"it has {len(lists)} lists of subwords")
        return [_checked(*each) for each in zip(lists, places, tags, strict=True)]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged ({' '.join(str(error).split())[:200]})") from None


def _checked(subwords: Any, places: Any, tags: Any) -> Vocabulary:
    """Return the vocabulary; ValueError for anything else."""
    if not isinstance(subwords, list) or not all(isinstance(subword, str) for subword in subwords):
        raise ValueError("a vocabulary is a list of texts")
    if tuple(subwords[: len(SPECIAL)]) != SPECIAL or len(subwords) > _MOST:
        raise ValueError(f"a vocabulary begins with {', '.join(SPECIAL)}, and has at most {_MOST} subwords")
    if not isinstance(places, list) or len(places) not in (3, 4):
        raise ValueError("places are three or four ids")
    size = original_size(len(subwords), places)
    if not all(type(place) is int and 0 <= place < size for place in places) or len({*places}) != len(places):
        raise ValueError(f"places are ids below {size}, each another one")
    if not isinstance(tags, dict) or not {*map(str, tags.values())} <= {*subwords}:
        raise ValueError("tags are subwords of the vocabulary")
    return Vocabulary(tuple(subwords), tuple(places), tags)
