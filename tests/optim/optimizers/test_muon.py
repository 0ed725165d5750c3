"""Muon: what its iteration makes of a matrix, its update by the formula, and which parameters it leaves to AdamW."""

from typing import Any

import numpy as np
import pytest
import torch
from rows import each_row
from torch import Tensor, nn

from tolka.models.base import Seq2Seq
from tolka.models.transformer import TransformerConfig
from tolka.nn.linear import FusedLinear
from tolka.nn.lora import LoraLinear
from tolka.optim.optimizers.muon import MuonConfig, orthogonalise
from tolka.optim.optimizers.of_torch import AdamWConfig


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("shape", [(16, 16), (8, 24), (24, 8)])
def test_orthogonalised_keeps_the_directions_and_evens_out_their_sizes(shape: tuple[int, int]) -> None:
    matrix = random(*shape) * 1e3
    u, sizes, v = torch.linalg.svd(matrix, full_matrices=False)
    assert sizes.max() / sizes.min() > 2
    (found,) = orthogonalise(matrix[None])
    turned = u.mT @ found @ v.mT  # diagonal where the directions are kept
    torch.testing.assert_close(turned, torch.diag(turned.diagonal()), atol=1e-9, rtol=0)
    assert turned.diagonal().min() > 0.68
    assert turned.diagonal().max() < 1.21


def test_orthogonalised_takes_each_matrix_by_itself() -> None:
    first, second = random(5, 7), 100 * random(5, 7, seed=1)
    together = orthogonalise(torch.stack([first, second, torch.zeros(5, 7, dtype=torch.float64)]))
    torch.testing.assert_close(together[0], orthogonalise(first[None])[0])
    torch.testing.assert_close(together[1], orthogonalise(second[None])[0])
    assert together[2].abs().max() == 0.0


def test_wide_matrices_in_bf16_have_the_same_directions() -> None:
    """In bf16 where the device multiplies it; matrices below 128 rows or columns in fp32 everywhere."""
    wide, narrow = random(2, 128, 160), random(2, 100, 160)
    found = orthogonalise(wide.float())
    assert found.dtype == torch.float32
    assert torch.cosine_similarity(found.flatten(1).double(), orthogonalise(wide).flatten(1)).min() > 0.999
    torch.testing.assert_close(orthogonalise(narrow.float()).double(), orthogonalise(narrow), atol=1e-4, rtol=0)


@each_row(("momentum", "decay"), [(0.9, 0.0), (0.5, 0.1), (0.0, 0.0)])
@each_row("shape", [(3, 4), (4, 3)])
def test_update_by_the_formula(shape: tuple[int, int], momentum: float, decay: float) -> None:
    """M = b M + (1 - b) G; W = (1 - lr d) W - 0.2 sqrt(max(m, n)) lr O(b M + (1 - b) G)."""
    model = nn.Linear(*shape[::-1], bias=False).double()
    weight, mean = model.weight.detach().numpy().copy(), np.zeros(shape)
    optimizer = MuonConfig(lr=0.01, momentum=momentum, weight_decay=decay).build(model)
    for step in range(3):
        gradient = random(*shape, seed=step)
        mean = momentum * mean + (1 - momentum) * gradient.numpy()
        ahead = momentum * mean + (1 - momentum) * gradient.numpy()
        direction = orthogonalise(torch.tensor(ahead)[None])[0].numpy()
        weight = (1 - 0.01 * decay) * weight - 0.01 * 0.2 * 2.0 * direction
        model.weight.grad = gradient
        optimizer.step()
    np.testing.assert_allclose(model.weight.detach().numpy(), weight, rtol=1e-9)


def test_maps_in_one_parameter_move_as_if_apart() -> None:
    fused, apart = FusedLinear(4, [4, 4, 2]).double(), [nn.Linear(4, rows).double() for rows in (4, 4, 2)]
    with torch.no_grad():
        for linear, view in zip(apart, fused.matrices(), strict=True):
            linear.weight.copy_(view)
    gradient = random(10, 4)
    fused.weight.grad = gradient
    MuonConfig().build(fused).step()
    for linear, part, moved in zip(apart, gradient.split([4, 4, 2]), fused.matrices(), strict=True):
        linear.weight.grad = part
        MuonConfig().build(linear).step()
        torch.testing.assert_close(moved, linear.weight)


def test_adapters_of_maps_in_one_parameter_move_as_if_apart() -> None:
    """B of an adapter (10, 2) holds those of three maps below each other."""
    layer = LoraLinear(FusedLinear(4, [4, 4, 2]), rank=2, alpha=1.0).double()
    layer.weight.requires_grad_(False)
    layer.lora_b.grad = torch.cat([random(4, 2), 100 * random(4, 2, seed=1), random(2, 2, seed=2)])
    MuonConfig(lr=1.0).build(layer).step()
    for part, gradient in zip(layer.lora_b.split([4, 4, 2]), layer.lora_b.grad.split([4, 4, 2]), strict=True):
        expected = -0.2 * max(part.shape) ** 0.5 * orthogonalise(gradient[None])[0]
        torch.testing.assert_close(part.detach(), expected)


def stepped(config: AdamWConfig, share: str) -> tuple[Seq2Seq, dict[str, Tensor]]:
    """A small Transformer after one update, and its parameters by name."""
    torch.manual_seed(1)
    model = TransformerConfig(d_model=8, heads=2, layers=1, share_embeddings=share).build(11, 11, True)
    optimizer = config.build(model)
    for number, weight in enumerate(model.parameters()):
        weight.grad = random(*weight.shape, seed=number).float()
    optimizer.step()
    return model, {name: weight.detach() for name, weight in model.named_parameters()}


@pytest.mark.parametrize("share", ["all", "target_output", "none"])
def test_embeddings_output_layer_norms_and_biases_are_adamw_s(share: str) -> None:
    options: dict[str, Any] = {"beta1": 0.5, "beta2": 0.6, "eps": 0.1, "weight_decay": 0.2}
    (model, muon), (_, adamw) = (stepped(config(**options), share) for config in (MuonConfig, AdamWConfig))
    names = {weight: name for name, weight in model.named_parameters()}
    tables = {names[weight] for weight in model.logits_parameters()}
    tables |= {name for name in muon if "embed" in name}
    assert len([name for name in tables if muon[name].dim() == 2]) == {"all": 1, "target_output": 2, "none": 3}[share]
    for name, weight in muon.items():
        assert torch.equal(weight, adamw[name]) is (name in tables or weight.dim() < 2), name


def test_the_output_layer_is_adamw_s_whatever_it_is_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """A linear layer, say, that no embedding shares."""
    model = TransformerConfig(d_model=8, heads=2, layers=1).build(11, 11, True)
    linear = next(module.weight for module in model.modules() if isinstance(module, nn.Linear))
    assert any(weight is linear for weight in MuonConfig().build(model).param_groups[0]["params"])
    monkeypatch.setattr(model, "logits_parameters", lambda: [linear])
    assert not any(weight is linear for weight in MuonConfig().build(model).param_groups[0]["params"])


def test_an_update_that_overflowed_in_fp16_is_passed_over_whole() -> None:
    model = nn.Sequential(nn.Embedding(3, 4), nn.Linear(4, 4))
    before = [weight.detach().clone() for weight in model.parameters()]
    optimizer, scaler = MuonConfig().build(model), torch.amp.GradScaler("cpu")
    loss = model(torch.tensor([1])).sum() * 1e38
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() < 65536.0
    assert all(torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))
