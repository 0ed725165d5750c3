"""Batches: a ceiling, every pair once, little padding, the same for the same seed."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tolka.data import buckets
from tolka.data.buckets import (
    BatchingConfig,
    Indices,
    cut,
    evenly_longest_first,
    longest_first,
    make_batches,
)
from tolka.data.loader import Loader
from tolka.data.store import TokenStore
from tolka.errors import ConfigError

RNG = np.random.default_rng(0)
SOURCE = RNG.integers(1, 60, size=3000).astype(np.int32)
TARGET = np.clip(SOURCE + RNG.integers(-4, 5, size=3000), 1, None).astype(np.int32)
CONFIG = BatchingConfig(tokens=512, max_length=100)


def target_padding(batches: list[Indices]) -> float:
    """Share of the target positions of batches that hold no token."""
    positions = sum(len(batch) * (int(TARGET[batch].max()) + 1) for batch in batches)
    return 1 - sum(int(TARGET[batch].sum()) + len(batch) for batch in batches) / positions


def test_cut_by_hand() -> None:
    lengths = np.array([2, 3, 3, 4, 9, 1])
    batches = [batch.tolist() for batch in cut(lengths, np.arange(6), tokens=8)]
    assert batches == [[0, 1], [2, 3], [4], [5]]  # 2 x 3 = 6; 3 x 3 = 9 is over; 2 x 4 = 8; 9 stands alone
    assert [batch.tolist() for batch in cut(lengths, np.arange(6), 100, sentences=4)] == [[0, 1, 2, 3], [4, 5]]


@given(st.lists(st.integers(1, 30), max_size=80), st.integers(1, 70), st.integers(0, 5))
def test_cut_is_what_adding_one_sentence_after_the_other_gives(lengths: list[int], tokens: int, sentences: int) -> None:
    expected: list[list[int]] = []
    for number in range(len(lengths)):
        grown = [*expected[-1], number] if expected else [number]
        longest = max(lengths[i] for i in grown)
        if expected and longest * len(grown) <= tokens and not 0 < sentences < len(grown):
            expected[-1] = grown
        else:
            expected.append([number])
    found = cut(np.array(lengths, dtype=np.int64), np.arange(len(lengths)), tokens, sentences)
    assert [batch.tolist() for batch in found] == expected


def test_large_texts_are_sorted_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = target_padding(make_batches(SOURCE, TARGET, CONFIG, 1, 0))
    monkeypatch.setattr(buckets, "_SORTED_TOGETHER", 1000)
    batches = make_batches(SOURCE, TARGET, CONFIG, seed=1, epoch=0)
    assert sorted(np.concatenate(batches).tolist()) == list(range(3000))
    assert target_padding(batches) < whole + 0.03


def test_every_pair_once_and_never_over_the_ceiling() -> None:
    batches = make_batches(SOURCE, TARGET, CONFIG, seed=1, epoch=0)
    assert sorted(np.concatenate(batches).tolist()) == list(range(3000))
    for batch in batches:
        assert len(batch) * (max(SOURCE[batch].max(), TARGET[batch].max()) + 1) <= 512


def test_sources_go_up_and_down_in_turn() -> None:
    source, target = np.array([3, 9, 9, 3, 3, 9], np.int32), np.array([5, 5, 4, 4, 6, 6], np.int32)
    rows = np.arange(6)
    longer = buckets._sort(rows, source, target)
    assert rows.tolist() == [3, 2, 1, 0, 4, 5]
    assert longer.tolist() == [5, 10, 10, 6, 7, 10]


def test_same_seed_same_batches_other_epoch_other_batches() -> None:
    one, again, other = (make_batches(SOURCE, TARGET, CONFIG, seed=1, epoch=e) for e in (0, 0, 1))
    assert [b.tolist() for b in one] == [b.tolist() for b in again]
    assert {tuple(sorted(b.tolist())) for b in one} != {tuple(sorted(b.tolist())) for b in other}


def test_padding_is_under_ten_percent() -> None:
    assert target_padding(make_batches(SOURCE, TARGET, CONFIG, 1, 0)) < 0.1


def test_tokens_per_batch_by_hand() -> None:
    rows = [[4] * 4, [4] * 2, [4] * 6]
    # With </s> 3 and 5 tokens, which fit together, and 7.
    loader = Loader(TokenStore.from_rows(rows, rows), BatchingConfig(tokens=10, max_length=9), seed=1)
    assert loader.tokens_per_batch(0) == (5 + 3 + 7) / 2


def test_the_loader_can_be_entered_anywhere() -> None:
    rows = [[4] * int(n) for n in TARGET[:200]]
    store = TokenStore.from_rows(rows, rows)
    walked, entered = Loader(store, CONFIG, seed=5), Loader(store, CONFIG, seed=5)
    for number in range(3):
        there = walked.batch(1, number)
    assert there.source.tolist() == entered.batch(1, 2).source.tolist()


def test_a_budget_smaller_than_a_sentence_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"batching.tokens \(100\) is smaller than one sentence may be"):
        BatchingConfig(tokens=100, max_length=100)
    assert BatchingConfig(tokens=101, max_length=100).tokens == 101


def test_the_longest_come_first_in_their_order() -> None:
    assert longest_first([3, 9, 3, 4, 9], tokens=9) == [[1], [4], [3, 0], [2]]
    assert longest_first([5, 6], tokens=0) == [[1], [0]]
    assert longest_first([], tokens=9) == []


@pytest.mark.parametrize(("count", "tokens", "least"), [(1000, 4000, 0), (1000, 6000, 4), (300, 9000, 4), (37, 64, 2)])
def test_no_worker_is_left_with_a_remainder(count: int, tokens: int, least: int) -> None:
    lengths = np.random.default_rng(3).integers(16, 40, count).tolist()
    needed = longest_first(lengths, tokens)
    made = evenly_longest_first(lengths, tokens, least, 2)
    assert list(chain(*made)) == list(chain(*needed))
    assert len(made) % 2 == 0
    assert max(least, len(needed)) <= len(made) <= max(least, len(needed)) + 1
    sizes = [len(rows) * max(lengths[row] for row in rows) for rows in made]
    assert max(sizes) <= tokens
    assert min(sizes) > 0.9 * max(sizes) - 2 * max(lengths)


def test_few_are_divided_as_far_as_they_go() -> None:
    assert evenly_longest_first([], 9, 0, 2) == []
    assert evenly_longest_first([16], 9, 0, 2) == [[0]]
    assert evenly_longest_first([16, 16, 17], 100, 0, 2) == [[2], [0, 1]]
    assert evenly_longest_first([5, 5, 5, 5], 100, 0, 2) == [[0, 1], [2, 3]]
