"""Adapters against the plain layer that computes the same."""

import torch
from torch import nn

from tolka.nn.lora import LoraLinear, adapter_tensors, add_adapters, has_adapters, merged_state


def layer() -> tuple[nn.Linear, LoraLinear]:
    torch.manual_seed(0)
    plain = nn.Linear(6, 4).double()
    return plain, LoraLinear(plain, rank=2, alpha=8.0)


def test_at_first_nothing_has_changed() -> None:
    plain, adapted = layer()
    x = torch.randn(3, 5, 6, dtype=torch.float64)
    assert torch.equal(adapted(x), plain(x))
    assert adapted.weight is plain.weight


def test_the_formula_and_the_merged_layer() -> None:
    plain, adapted = layer()
    nn.init.normal_(adapted.lora_b)
    x = torch.randn(3, 6, dtype=torch.float64)
    by_hand = x @ plain.weight.T + plain.bias + (8.0 / 2) * (x @ adapted.lora_a.T) @ adapted.lora_b.T
    torch.testing.assert_close(adapted(x), by_hand)
    merged = nn.Sequential(nn.Linear(6, 4).double())
    merged.load_state_dict(merged_state(nn.Sequential(adapted)))
    torch.testing.assert_close(merged(x), by_hand)


def test_only_adapters_learn() -> None:
    model = nn.Sequential(nn.Linear(3, 5), nn.LayerNorm(5), nn.Sequential(nn.Linear(5, 2)))
    assert add_adapters(model, rank=1, alpha=1.0) == 2
    learning = [name for name, weight in model.named_parameters() if weight.requires_grad]
    assert learning == ["0.lora_a", "0.lora_b", "2.0.lora_a", "2.0.lora_b"]
    plain = nn.Sequential(nn.Linear(3, 5), nn.LayerNorm(5), nn.Sequential(nn.Linear(5, 2)))
    assert merged_state(model).keys() == plain.state_dict().keys()
    assert (has_adapters(model), has_adapters(plain)) == (True, False)
    model(torch.randn(4, 3)).sum().backward()
    assert model[0].weight.grad is None


def test_adapter_tensors_have_the_scale_worked_in() -> None:
    plain, adapted = layer()
    nn.init.normal_(adapted.lora_b)
    before = plain.weight.detach().clone()
    tensors = adapter_tensors(nn.Sequential(adapted))
    assert list(tensors) == ["0.weight.a", "0.weight.b"]
    torch.testing.assert_close(before + tensors["0.weight.b"] @ tensors["0.weight.a"], adapted.merged())
