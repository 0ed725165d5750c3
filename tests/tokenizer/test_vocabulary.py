"""Tokenizers whose ids are those of a list, as Marian's are; the SentencePiece models are of another order."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from marian_folder import spm

from tolka.data.batch import BOS, EOS, PAD, UNK
from tolka.errors import CheckpointError, ConfigError
from tolka.text.direction import Direction
from tolka.tokenizer.language_tags import NO_TAGS
from tolka.tokenizer.resampling import Resampler
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.tokenizer.vocabulary import SPECIAL, VOCABULARY, Vocabulary, in_sentencepiece_order

TEXTS = ["lantern kettle", "harbour pebble saddle", "orchid copper velvet walnut", "ferry lantern pebble"] * 20
OTHERS = ["tolo mirka", "pell dasun rive", "okto banu selk wira", "fjon tolo pell"] * 20


def own_pieces(model: bytes) -> list[str]:
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(number) for number in range(3, processor.get_piece_size())]


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def models(request: pytest.FixtureRequest) -> list[bytes]:
    return [spm(TEXTS, 60, request.param), spm(OTHERS, 60, request.param)]


def shuffled(models: list[bytes], lacking: tuple[str, ...] = ()) -> Vocabulary:
    subwords = list(dict.fromkeys(piece for model in models for piece in own_pieces(model) if piece not in lacking))
    random.Random(2).shuffle(subwords)
    every = ["</s>", "<unk>", *subwords, ">>deu<<", "<pad>"]
    return Vocabulary.of(every, (0, 1, len(every) - 1))


def test_ids_are_places_in_the_list(models: list[bytes]) -> None:
    vocabulary = shuffled(models)
    tokenizer = Tokenizer(models, [vocabulary])
    assert tokenizer.shared
    assert tokenizer.source_size == tokenizer.target_size == len(vocabulary.subwords)
    assert tokenizer.source_pieces([PAD, BOS, EOS, UNK]) == list(SPECIAL)
    from sentencepiece import SentencePieceProcessor

    for model, encode in zip(models, (tokenizer.encode_source, tokenizer.encode_target), strict=True):
        for text in (TEXTS[1], OTHERS[1]):
            expected = SentencePieceProcessor(model_proto=model).encode(text, out_type=str)
            (ids,) = encode([text])
            assert [vocabulary.subwords[number] if number != UNK else None for number in ids] == [
                piece if piece in vocabulary.subwords else None for piece in expected
            ]
    assert tokenizer.decode_source(tokenizer.encode_source(TEXTS[:4])) == TEXTS[:4]
    assert tokenizer.decode_target(tokenizer.encode_target(OTHERS[:4])) == OTHERS[:4]
    assert tokenizer.encode_source(["", " "]) == [[], []]


def test_a_subword_that_the_list_lacks_is_unknown(models: list[bytes]) -> None:
    (lacking,) = {Tokenizer(models, [shuffled(models)]).source_pieces(row)[0] for row in [_row(models, "kettle")]}
    tokenizer = Tokenizer(models, [shuffled(models, (lacking,))])
    assert tokenizer.encode_source(["kettle"])[0][0] == UNK
    assert tokenizer.encode_source(["語"])[0][-1] == UNK


def _row(models: list[bytes], text: str) -> list[int]:
    return Tokenizer(models, [shuffled(models)]).encode_source([text])[0]


def test_characters_that_only_the_other_model_knows(models: list[bytes]) -> None:
    """The source's model has no j and no i; the list has them from the target's."""
    vocabulary = shuffled(models)
    unknown_here = [piece for piece in ("j", "m", "i") if piece in vocabulary.subwords][:1]
    for piece in unknown_here:
        (ids,) = Tokenizer(models, [vocabulary]).encode_source([f"a {piece}"])
        assert UNK not in ids or vocabulary.subwords[ids[-1]] == piece


def test_a_language_tag_is_one_subword_of_a_source(models: list[bytes]) -> None:
    vocabulary = shuffled(models)
    tokenizer = Tokenizer(models, [vocabulary])
    tag = vocabulary.subwords.index(">>deu<<")
    plain = tokenizer.encode_source(["kettle"])[0]
    assert tokenizer.encode_source([">>deu<< kettle", ">>deu<<kettle", ">>deu<<"]) == [
        [tag, *plain],
        [tag, *plain],
        [tag],
    ]
    assert tokenizer.encode_source([">>xyz<< kettle", "kettle >>deu<<"])[0][0] != tag
    assert tag not in tokenizer.encode_source(["kettle >>deu<<"])[0]
    assert tag not in tokenizer.encode_target([">>deu<< tolo"])[0]
    assert tokenizer.source_pieces([tag]) == [">>deu<<"]


def test_saved_and_loaded(models: list[bytes], tmp_path: Path) -> None:
    """Also where each side has a list of its own; the digests tell lists apart."""
    one, two = shuffled(models[:1]), shuffled(models[1:])
    both = Tokenizer(models, [one, two])
    assert not both.shared
    assert (both.source_size, both.target_size) == (len(one.subwords), len(two.subwords))
    for number, tokenizer in enumerate((both, Tokenizer(models, [shuffled(models)]))):
        folder = tmp_path / str(number)
        folder.mkdir()
        tokenizer.save(folder)
        assert {path.name for path in folder.iterdir()} == {"source.model", "target.model", VOCABULARY}
        loaded = Tokenizer.load(folder)
        assert loaded.digests == tokenizer.digests
        assert loaded.vocabularies == tokenizer.vocabularies
        assert loaded.encode_source(TEXTS[:4]) == tokenizer.encode_source(TEXTS[:4])
    other = Vocabulary(one.subwords[:4] + one.subwords[:3:-1], one.places)
    assert Tokenizer(models, [other, two]).digests != both.digests


@pytest.mark.parametrize(
    "content",
    ["[", "{}", '{"subwords": [], "places": []}', '{"subwords": [["a"]], "places": [[0, 1, 2]]}', "[" * 100_000]
    + [
        json.dumps({"subwords": [[*SPECIAL, "a"]], "places": [places]})
        for places in ([0, 1], [0, 0, 1], [0, 1, 9], [0, 1, "2"], 7)
    ]
    + [json.dumps({"subwords": [[*SPECIAL, 5]], "places": [[0, 1, 3]]})],
)
def test_a_damaged_list_is_one_line(models: list[bytes], tmp_path: Path, content: str) -> None:
    Tokenizer(models, [shuffled(models)]).save(tmp_path)
    (tmp_path / VOCABULARY).write_text(content, encoding="utf-8")
    with pytest.raises(CheckpointError, match=rf"{VOCABULARY} is damaged"):
        Tokenizer.load(tmp_path)


def test_the_original_order_by_hand() -> None:
    """Marian's a, <pad>, b, </s>, <unk>, c: the others keep their order, and <pad>'s place has our BOS."""
    vocabulary = Vocabulary.of(["a", "<pad>", "b", "</s>", "<unk>", "c"], (3, 4, 1))
    assert vocabulary.subwords == ("<pad>", "<s>", "</s>", "<unk>", "a", "b", "c")
    assert vocabulary.ids_in_original_order() == [4, BOS, 5, EOS, UNK, 6]
    fairseq = Vocabulary.of(["<s>", "<pad>", "</s>", "<unk>", "a", "b"], (2, 3, 1, 0))
    assert fairseq.subwords == ("<pad>", "<s>", "</s>", "<unk>", "a", "b")
    assert fairseq.ids_in_original_order() == [BOS, PAD, EOS, UNK, 4, 5]
    usual = in_sentencepiece_order(["<pad>", "<s>", "</s>", "<unk>", "x", "y"])
    assert usual.ids_in_original_order() == [EOS, UNK, 4, 5, BOS]


def test_tags_are_told_by_the_direction_and_never_read_from_text(models: list[bytes], tmp_path: Path) -> None:
    """As in M2M-100: a tag before the source, one first in the target; one SentencePiece model for both sides."""
    tags = {"en": "__en__", "de": "__de__"}
    every = ["<s>", "<pad>", "</s>", "<unk>", *own_pieces(models[0]), *tags.values(), "madeupword0000"]
    vocabulary = Vocabulary.of(every, (2, 3, 1, 0), tags)
    tokenizer = Tokenizer(models[:1], [vocabulary])
    tokenizer.save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"tokenizer.model", VOCABULARY}
    loaded = Tokenizer.load(tmp_path)
    assert loaded.vocabularies == [vocabulary]
    assert loaded.languages == ["en", "de"]
    told = loaded.tags(Direction("en", "de"))
    assert loaded.source_pieces(told.source) == ["__en__"]
    assert loaded.target_pieces(told.target) == ["__de__"]
    hostile = [f"__en__ {TEXTS[0]}", "__de__", "madeupword0000", "__en__", "<mask>"]
    never = {*told.source, *told.target, len(every) - 1}
    assert not never & {number for row in loaded.encode_source(hostile) for number in row}
    (ids,) = loaded.encode_target([TEXTS[0]])
    assert loaded.decode_target([[*told.target, *ids, *never]]) == [TEXTS[0]]
    with pytest.raises(ConfigError, match=r"does not know the target language 'dex'\. Did you mean 'de'\?"):
        loaded.tags(Direction("en", "dex"))
    with pytest.raises(ConfigError, match=r"does not know the source language 'deu'\. Did you mean 'de'\?"):
        loaded.tags(Direction("deu", "de"))
    with pytest.raises(ConfigError, match=r"nothing says the source.s: name it, as in source=de target=en"):
        loaded.tags(Direction("", "de"))
    assert Tokenizer(models, [shuffled(models)]).tags(Direction("en", "de")) == NO_TAGS


def test_other_segmentations_are_of_the_same_text(models: list[bytes]) -> None:
    """No draw has a subword that the list lacks; tags and unknown subwords stay."""
    lacking = tuple(piece for piece in own_pieces(models[0]) if len(piece) == 2)[:3]
    tokenizer: Any = Tokenizer(models, [shuffled(models, lacking)])
    rows = tokenizer.encode_source([f">>deu<< {text} 語 {text}" for text in TEXTS[:4]])
    seen = set()
    for seed in range(20):
        drawn = tokenizer.resample_source(rows, 0.3, seed)
        assert drawn == tokenizer.resample_source(rows, 0.3, seed)
        assert tokenizer.decode_source(drawn) == tokenizer.decode_source(rows)
        for row, new in zip(rows, drawn, strict=True):
            assert new[0] == row[0]
            assert new.count(UNK) == row.count(UNK)
        seen |= {tuple(map(tuple, drawn))}
    assert len(seen) > 2


def test_a_resampler_of_all_subwords_is_as_before(models: list[bytes]) -> None:
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor(model_proto=models[0])
    rows = [processor.encode(text) for text in TEXTS[:4]]
    every = frozenset(range(processor.get_piece_size()))
    assert Resampler(processor)(rows, 0.3, 5) == Resampler(processor, every)(rows, 0.3, 5)
