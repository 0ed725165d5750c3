"""SentencePiece as this package uses it: text comes back as it went in, whatever its characters."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows import each_row

from tolka.errors import CheckpointError, ConfigError, DataError
from tolka.system.progress import silent
from tolka.text.pairs import Pair
from tolka.tokenizer.coders import as_line
from tolka.tokenizer.tokenizer import Tokenizer, TokenizerConfig
from tolka.tokenizer.training import train_tokenizer

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


@pytest.mark.parametrize(("byte", "shown"), [(10, "a b"), (13, "a b"), (0, "a b")])
def test_a_byte_that_would_break_the_line_is_replaced(byte: int, shown: str) -> None:
    a, b = (small().encode_target([letter])[0] for letter in "ab")
    spelt = small()._processors[0].piece_to_id(f"<0x{byte:02X}>")
    # The piece of "b" begins with the mark of a blank, which becomes one more blank.
    assert small().decode_target([[*a, spelt, *b]])[0].replace("  ", " ") == shown


@given(st.lists(st.one_of(st.binary(max_size=3), st.text(max_size=2).map(str.encode)), max_size=8))
def test_bytes_that_make_no_character_are_left_out(parts: list[bytes]) -> None:
    spelt = [small()._processors[0].piece_to_id(f"<0x{byte:02X}>") for byte in b"".join(parts)]
    (text,) = small().decode_target([spelt])
    assert text == as_line(b"".join(parts).decode(errors="ignore"))


@each_row(
    ("parts", "whole"),
    [
        (["a", b"\xed"], "a"),  # cut in a character of three bytes
        ([b"\xed\x95", "a"], "a"),
        ([b"\xed", "a", b"\x95\x9c"], "a"),
        ([b"\xed\xa0\x80", "a"], "a"),  # a surrogate
        ([b"\xed\x95\x9c\xed", "a"], "\ud55ca"),
        ([b"\xef\xbf\xbd", "a", b"\xff"], "\ufffda"),  # U+FFFD itself is a character
    ],
)
def test_a_part_of_a_character_is_left_out(parts: list[str | bytes], whole: str) -> None:
    processor = small()._processors[0]
    ids = [
        processor.piece_to_id(name)
        for part in parts
        for name in ([part] if isinstance(part, str) else [f"<0x{byte:02X}>" for byte in part])
    ]
    assert small().decode_target([ids]) == [whole]
    listed = Tokenizer([small().models[0]] * 2, small().vocabularies)
    assert listed.decode_target([ids]) == [whole]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_vocabulary_too_large_for_the_corpus_shrinks_and_says_so(kind: str) -> None:
    tokenizer, remarks = trained(type=kind, vocab_size=30_000)
    assert 300 < tokenizer.source_size < 30_000
    assert remarks == [f"the corpus is too small for 30000 shared subwords: the vocabulary has {tokenizer.source_size}"]


def test_two_vocabularies_are_saved_and_loaded(tmp_path: Path) -> None:
    tokenizer, _ = trained(shared=False)
    tokenizer.save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"source.model", "target.model"}
    again = Tokenizer.load(tmp_path)
    assert not again.shared
    assert again.encode_source(WORDS) == tokenizer.encode_source(WORDS)
    assert again.encode_target(WORDS) == tokenizer.encode_target(WORDS)


def test_the_same_text_gives_the_same_model() -> None:
    assert trained()[0].models == trained()[0].models


def test_nothing_is_learnt_from_lines_that_are_too_long() -> None:
    config, source = TokenizerConfig(vocab_size=320), [Pair("ab " * 10_000, "x")]
    with_long = train_tokenizer(config, lambda: iter([*pairs(), *source]), silent)
    assert with_long.models == train_tokenizer(config, lambda: iter([*pairs(), Pair("", "x")]), silent).models


def test_a_folder_without_a_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"source.model is missing: the folder has no tokenizer"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.model").write_bytes(b"no model")
    with pytest.raises(CheckpointError, match="is not a SentencePiece model"):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize("vocab_size", [320, 2000])
def test_more_characters_than_subwords(vocab_size: int) -> None:
    """The rarest are spelt as bytes, also below the 0.98 of a text that SentencePiece itself covers at least."""
    ideographs = [chr(0x4E00 + i) for i in range(2400)]
    texts = ["".join(ideographs[i : i + 3]) + "一丁丂" * 5 for i in range(0, 2400, 3)]
    remarks: list[str] = []
    made = train_tokenizer(
        TokenizerConfig(vocab_size=vocab_size), lambda: (Pair("a lion", text) for text in texts), remarks.append
    )
    assert made.decode_target(made.encode_target(texts)) == texts
    assert made.target_size == vocab_size
    [remark] = remarks
    assert f"{vocab_size} shared subwords are too few for 2406 characters: the " in remark
    with pytest.raises(ConfigError, match=r"lower the coverage .* or set tokenizer\.byte_fallback=true"):
        train_tokenizer(
            TokenizerConfig(vocab_size=vocab_size, byte_fallback=False),
            lambda: (Pair("a lion", text) for text in texts),
            remarks.append,
        )


@each_row(
    ("options", "complaint"),
    [
        ({"type": "bep"}, r"tokenizer.type \('bep'\) is unknown. Did you mean 'bpe'"),
        ({"normalization": "nfc"}, r"tokenizer.normalization \('nfc'\) is unknown. Did you mean 'nfkc'"),
        ({"vocab_size": 299}, "must be at least 300"),
        ({"vocab_size": 1_000_001}, "must be at most 1000000"),
        ({"character_coverage": 0.5}, "must be from 0.98 to 1.0"),
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


@each_row("kind", ["bpe", "unigram", "char", "word"])
@each_row("text", ["lantern kettle", "100% Zürich 😀 lantern", "ALL CAPS https://example.org/?a=1&b=2", "x"])
def test_every_kind_spells_what_it_does_not_know(kind: str, text: str) -> None:
    tokenizer, _ = trained(type=kind, vocab_size=330)
    assert tokenizer.decode_target(tokenizer.encode_target([text])) == [text]
    assert tokenizer.decode_source(tokenizer.encode_source([text])) == [text]


def test_a_char_tokenizer_has_a_piece_for_each_character_and_a_word_tokenizer_for_each_word() -> None:
    chars, words = (trained(type=kind, vocab_size=320)[0] for kind in ("char", "word"))
    assert chars.source_pieces(chars.encode_source(["ferry"])[0]) == ["▁", *"ferry"]
    assert words.source_pieces(words.encode_source(["ferry kettle"])[0]) == ["▁ferry", "▁kettle"]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char"])
def test_symbols_are_one_piece_wherever_they_stand(kind: str) -> None:
    tokenizer, _ = trained(type=kind, vocab_size=330, symbols=["%PRODUCTNAME", "<br/>"])
    text = "ferry%PRODUCTNAMEs<br/> kettle"
    (ids,) = tokenizer.encode_target([text])
    pieces = tokenizer.target_pieces(ids)
    assert [piece for piece in pieces if "%" in piece or "<br" in piece] == ["%PRODUCTNAME", "<br/>"]
    assert tokenizer.decode_target([ids]) == [text]


@each_row(
    ("options", "complaint"),
    [
        ({"symbols": ["a b"]}, "tokenizer.symbols: 'a b' must be a text without blanks"),
        ({"symbols": [""]}, "tokenizer.symbols: '' must be"),
        ({"symbols": ["x", "x"]}, "tokenizer.symbols: 'x' must be a text without blanks, named once"),
        ({"symbols": ["</s>"]}, "tokenizer.symbols: '</s>' must be"),
        ({"symbols": ["<0x41>"]}, "tokenizer.symbols: '<0x41>' must be"),
        ({"symbols": list("abcdef"), "vocab_size": 302}, "leave no space for other subwords"),
        ({"symbols": ["x"], "type": "word"}, "tokenizer.symbols have no effect where words are whole"),
        ({"model": ["a", "b", "c"]}, "tokenizer.model"),
        ({"model": ["a", "b"]}, "target's, with tokenizer.shared=false"),
        ({"model": ["a"], "shared": False}, "both sides, with tokenizer.shared=true"),
        ({"sample": -1}, "tokenizer.sample"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        TokenizerConfig(**options)


@pytest.mark.parametrize("ids", [{}, {"pad_id": 3}, {"unk_id": 5, "bos_id": -1, "eos_id": 0}])
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_model_trained_elsewhere_cuts_the_same_pieces(tmp_path: Path, kind: str, ids: dict[str, int]) -> None:
    from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

    texts = (text for pair in pairs() for text in (pair.source, pair.target))
    prefix = str(tmp_path / "theirs")
    options: dict[str, Any] = {
        "model_prefix": prefix,
        "model_type": kind,
        "vocab_size": 330,
        "byte_fallback": True,
        "minloglevel": 2,
    }
    SentencePieceTrainer.train(sentence_iterator=texts, hard_vocab_limit=False, **options | ids)
    theirs = SentencePieceProcessor(model_file=f"{prefix}.model")
    ours = TokenizerConfig(model=[f"{prefix}.model"]).load_given()
    assert ours is not None
    text = "lantern Zürich 😀 ferry"
    (found,) = ours.encode_source([text])
    assert ours.source_pieces(found) == theirs.encode(text, out_type=str)
    assert ours.decode_target([found]) == [text]
    assert min(found) > 3


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "x.model"
    with pytest.raises(DataError, match=r"x\.model cannot be read"):
        TokenizerConfig(model=[str(path)]).load_given()
    path.write_bytes(b"text")
    with pytest.raises(DataError, match=r"x\.model is not a SentencePiece model"):
        TokenizerConfig(model=[str(path)]).load_given()
