"""Positional encodings against their formulas, written out."""

import cmath
import math

import pytest
import torch

from tolka.nn.positions import LearnedPositions, RotaryPositions, SinusoidalPositions, sinusoids


def test_sinusoids_by_hand() -> None:
    table = sinusoids(torch.arange(3), 4)
    for pos in range(3):
        expected = [math.sin(pos), math.cos(pos), math.sin(pos / 100), math.cos(pos / 100)]
        assert table[pos].tolist() == pytest.approx(expected, abs=1e-6)
    assert sinusoids(torch.arange(3), 5).shape == (3, 5)


def test_sinusoids_of_fairseq_begin_at_two_and_end_at_a_ten_thousandth() -> None:
    table = sinusoids(torch.arange(3), 7, "sinusoidal_fairseq")
    for place, row in enumerate(table.tolist()):
        angles = [(place + 2) / 10000 ** (i / 2) for i in range(3)]
        expected = [*map(math.sin, angles), *map(math.cos, angles), 0.0]
        assert row == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("width", [6, 7])
def test_sinusoids_of_marian_end_at_a_ten_thousandth(width: int) -> None:
    """As its loop writes them (marian-dev, src/graph/node_initializers.cpp); of an odd width s_3 replaces c_0."""
    table = sinusoids(torch.arange(3), width, "sinusoidal_marian")
    for place, row in enumerate(table.tolist()):
        expected = [0.0] * width
        for i in range((width + 1) // 2):
            angle = place * math.exp(-i * math.log(10000) / (width / 2 - 1))
            expected[i], expected[width // 2 + i] = math.sin(angle), math.cos(angle)
        assert row == pytest.approx(expected, abs=1e-6)


def test_positions_beyond_the_table_are_the_same_function() -> None:
    positions = SinusoidalPositions(16)
    first = positions(0, 10).clone()
    torch.testing.assert_close(positions(5000, 3), sinusoids(torch.arange(5000, 5003), 16))
    torch.testing.assert_close(positions(0, 10), first)


def test_learned_positions_share_the_last() -> None:
    positions = LearnedPositions(4, limit=3)
    vectors = positions(1, 4)
    assert torch.equal(vectors[1], vectors[3])
    assert not torch.equal(vectors[0], vectors[1])


@pytest.mark.parametrize("start", [0, 7, 5000])
def test_rotary_is_a_product_of_complex_numbers(start: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 6, dtype=torch.float64)
    rotated = RotaryPositions(6)(x, start)
    for t in range(3):
        for i in range(3):
            pair = complex(*x[t, 2 * i : 2 * i + 2].tolist())
            pair *= cmath.exp(1j * (start + t) / 10000 ** (2 * i / 6))
            assert rotated[t, 2 * i : 2 * i + 2].tolist() == pytest.approx([pair.real, pair.imag], abs=1e-11)


def test_rotary_scores_depend_on_the_distance_alone() -> None:
    torch.manual_seed(0)
    rotary, query, key = RotaryPositions(8), torch.randn(1, 8).double(), torch.randn(1, 8).double()

    def score(query_at: int, key_at: int) -> float:
        return float(rotary(query, query_at) @ rotary(key, key_at).T)

    assert score(3, 1) == pytest.approx(score(1003, 1001), abs=1e-10)
    assert score(3, 3) == pytest.approx(float(query @ key.T), abs=1e-10)
    assert score(3, 1) != pytest.approx(score(3, 2), abs=1e-3)


def test_rotary_keeps_the_dtype_and_its_precision() -> None:
    """The table follows a change of precision or length."""
    torch.manual_seed(0)
    rotary, x = RotaryPositions(4), torch.randn(2, 3, 5, 4).double()
    exact = RotaryPositions(4)(x, 100)
    for dtype, tolerance in ((torch.bfloat16, 2e-2), (torch.float32, 1e-5), (torch.float64, 1e-13)):
        rotated = rotary(x.to(dtype), 100)
        assert rotated.dtype == dtype
        torch.testing.assert_close(rotated.double(), exact, rtol=tolerance, atol=tolerance)


def test_rotary_first_used_while_translating_still_trains() -> None:
    rotary, x = RotaryPositions(4), torch.randn(5, 4, requires_grad=True)
    with torch.inference_mode():
        rotary(x, 0)
    rotary(x, 0).pow(2).sum().backward()
    torch.testing.assert_close(x.grad, 2 * x)  # turning changes no length
