"""SentencePiece as this package uses it: text comes back as it went in, whatever its characters."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tolka.errors import CheckpointError, ConfigError
from tolka.text.corpus import Pair
from tolka.text.tokenizer import Tokenizer, TokenizerConfig, train_tokenizer

WORDS = ["lantern", "kettle", "harbour", "pebble", "saddle", "orchid", "copper", "velvet", "walnut", "ferry"]


def pairs() -> Iterator[Pair]:
    for i in range(60):
        words = [WORDS[(i * k) % 10] for k in (1, 3, 7)]
        yield Pair(" ".join(words), " ".join(reversed(words)).upper())


def trained(**options: object) -> tuple[Tokenizer, list[str]]:
    remarks: list[str] = []
    config = TokenizerConfig(**{"vocab_size": 320, **options})  # type: ignore[arg-type]
    return train_tokenizer(config, pairs, remarks.append), remarks


@cache
def small() -> Tokenizer:
    return trained()[0]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1), min_size=1))
def test_words_between_single_blanks_come_back(words: list[str]) -> None:
    # U+2581 is SentencePiece's own mark for a blank.
    text = " ".join(words).replace("\u2581", "_")
    assert small().decode_target(small().encode_target([text])) == [text]


def test_blank_texts_have_no_pieces() -> None:
    assert small().encode_source(["", " ", "\u3000 \t"])[:2] == [[], []]
    assert small().decode_target([[]]) == [""]


@pytest.mark.parametrize(("byte", "shown"), [(10, "a b"), (13, "a b"), (0, "a\ufffdb")])
def test_a_byte_that_would_break_the_line_is_replaced(byte: int, shown: str) -> None:
    a, b = (small().encode_target([letter])[0] for letter in "ab")
    spelt = small()._processors[0].piece_to_id(f"<0x{byte:02X}>")
    # The piece of "b" begins with the mark of a blank, which becomes one more blank.
    assert small().decode_target([[*a, spelt, *b]])[0].replace("  ", " ").replace("\ufffd ", "\ufffd") == shown


def test_a_broken_character_becomes_the_replacement_character() -> None:
    first_byte_of_hangul = small()._processors[0].piece_to_id("<0xED>")
    assert small().decode_target([[first_byte_of_hangul]]) == ["\ufffd"]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_vocabulary_too_large_for_the_corpus_shrinks_and_says_so(kind: str) -> None:
    tokenizer, remarks = trained(type=kind, vocab_size=30_000)
    assert 300 < tokenizer.source_size < 30_000
    assert remarks == [f"the corpus is too small for 30000 shared pieces: the vocabulary has {tokenizer.source_size}"]


def test_two_vocabularies_are_saved_and_loaded(tmp_path: Path) -> None:
    tokenizer, _ = trained(shared=False)
    assert {path.name for path in tokenizer.save(tmp_path)} == {"source.model", "target.model"}
    again = Tokenizer.load(tmp_path)
    assert not again.shared
    assert again.encode_source(WORDS) == tokenizer.encode_source(WORDS)
    assert again.encode_target(WORDS) == tokenizer.encode_target(WORDS)


def test_the_same_text_gives_the_same_model() -> None:
    assert trained()[0].models == trained()[0].models


def test_lines_too_long_to_learn_from_are_counted() -> None:
    remarks: list[str] = []
    train_tokenizer(
        TokenizerConfig(vocab_size=320), lambda: iter([*pairs(), Pair("ab " * 10_000, "x")]), remarks.append
    )
    assert remarks == ["SentencePiece learnt nothing from 1 shared lines of over 16384 bytes"]


def test_a_folder_without_a_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"source.model is missing: the folder has no tokenizer"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.model").write_bytes(b"no model")
    with pytest.raises(CheckpointError, match="is no SentencePiece model"):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"type": "bep"}, r"tokenizer.type \('bep'\) is unknown. Did you mean 'bpe'"),
        ({"normalization": "nfc"}, r"tokenizer.normalization \('nfc'\) is unknown. Did you mean 'nfkc'"),
        ({"vocab_size": 299}, "must be at least 300"),
        ({"vocab_size": 1_000_001}, "must be at most 1000000"),
        ({"character_coverage": 0.5}, "must be from 0.9 to 1.0"),
    ],
)
def test_options_out_of_range(options: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        TokenizerConfig(**options)  # type: ignore[arg-type]


def test_normalization_and_byte_fallback_have_their_effect() -> None:
    pairs = [Pair("the office is open", "das büro ist offen")] * 8

    def back(text: str, **options: Any) -> str:
        made = train_tokenizer(TokenizerConfig(vocab_size=320, **options), lambda: iter(pairs), lambda remark: None)
        return made.decode_target(made.encode_target([text]))[0]

    assert back("of\ufb01ce") == "of\ufb01ce"  # the ligature, spelt in bytes
    assert back("of\ufb01ce", normalization="nfkc") == "office"
    assert "\u2047" in back("of\ufb01ce", byte_fallback=False)  # nothing can spell it: the unknown sign
