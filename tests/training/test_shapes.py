"""Batches padded up to few shapes: the same loss, few shapes, little added."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tolka.data.batch import collate
from tolka.data.buckets import BatchingConfig
from tolka.data.loader import Loader
from tolka.data.store import TokenStore
from tolka.losses.objective import Objective
from tolka.models.transformer import TransformerConfig
from tolka.training.shapes import padded_to_few_shapes


def rows(lengths: list[int]) -> list[list[int]]:
    return [[4] * length for length in lengths]


@given(
    st.lists(st.tuples(st.integers(0, 70), st.integers(0, 70)), min_size=1, max_size=60),
)
def test_every_batch_can_be_padded(lengths: list[tuple[int, int]]) -> None:
    batch = collate(rows([one for one, _ in lengths]), rows([other for _, other in lengths]))
    padded = padded_to_few_shapes(batch)
    sentences, longest = padded.source.shape
    assert sentences & (sentences - 1) == longest & (longest - 1) == 0
    assert padded.target_in.shape == padded.target_out.shape == padded.source.shape
    assert padded.tokens == batch.tokens
    assert len(padded.source_positions) % 16 == len(padded.target_positions) % 16 == 0
    assert int(padded.source_lengths.sum()) == len(padded.source_positions)
    assert torch.equal(padded.source[: len(batch.source), : batch.source.size(1)], batch.source)


def test_few_shapes_serve_many_batches_and_little_is_added() -> None:
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(3, 60, (40_000,), generator=generator)
    noise = torch.randint(-2, 3, (40_000,), generator=generator)
    store = TokenStore.from_rows(rows(lengths.tolist()), rows((lengths + noise).tolist()))
    loader = Loader(store, BatchingConfig(tokens=8192, max_length=100), seed=1)
    batches = [loader.batch(0, number) for number in range(len(loader.plan(0)))]
    padded = [padded_to_few_shapes(batch) for batch in batches]
    shapes = {(*each.source.shape, len(each.source_positions), len(each.target_positions)) for each in padded}
    assert len(batches) > 150
    assert len(shapes) < 60
    assert sum(len(each.target_positions) for each in padded) < 1.07 * sum(batch.tokens for batch in batches)


def test_a_padded_batch_has_the_loss_and_gradients_of_its_own_tokens() -> None:
    torch.manual_seed(0)
    model = TransformerConfig(d_model=16, heads=2, layers=2, dropout=0.0).build(12, 12, True).double()
    objective, batch = Objective(model, 0.1), collate([[4, 5, 6, 7], [7, 5]], [[8], [10, 4]])
    padded = padded_to_few_shapes(batch)
    assert len(padded.source) > len(batch.source)
    found, expected = objective(padded), objective(batch)
    torch.testing.assert_close(found.loss, expected.loss)
    weights = list(objective.parameters())
    for one, other in zip(*(torch.autograd.grad(sums.loss, weights) for sums in (found, expected)), strict=True):
        torch.testing.assert_close(one, other)
    for shape in ((1, 16, 20, 8), (3, 16, 20, 8), (5, 7, 20, 8), (5, 16, 20, 3)):
        with pytest.raises(ValueError, match=rf"2 sentences of \d tokens cannot be {shape[0]} of .* {shape[3]} each"):
            batch.filled(*shape)
