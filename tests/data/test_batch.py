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


def test_tags_are_read_and_not_predicted() -> None:
    """One tag before each target, which decoding forces; the halves of a batch know of it."""
    batch = collate([[4], [4], [4]], [[6], [4, 5], []], ((8,), (9,)))
    assert batch.target_in.tolist() == [[1, 9, 6, 0], [1, 9, 4, 5], [1, 9, 0, 0]]
    assert batch.targets.tolist() == [6, 2, 4, 5, 2, 2]
    assert batch.tokens == 6
    assert batch.valid(torch.arange(12).view(3, 4, 1)).flatten().tolist() == [1, 2, 5, 6, 7, 9]
    first, rest = batch.halves()
    assert (first.targets.tolist(), first.tokens) == ([6, 2], 2)
    assert (rest.targets.tolist(), rest.tokens) == ([4, 5, 2, 2], 4)
