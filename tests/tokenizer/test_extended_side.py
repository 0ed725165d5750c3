"""One SentencePiece model of an extended tokenizer: which subwords it proposes, and how they are appended."""

from collections.abc import Sequence
from functools import cache

import pytest

from tolka.errors import ConfigError
from tolka.text.pairs import Pair
from tolka.tokenizer.coders import Coder
from tolka.tokenizer.extended_side import ExtendedSide, NewSubword
from tolka.tokenizer.sentencepiece_model import processor_of
from tolka.tokenizer.tokenizer import TokenizerConfig
from tolka.tokenizer.training import train_tokenizer
from tolka.tokenizer.vocabulary import SPECIAL, Vocabulary

OLD = ["the old boat drifts home", "red birds sing", "blue fish swim"] * 20
NEW = ["boathouse boathouse ж", "boathouse ж", "ж q"]


@cache
def model(kind: str = "bpe", has_bytes: bool = False) -> bytes:
    """A model of the old text, which has neither "q" nor Cyrillic letters."""
    size = 320 if has_bytes else 60
    config = TokenizerConfig(type=kind, vocab_size=size, byte_fallback=has_bytes, character_coverage=1.0)
    pairs = [Pair(text, text) for text in OLD]
    return train_tokenizer(config, lambda: iter(pairs), lambda note: None).models[0]


def side_of(texts: Sequence[str], kind: str = "bpe", vocabulary: Vocabulary | None = None) -> ExtendedSide:
    side = ExtendedSide(model(kind), vocabulary)
    side.read(texts)
    return side


def test_characters_come_before_merges_and_the_frequent_ones_first() -> None:
    """ж occurs three times and q once; "boathouse" is merged of known letters."""
    new = side_of(NEW).candidates(50, 1.0)
    assert [(each.text, each.saves) for each in new[:2]] == [("ж", 3), ("q", 1)]
    assert [each.is_unknown for each in new[:3]] == [True, True, False]
    assert "▁boathouse" in [each.text for each in new]


def test_rare_characters_are_left_out_by_coverage() -> None:
    """The last of 31 characters is the q; where no byte spells it, it is not left out."""
    assert [each.text for each in side_of(NEW).candidates(50, 0.95) if each.is_unknown] == ["ж", "q"]
    side = ExtendedSide(model(has_bytes=True), None)
    side.read(NEW)
    assert [each.text for each in side.candidates(50, 0.95) if each.is_unknown] == ["ж"]


def test_appended_merges_come_after_all_old_ones() -> None:
    side = side_of(NEW)
    extended = Coder(processor_of(side.extended_model(side.candidates(50, 1.0))))
    old = Coder(processor_of(model()))
    assert all(extended.encode(text) == old.encode(text) for text in OLD)
    assert extended.pieces(extended.encode("boathouse ж")) == ["▁boathouse", "▁ж"]
    assert extended.size > old.size


def test_a_subword_is_spelt_by_old_ids() -> None:
    side, old = side_of(NEW), Coder(processor_of(model()))
    assert old.pieces(side.ids("▁boathouse"))[0].startswith("▁b")
    assert "".join(old.pieces(side.ids("▁boathouse"))) == "▁boathouse"
    assert side.ids("жж") == [3]  # one stretch of unknown characters


def test_a_model_of_characters_gets_characters_and_one_of_words_nothing() -> None:
    new = side_of(NEW, "char").candidates(50, 1.0)
    assert (new[0].text, new[0].saves, new[0].is_unknown) == ("ж", 3, True)
    with pytest.raises(ConfigError, match="the tokenizer has whole words"):
        side_of(NEW, "word").candidates(50, 1.0)


def test_a_language_tag_that_the_vocabulary_has_is_not_read() -> None:
    pieces = Coder(processor_of(model())).pieces(range(4, 60))
    vocabulary = Vocabulary((*SPECIAL, *pieces, ">>kor<<"), (0, 1, len(pieces) + 3))
    new = side_of([">>kor<< boat", ">>deu<< boat"], vocabulary=vocabulary).candidates(50, 1.0)
    assert {each.text for each in new if each.is_unknown} == {">", "<"}  # of the tag that it lacks


def test_unknown_subwords_rank_above_all_that_save_more() -> None:
    assert NewSubword("ж", 0.0, 1, is_unknown=True).rank > NewSubword("boat", 0.0, 900).rank
