"""The most likely tokens, against torch.topk over the whole vocabulary and against a full stable sort."""

import itertools

import torch
from rows import each_row
from torch import Tensor

from tolka.kernels.top_k import NEVER, largest_sums, leave_likely


def by_full_topk(log_p: Tensor, total: Tensor, count: int) -> Tensor:
    """The largest sums (B, count) themselves."""
    sums = (log_p + total[..., None]).flatten(1)
    return sums.topk(min(count, sums.size(1)), dim=1).values


def assert_places(log_p: Tensor, total: Tensor, found: tuple[Tensor, Tensor, Tensor]) -> None:
    """Each finite sum is where the result says, and no place comes twice."""
    values, rows, columns = found
    for sentence, (sums, of_rows, of_columns) in enumerate(zip(values, rows, columns, strict=True)):
        places = [
            (row, column)
            for value, row, column in zip(sums.tolist(), of_rows.tolist(), of_columns.tolist(), strict=True)
            if value > NEVER
        ]
        assert len({*places}) == len(places)
        for value, (row, column) in zip(sums.tolist(), places, strict=False):
            assert value == (log_p[sentence, row, column] + total[sentence, row]).item()


# As many columns as are grouped, one fewer and one more; a multiple, and a rest; fewer than are wanted.
@each_row(("vocabulary", "count"), itertools.product([1, 2, 7, 255, 256, 257, 512, 1000], [1, 5, 2000]))
def test_as_torch_topk(vocabulary: int, count: int) -> None:
    torch.manual_seed(vocabulary)
    log_p, total = torch.randn(4, 3, vocabulary).log_softmax(dim=-1), torch.randn(4, 3)
    found = largest_sums(log_p, total, count)
    assert torch.equal(found[0], by_full_topk(log_p, total, count))
    assert_places(log_p, total, found)


def test_ties() -> None:
    """Sums of small whole numbers, most of which come often: any place will do, but each once."""
    torch.manual_seed(3)
    log_p, total = -torch.randint(0, 4, (5, 4, 700)).float(), -torch.randint(0, 3, (5, 4)).float()
    found = largest_sums(log_p, total, 40)
    assert torch.equal(found[0], by_full_topk(log_p, total, 40))
    assert_places(log_p, total, found)


@each_row("vocabulary", [6, 300])
def test_more_than_are_finite(vocabulary: int) -> None:
    """Two tokens of one hypothesis, and a hypothesis that is impossible as a whole."""
    log_p, total = torch.full((1, 2, vocabulary), NEVER), torch.tensor([[-1.0, NEVER]])
    log_p[0, 0, [2, vocabulary - 1]] = torch.tensor([-2.0, -0.5])
    log_p[0, 1, 3] = 0.0
    values, rows, columns = largest_sums(log_p, total, 5)
    assert values.tolist() == [[-1.5, -3.0, NEVER, NEVER, NEVER]]
    assert rows[0, :2].tolist() == [0, 0]
    assert columns[0, :2].tolist() == [vocabulary - 1, 2]
    # What is impossible has a place, too, at which search may look.
    assert int(rows.max()) <= 1
    assert int(columns.max()) < vocabulary


def left(p: list[float], top_k: int, top_p: float) -> list[int]:
    """The tokens that pass."""
    values = torch.tensor([p])
    least = leave_likely(values, top_k, top_p)
    return (values[0] >= least[0]).logical_and(values[0] > 0).nonzero().flatten().tolist()


P = [0.1, 0.4, 0.05, 0.2, 0.25]


@each_row(
    ("p", "top_k", "top_p", "expected"),
    [
        (P, 0, 1.0, [0, 1, 2, 3, 4]),
        (P, 1, 1.0, [1]),
        (P, 3, 1.0, [1, 3, 4]),
        (P, 99, 1.0, [0, 1, 2, 3, 4]),
        (P, 0, 0.3, [1]),  # the likeliest always passes
        (P, 0, 0.6, [1, 4]),
        (P, 0, 0.7, [1, 3, 4]),  # 0.65 is not enough
        (P, 2, 0.9, [1, 4]),
        (P, 4, 0.6, [1, 4]),
        ([0.25, 0.25, 0.25, 0.25], 2, 1.0, [0, 1]),  # of equal tokens those with the lower id
        ([0.1, 0.3, 0.3, 0.3], 2, 1.0, [1, 2]),
        ([0.25, 0.25, 0.25, 0.25], 0, 0.5, [0, 1]),
        ([0.5, 0.0, 0.5, 0.0], 3, 1.0, [0, 2]),
    ],
)
def test_top_k_and_top_p(p: list[float], top_k: int, top_p: float, expected: list[int]) -> None:
    assert left(p, top_k, top_p) == expected


def test_top_p_of_a_flat_distribution_over_a_large_vocabulary() -> None:
    """Three quarters of 4096 equal tokens: more than are looked at first."""
    assert left([1 / 4096] * 4096, 0, 0.75) == list(range(3072))
