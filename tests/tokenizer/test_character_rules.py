"""A SentencePiece model with rules makes of each character what the library makes of it."""

import pytest
from sentencepiece import SentencePieceProcessor

from tolka.text.characters import CharacterForm
from tolka.text.pairs import Pair
from tolka.tokenizer.character_rules import with_rules
from tolka.tokenizer.tokenizer import Tokenizer, TokenizerConfig
from tolka.tokenizer.training import train_tokenizer

FORM = CharacterForm(control="strip", blanks="space")
PAIRS = [Pair("the cat กา אב sleeps", "the dog กา אב barks")] * 20


def trained(**options: object) -> Tokenizer:
    config = TokenizerConfig(vocab_size=300, **options)  # type: ignore[arg-type]
    return train_tokenizer(config, lambda: iter(PAIRS), lambda remark: None)


@pytest.mark.parametrize(("language", "letter"), [("en", "a"), ("xa", "a"), ("th", "ก"), ("he", "א")])
def test_each_character(language: str, letter: str) -> None:
    processor = SentencePieceProcessor(model_proto=with_rules(trained().models[0], FORM.source, language))
    for character in "\t\r\x85\u2028\xa0\u3000\ufeff\xad\u200b\u200e\u200f\u2068\x84\x93\x81\u200c":
        text = f"{letter}{character}{letter}"
        assert processor.encode(text) == processor.encode(FORM.source(text)), ascii(character)


def test_a_model_with_rules_of_its_own_stays() -> None:
    model = trained(normalization="nfkc").models[0]
    assert with_rules(model, FORM.source, "en") == model
    assert with_rules(trained().models[0], CharacterForm().source, "en") == trained().models[0]
