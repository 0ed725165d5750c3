"""Subword sampling: the same words in other pieces, by the seed."""

import json
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from tolka.data.buckets import BatchingConfig
from tolka.data.loader import Loader
from tolka.data.rewriting import SubwordSampler
from tolka.data.store import TokenStore, joined
from tolka.errors import ConfigError
from tolka.text.pairs import Pair
from tolka.tokenizer.resampling import Resampler
from tolka.tokenizer.tokenizer import Tokenizer, TokenizerConfig
from tolka.tokenizer.training import train_tokenizer

WORDS = ["lower", "lowest", "newer", "newest", "wider", "widest", "gerundet", "이해하다"]
PAIRS = [Pair(f"{a} {b}", f"{b} {a} {b}.") for a in WORDS for b in WORDS]


def make(kind: str, shared: bool = True) -> tuple[Tokenizer, TokenStore]:
    config = TokenizerConfig(type=kind, vocab_size=340, shared=shared)
    tokenizer = train_tokenizer(config, lambda: iter(PAIRS), lambda remark: None)
    sources = tokenizer.encode_source([pair.source for pair in PAIRS])
    targets = tokenizer.encode_target([pair.target for pair in PAIRS])
    return tokenizer, TokenStore.from_rows(sources, targets)


def rows(store: TokenStore) -> list[tuple[list[int], list[int]]]:
    return [(store.source(i).tolist(), store.target(i).tolist()) for i in range(len(store))]


@pytest.mark.parametrize(("kind", "shared"), [("bpe", True), ("bpe", False), ("unigram", True)])
def test_other_pieces_spell_the_same_text(kind: str, shared: bool) -> None:
    tokenizer, store = make(kind, shared)
    drawn = SubwordSampler(tokenizer, 0.3, seed=1, max_length=100)(store, epoch=0)
    assert rows(drawn) != rows(store)
    assert tokenizer.decode_target([target for _, target in rows(drawn)]) == [pair.target for pair in PAIRS]
    assert len(drawn.target_ids) > len(store.target_ids)


def test_the_seed_and_the_epoch_decide() -> None:
    tokenizer, store = make("bpe")
    first = rows(SubwordSampler(tokenizer, 0.2, seed=1, max_length=100)(store, epoch=3))
    tokenizer.resample_source([[5, 6, 7]], 0.5, seed=9)  # other draws between the two change nothing
    assert rows(SubwordSampler(tokenizer, 0.2, seed=1, max_length=100)(store, epoch=3)) == first
    assert rows(SubwordSampler(tokenizer, 0.2, seed=1, max_length=100)(store, epoch=4)) != first
    assert rows(SubwordSampler(tokenizer, 0.2, seed=2, max_length=100)(store, epoch=3)) != first


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_another_process_draws_the_same(kind: str) -> None:
    tokenizer, store = make(kind)
    first = [store.source(i).tolist() for i in range(8)]
    code = (
        "import json, sys; from tolka.tokenizer.tokenizer import Tokenizer;"
        "model, rows = json.load(sys.stdin);"
        "print(Tokenizer([bytes.fromhex(model)]).resample_source(rows, 0.3, 7))"
    )
    given = json.dumps([tokenizer.models[0].hex(), first])
    found = subprocess.run([sys.executable, "-c", code], input=given, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str(tokenizer.resample_source(first, 0.3, 7))


def test_without_dropout_the_pieces_are_sentencepieces_own() -> None:
    tokenizer, store = make("bpe")
    targets = [store.target(i).tolist() for i in range(len(store))]
    assert tokenizer.resample_target(targets, 0.0, seed=1) == targets


def test_shares_of_a_words_segmentations_follow_their_probabilities() -> None:
    tokenizer, _ = make("unigram")
    (word,) = tokenizer.encode_source(["newest"])
    resampler = Resampler(tokenizer._processors[0])
    found, scores = resampler._segmentations(tuple(word))
    drawn = Counter(map(tuple, tokenizer.resample_source([word] * 20_000, 0.5, seed=1)))
    expected = np.exp(0.5 * np.array(scores)) / np.exp(0.5 * np.array(scores)).sum()
    assert len(found) > 1
    for row, share in zip(found, expected.tolist(), strict=True):
        assert drawn[row] / 20_000 == pytest.approx(share, abs=0.02)


def test_a_tokenizer_with_one_way_to_cut_words_is_refused() -> None:
    tokenizer, _ = make("char")
    with pytest.raises(ConfigError, match=r"choose tokenizer.type=bpe or unigram"):
        tokenizer.resample_source([[5]], 0.1, 1)


def test_more_merges_left_out_make_more_pieces() -> None:
    tokenizer, store = make("bpe")
    counts = [len(SubwordSampler(tokenizer, p, 1, 100)(store, 0).source_ids) for p in (0.1, 0.5, 0.9)]
    assert len(store.source_ids) < counts[0] < counts[1] < counts[2]


def test_a_pair_that_grew_too_long_keeps_its_pieces() -> None:
    tokenizer, store = make("bpe")
    limit = 10
    free = rows(SubwordSampler(tokenizer, 0.6, seed=1, max_length=100)(store, epoch=0))
    drawn = rows(SubwordSampler(tokenizer, 0.6, seed=1, max_length=limit)(store, epoch=0))
    grown = [max(len(source), len(target)) > limit for source, target in free]
    assert 0 < sum(grown) < len(grown)
    for kept, wanted, too_long, found in zip(rows(store), free, grown, drawn, strict=True):
        assert found == (kept if too_long else wanted)


def test_what_is_unknown_stays_unknown() -> None:
    config = TokenizerConfig(vocab_size=100, byte_fallback=False)
    tokenizer = train_tokenizer(config, lambda: iter(PAIRS), lambda remark: None)
    unknown = tokenizer.encode_source(["lower \N{SNOWMAN}"])
    assert 3 in unknown[0]
    (drawn,) = tokenizer.resample_source(unknown, 0.5, seed=1)
    assert drawn.count(3) == unknown[0].count(3)
    assert tokenizer.decode_target([drawn]) == tokenizer.decode_target(unknown)


def test_the_loader_cuts_batches_by_the_drawn_lengths() -> None:
    tokenizer, store = make("bpe")
    config = BatchingConfig(tokens=120, max_length=60, sampling=0.5)
    loader = Loader(store, config, seed=1, resample=SubwordSampler(tokenizer, 0.5, 1, config.max_length))
    batches = [loader.batch(0, number) for number in range(len(loader.plan(0)))]
    assert all(max(batch.source.numel(), batch.target_out.numel()) <= 120 for batch in batches)
    drawn = SubwordSampler(tokenizer, 0.5, 1, config.max_length)(store, 0)
    assert sum(batch.tokens for batch in batches) == len(drawn.target_ids) + len(store)
    again = Loader(store, config, seed=1, resample=SubwordSampler(tokenizer, 0.5, 1, config.max_length))
    assert np.array_equal(again.batch(0, 3).source, batches[3].source)
    assert loader.tokens_per_batch(0) == (len(drawn.target_ids) + len(store)) / len(batches)


def test_joined_stores_hold_the_pairs_in_order() -> None:
    one = TokenStore.from_rows([[4, 5], [6]], [[7], []])
    other = TokenStore.from_rows([[8]], [[9, 10, 11]])
    assert rows(joined([one, other])) == [([4, 5], [7]), ([6], []), ([8], [9, 10, 11])]
