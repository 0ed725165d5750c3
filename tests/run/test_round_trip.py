"""Texts that change in the tokenizer are counted and shown."""

from tolka.run.inputs import round_trip_notes
from tolka.text.pairs import Pair
from tolka.tokenizer.tokenizer import TokenizerConfig
from tolka.tokenizer.training import train_tokenizer

PAIRS = [Pair("red birds sing", "blaue Fische"), Pair("old boats drift", "rote Vögel")] * 20


def test_what_comes_back_as_it_was_is_not_mentioned() -> None:
    tokenizer = train_tokenizer(TokenizerConfig(vocab_size=320), lambda: iter(PAIRS), lambda remark: None)
    assert list(round_trip_notes(tokenizer, [Pair("red  birds", "쓰다 😀")], "the validation text")) == []


def test_unknown_characters_without_byte_fallback() -> None:
    config = TokenizerConfig(vocab_size=60, byte_fallback=False)
    tokenizer = train_tokenizer(config, lambda: iter(PAIRS), lambda remark: None)
    pairs = [Pair("red birds", "rote"), Pair("red 😀", "rote"), Pair("red", "ЖЖ rote")]
    sources, targets = round_trip_notes(tokenizer, pairs, "the validation text")
    assert sources.startswith("1 of 3 sources of the validation text change in the tokenizer: 'red 😀' comes back as")
    assert targets.startswith("1 of 3 targets of the validation text change in the tokenizer: 'ЖЖ rote' comes back as")
