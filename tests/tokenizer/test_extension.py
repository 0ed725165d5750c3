"""Subwords of new text after those of a tokenizer: old ids keep their meaning, and old text its ids."""

import random
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from conftest import sentences
from tolka.text.pairs import Pair
from tolka.tokenizer.extension import Extension, extend_tokenizer, spellings
from tolka.tokenizer.special_tokens import UNK
from tolka.tokenizer.tokenizer import Tokenizer, TokenizerConfig
from tolka.tokenizer.training import train_tokenizer
from tolka.tokenizer.vocabulary import SPECIAL, Vocabulary

SAMPLE = Path(__file__).parents[2] / "data" / "sample"
TAG = ">>kor<<"
LAYOUTS = ("one model", "two models", "marian", "marian, two vocabularies")


def lines(name: str, count: int) -> list[str]:
    return (SAMPLE / name).read_text(encoding="utf-8").splitlines()[:count]


@cache
def old_text() -> list[Pair]:
    """English, and a made-up language."""
    return [
        Pair(english, made_up) for english, (_, made_up) in zip(lines("train.en", 500), sentences(500, 1), strict=True)
    ]


@cache
def new_text() -> list[Pair]:
    """English and Korean; no pair of `old_text`."""
    pairs = zip(lines("train.en", 1100), lines("train.ko", 1100), strict=True)
    return [Pair(*pair) for pair in pairs][600:]


@cache
def base(kind: str = "bpe", layout: str = "one model", **options: Any) -> Tokenizer:
    """A tokenizer of the old text; Marian's has one vocabulary or two beside the models."""
    config = TokenizerConfig(
        type=kind, vocab_size=400, shared=layout == "one model", byte_fallback="marian" not in layout, **options
    )
    trained = train_tokenizer(config, lambda: iter(old_text()), lambda note: None)
    if "marian" not in layout:
        return trained
    sides = [trained.source_pieces(range(4, trained.source_size)), trained.target_pieces(range(4, trained.target_size))]
    sides[0].append(TAG)
    listed = sides if "two" in layout else [list(dict.fromkeys(sides[0] + sides[1]))]
    for subwords in listed:
        random.Random(3).shuffle(subwords)
    return Tokenizer(trained.models, [Vocabulary((*SPECIAL, *each), (0, 1, len(each) + 2)) for each in listed])


def extended(tokenizer: Tokenizer, size: int = 300, learns_from: str = "target", **options: Any) -> Tokenizer:
    texts = options.pop("texts", new_text())
    order = Extension(tokenizer, size, [], 0, options.pop("coverage", 1.0))
    return extend_tokenizer(order, {learns_from: lambda: iter(texts)}, options.pop("say", lambda note: None))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_old_text_keeps_its_ids_and_new_text_gets_fewer(kind: str, layout: str, tmp_path: Path) -> None:
    old = base(kind, layout)
    new = extended(old, 600)
    for pair in old_text():
        assert new.encode_source([pair.source]) == old.encode_source([pair.source])
        assert new.encode_target([pair.target]) == old.encode_target([pair.target])
    assert new.target_size == old.target_size + 600
    assert new.source_size - old.source_size == (600 if old.shared else 0)
    before, after = range(old.target_size), range(old.target_size, new.target_size)
    assert new.target_pieces(before) == old.target_pieces(before)
    assert new.source_pieces(range(old.source_size)) == old.source_pieces(range(old.source_size))
    assert not {*old.target_pieces(before)} & {*new.target_pieces(after)}
    texts = [pair.target for pair in new_text()]
    rows = new.encode_target(texts)
    assert new.decode_target(rows) == texts
    assert sum(map(len, rows)) < (
        sum(map(len, texts)) if "marian" in layout else sum(len(text.encode()) for text in texts) / 2
    )
    assert len({number for row in rows for number in row} & {*after}) > 500  # others are always parts of larger ones
    new.save(tmp_path)
    loaded = Tokenizer.load(tmp_path)
    assert loaded.digests == new.digests
    assert loaded.encode_target(texts) == rows
    for row in new.resample_target(rows[:50], 0.3 if kind == "bpe" else 0.2, seed=5):
        assert new.decode_target([row])[0] in texts


@pytest.mark.parametrize("layout", ["one model", "marian"])
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_each_new_subword_stands_where_the_old_ones_that_spell_it_stood(kind: str, layout: str) -> None:
    """Text in characters that the tokenizer knows: put the old spelling back, and it is the old segmentation."""
    old = base(kind, layout)
    new = extended(old, 60, "source")
    spelt, _ = spellings(old, new)
    assert len(spelt) == 60
    assert sum(len(ids) > 1 for ids in spelt) > 50  # the others are characters
    changed = 0
    for pair in old_text():
        (before,), (after,) = old.encode_source([pair.source]), new.encode_source([pair.source])
        changed += before != after
        assert [
            one
            for number in after
            for one in (spelt[number - old.source_size] if number >= old.source_size else [number])
        ] == before
    assert changed > 0
    sources = [pair.source for pair in new_text()]
    assert sum(map(len, new.encode_source(sources))) < 0.95 * sum(map(len, old.encode_source(sources)))


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_the_result_does_not_depend_on_the_order_of_the_text(kind: str) -> None:
    shuffled = random.Random(2).sample(new_text(), len(new_text()))
    one, two = extended(base(kind), 200, "both"), extended(base(kind), 200, "both", texts=shuffled)
    assert one.digests == extended(base(kind), 200, "both").digests
    if kind == "bpe":  # SentencePiece's own unigram training is not
        assert one.digests == two.digests


def test_every_merge_can_be_reached() -> None:
    """Each new subword of BPE is one when it is encoded by itself, intermediate ones too."""
    old, new = base(), extended(base(), 500, "both")
    added = new.target_pieces(range(old.target_size, new.target_size))
    words = [subword[1:] for subword in added if subword.startswith("\u2581")]
    assert len(words) > 50
    for word in words:
        assert new.target_pieces(new.encode_target([word])[0]) == [f"\u2581{word}"]


def test_characters_come_first_and_as_far_as_their_share() -> None:
    old = base()
    few = extended(old, 10)
    added = few.target_pieces(range(old.target_size, few.target_size))
    text = "".join(pair.target for pair in new_text())
    known = {*old.target_pieces(range(old.target_size))}
    frequent = sorted({*text} - known - {" "}, key=lambda character: (-text.count(character), character))
    assert added == frequent[:10]
    half = extended(old, 300, coverage=0.9)
    characters = [each for each in half.target_pieces(range(old.target_size, half.target_size)) if len(each) == 1]
    assert characters == frequent[: len(characters)]
    assert 10 < len(characters) < len(frequent)
    covered = sum(map(text.count, (known | {*characters}) - {" "})) / len(text.replace(" ", ""))
    assert 0.9 <= covered < 0.93


def test_no_more_than_the_text_has() -> None:
    said: list[str] = []
    old = base()
    new = extended(old, 500, texts=[Pair("a", "\ub2e4 \ub2e4 \ub2e4")], say=said.append)
    assert new.target_pieces(range(old.target_size, new.target_size)) == ["\ub2e4", "\u2581\ub2e4"]
    assert said[0] == (
        "2 subwords of the target added, 1 of them characters (tokenizer.extend); the text has no more that would save "
        "anything"
    )
    assert said[-1] == "a target of the new text has 3.0 subwords on average, without them 12.0"


def test_a_text_of_known_subwords_adds_none() -> None:
    old = base("unigram")
    new = extended(old, 500, "both", texts=[Pair("the", "the")])
    assert (new.source_size, new.target_size) == (old.source_size, old.target_size)


def test_characters() -> None:
    old = base("char", character_coverage=1.0)
    new = extended(old, 20)
    texts = [pair.target for pair in new_text()]
    added = new.target_pieces(range(old.target_size, new.target_size))
    assert len(added) == 20
    assert all(len(each) == 1 for each in added)
    assert sum(map(len, new.encode_target(texts))) < sum(map(len, old.encode_target(texts)))
    assert new.encode_source([old_text()[0].source]) == old.encode_source([old_text()[0].source])


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_symbols_stay_one_subword(kind: str) -> None:
    config = TokenizerConfig(type=kind, vocab_size=400, symbols=["QQ"])
    old = train_tokenizer(config, lambda: iter(old_text()), lambda note: None)
    texts = [Pair(f"{pair.source} QQ pages", f"QQ {pair.target} xQQ") for pair in new_text()]
    new = extended(old, 300, "both", texts=texts)
    assert not any("Q" in each for each in new.target_pieces(range(old.target_size, new.target_size)))
    for pair in texts[:50]:
        assert new.target_pieces(new.encode_target([pair.target])[0]).count("QQ") == 2
        assert new.decode_target(new.encode_target([pair.target])) == [pair.target]


def test_a_language_tag_stays_one_id_and_is_not_learnt() -> None:
    old = base("unigram", "marian")
    texts = [Pair(f"{TAG} {pair.source}", pair.target) for pair in new_text()]
    new = extended(old, 200, "both", texts=texts)
    tag = old.encode_source([f"{TAG} the"])[0][0]
    assert old.source_pieces([tag]) == [TAG]
    assert all(row[0] == tag for row in new.encode_source([pair.source for pair in texts]))
    assert not any(">" in each or "kor" in each for each in new.source_pieces(range(old.source_size, new.source_size)))


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_subwords_that_the_vocabulary_lacks_get_ids(kind: str) -> None:
    """Marian's vocabulary need not have all that its SentencePiece model cuts: of new text they are learnt."""
    complete = base(kind, "marian, two vocabularies")
    (source, target), texts = complete.listed, [pair.source for pair in new_text()]
    counts = Counter(piece for row in complete.encode_source(texts) for piece in complete.source_pieces(row))
    left_out = [subword for subword, _ in counts.most_common() if len(subword) > 2][:5]
    lacking = Vocabulary(tuple(each for each in source.subwords if each not in left_out), (0, 1, source.places[2] - 5))
    old = Tokenizer(complete.models, [lacking, target])
    assert sum(row.count(UNK) for row in old.encode_source(texts)) >= sum(counts[each] for each in left_out)
    new = extended(old, 100, "source")
    assert new.models[0] != old.models[0]
    assert {*left_out} <= {*new.source_pieces(range(old.source_size, new.source_size))}
    assert sum(row.count(UNK) for row in new.encode_source(texts)) == 0


def test_spellings_are_the_bytes_the_subwords_or_unknown() -> None:
    old, new = base("bpe", "one model"), extended(base("bpe", "one model"), 20)
    source, target = spellings(old, new)
    assert source == target
    first = new.target_pieces([old.target_size])[0]
    assert old.target_pieces(target[0]) == [f"<0x{byte:02X}>" for byte in first.encode()]
    marian = base("bpe", "marian")
    assert spellings(marian, extended(marian, 20))[1][0] == [UNK]


def test_one_vocabulary_of_two_models_gets_what_saves_most() -> None:
    """Both sides learn; the vocabulary grows by the number asked for, and each model has what its own side needs."""
    old = base("unigram", "marian")
    new = extended(old, 500, "both")
    assert new.shared
    assert (new.source_size, new.target_size) == (old.source_size + 500,) * 2
    sources, targets = [pair.source for pair in new_text()], [pair.target for pair in new_text()]
    assert sum(map(len, new.encode_source(sources))) < sum(map(len, old.encode_source(sources)))
    assert sum(row.count(UNK) for row in new.encode_target(targets)) == 0
