"""A batch, checked by hand."""

import torch

from tolka.data.batch import collate


def test_collate_by_hand() -> None:
    batch = collate([[7, 8, 9], [5]], [[6], [4, 5]])
    assert batch.source.tolist() == [[7, 8, 9, 2], [5, 2, 0, 0]]
    assert batch.source_lengths.tolist() == [4, 2]
    assert batch.target_in.tolist() == [[1, 6, 0], [1, 4, 5]]
    assert batch.target_out.tolist() == [[6, 2, 0], [4, 5, 2]]
    assert batch.target_lengths.tolist() == [2, 3]
    assert batch.tokens == 5
    assert batch.targets.tolist() == [6, 2, 4, 5, 2]


def test_valid_picks_the_states_of_target_tokens() -> None:
    batch = collate([[4], [4]], [[6], [4, 5]])
    states = torch.arange(6).view(2, 3, 1)  # position 2 of the first sentence is padding
    assert batch.valid(states).flatten().tolist() == [0, 1, 3, 4, 5]


def test_a_sentence_without_tokens_is_its_end_symbol() -> None:
    batch = collate([[]], [[]])
    assert (batch.source.tolist(), batch.target_in.tolist(), batch.target_out.tolist()) == ([[2]], [[1]], [[2]])


def test_dropped_words_are_unknown_and_targets_stay() -> None:
    batch = collate([[7, 8, 9], [5]], [[6], [4, 5]])
    assert batch.with_words_dropped(0.0) is batch
    torch.manual_seed(0)
    all_gone = batch.with_words_dropped(1.0 - 1e-9)
    assert all_gone.source.tolist() == [[3, 3, 3, 2], [3, 2, 0, 0]]
    assert all_gone.target_in.tolist() == [[1, 3, 0], [1, 3, 3]]
    assert all_gone.target_out.tolist() == batch.target_out.tolist()
    assert all_gone.tokens == 5


def test_words_are_dropped_at_the_rate_and_by_the_seed() -> None:
    batch = collate([[4 + i % 50 for i in range(100)]] * 200, [[7]] * 200)
    torch.manual_seed(1)
    once = batch.with_words_dropped(0.2).source
    again = batch.with_words_dropped(0.2).source
    torch.manual_seed(1)
    assert torch.equal(batch.with_words_dropped(0.2).source, once)
    assert not torch.equal(again, once)
    share = (once == 3).sum().item() / (200 * 100)
    assert abs(share - 0.2) < 4 * (0.2 * 0.8 / 20_000) ** 0.5  # four standard deviations
