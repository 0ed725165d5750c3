"""Bounds of the uniform distributions, by their formulas."""

import math

import pytest
import torch
from torch import nn

from tolka.nn.initialization import SkipInitialization, initialise
from tolka.nn.linear import FusedLinear


def bounds(initialization: str, layer: nn.Linear) -> list[float]:
    """Largest weight of each matrix of the layer."""
    torch.manual_seed(0)
    initialise(layer, initialization, embedding_std=1.0)
    assert (layer.bias == 0).all()
    parts = layer.matrices() if isinstance(layer, FusedLinear) else (layer.weight,)
    for part in parts:  # uniform: the variance is a third of the bound's square
        assert part.std().item() == pytest.approx(part.abs().max().item() / math.sqrt(3), rel=0.05)
    return [part.abs().max().item() for part in parts]


@pytest.mark.parametrize("fused", [False, True])
def test_xavier_and_kaiming(fused: bool) -> None:
    """64 wide in; 32 and 96 wide out, side by side where fused: only Xavier's bound depends on the fan-out."""
    layers = [FusedLinear(64, [32, 96])] if fused else [nn.Linear(64, 32), nn.Linear(64, 96)]
    for name, expected in (
        ("xavier", [math.sqrt(6 / (64 + 32)), math.sqrt(6 / (64 + 96))]),
        ("kaiming", [math.sqrt(6 / 64)] * 2),
    ):
        found = [bound for layer in layers for bound in bounds(name, layer)]
        for bound, limit in zip(found, expected, strict=True):
            assert 0.98 * limit < bound <= limit


def test_kaiming_keeps_the_second_moment_behind_a_relu() -> None:
    """Kaiming initialisation keeps E[relu(W x)^2] = E[x^2]."""
    torch.manual_seed(0)
    layer = nn.Linear(512, 512)
    initialise(layer, "kaiming", embedding_std=1.0)
    x = torch.randn(1000, 512)
    assert layer(x).relu().square().mean().item() == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("initialization", ["xavier", "kaiming"])
def test_embeddings_are_normal_and_padding_is_zero(initialization: str) -> None:
    torch.manual_seed(0)
    embedding = nn.Embedding(1000, 64, padding_idx=0)
    initialise(embedding, initialization, embedding_std=0.125)
    assert (embedding.weight[0] == 0).all()
    assert embedding.weight[1:].std().item() == pytest.approx(0.125, rel=0.02)
    assert embedding.weight.abs().max().item() > 3 * 0.125


def test_uninitialised_draws_nothing_and_only_while_it_lasts() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    with SkipInitialization():
        layers = [nn.Linear(8, 8), nn.Embedding(8, 8), nn.LSTM(8, 8)]
        for layer in layers:
            initialise(layer, "xavier", embedding_std=1.0)
    assert torch.equal(torch.get_rng_state(), before)
    layer = nn.Linear(64, 64)
    assert 0 < layer.weight.std().item() < 1
    assert not torch.equal(torch.get_rng_state(), before)
