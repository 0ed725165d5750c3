"""Rows without padding, and back."""

import torch

from tolka.kernels.packing import Packing

LENGTHS, TOKENS = torch.tensor([2, 3, 1]), torch.tensor([0, 1, 3, 4, 5, 6])
PACKING, ALL = Packing(LENGTHS, 3, TOKENS), Packing(LENGTHS, 3)


def test_where_everything_stands() -> None:
    assert PACKING.places.tolist() == [0, 1, 0, 1, 2, 0]
    assert PACKING.mask is not None
    assert PACKING.mask[:, 0, 0].tolist() == [[True, True, False], [True, True, True], [True, False, False]]
    assert Packing(LENGTHS, 3, masked=False).mask is None


def test_ids_and_places_of_both_kinds() -> None:
    ids = torch.tensor([[4, 5, 0], [6, 7, 8], [9, 0, 0]])
    assert PACKING.pack_ids(ids).tolist() == [4, 5, 6, 7, 8, 9]
    assert ALL.pack_ids(ids).tolist() == [4, 5, 0, 6, 7, 8, 9, 0, 0]
    assert PACKING.places.tolist() == [0, 1, 0, 1, 2, 0]
    assert ALL.places.tolist() == [0, 1, 2] * 3


def test_tokens_come_back_from_padding_and_nothing_comes_from_it() -> None:
    rows = torch.randn(6, 4, requires_grad=True)
    padded = PACKING.pad(rows)
    assert padded.shape == (3, 3, 4)
    torch.testing.assert_close(PACKING.pack(padded), rows)
    weights = torch.randn(3, 3, 4)
    (gradient,) = torch.autograd.grad((PACKING.pack(padded) * PACKING.pack(weights)).sum(), rows)
    torch.testing.assert_close(gradient, PACKING.pack(weights))
    there = torch.randn(3, 3, 4, requires_grad=True)
    (gradient,) = torch.autograd.grad(PACKING.pack(there).sum(), there)
    assert gradient[..., 0].tolist() == [[1, 1, 0], [1, 1, 1], [1, 0, 0]]


def test_with_all_positions_nothing_is_copied() -> None:
    rows = torch.randn(9, 4)
    assert ALL.pad(rows).data_ptr() == rows.data_ptr()
    assert ALL.pack(ALL.pad(rows)).data_ptr() == rows.data_ptr()


def test_rows_that_fill_up_are_looked_at_by_nobody() -> None:
    filled = Packing(LENGTHS, 3, TOKENS, padding_rows=2)
    assert len(filled.pack_ids(torch.arange(9).view(3, 3))) == 8
    assert filled.token_rows(torch.arange(8), TOKENS).tolist() == list(range(6))
    rows = torch.randn(8, 4, requires_grad=True)
    padded = filled.pad(rows)
    torch.testing.assert_close(padded, PACKING.pad(rows[:6]))
    (gradient,) = torch.autograd.grad(padded.sum(), rows)
    assert gradient[:, 0].tolist() == [1, 1, 1, 1, 1, 1, 0, 0]
    there = torch.randn(3, 3, 4, requires_grad=True)
    packed = filled.pack(there)
    torch.testing.assert_close(packed[:6], PACKING.pack(there))
    (gradient,) = torch.autograd.grad(packed[:6].sum(), there)
    assert gradient[..., 0].tolist() == [[1, 1, 0], [1, 1, 1], [1, 0, 0]]
