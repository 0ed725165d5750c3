"""Which weights move."""

import pytest
import torch

from tolka.data.batch import collate
from tolka.errors import ConfigError
from tolka.losses.cross_entropy import Objective
from tolka.models.base import Seq2Seq
from tolka.models.transformer import TransformerConfig
from tolka.nn.lora import LoraLinear
from tolka.training.finetuning import FinetuningConfig

BATCH = collate([[4, 5, 6], [7]], [[8, 9], [10, 4]])


def moved(config: FinetuningConfig) -> set[str]:
    """The parameters that three updates change."""
    torch.manual_seed(0)
    model: Seq2Seq = TransformerConfig(d_model=16, heads=2, layers=2, share_embeddings="none").build(11, 11, True)
    config.apply(model)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        Objective(model, 0.1)(BATCH).loss.backward()
        optimizer.step()
    return {name for name, weight in model.named_parameters() if not torch.equal(weight, before[name])}


def test_without_it_everything_moves() -> None:
    names = moved(FinetuningConfig())
    assert {name.split(".")[0] for name in names} >= {"encoder", "decoder", "source_embedding", "output_embedding"}


@pytest.mark.parametrize("parts", [["encoder"], ["decoder.0.cross", "source_embedding"], ["output_embedding"]])
def test_frozen_parts_stay_and_the_rest_moves(parts: list[str]) -> None:
    names = moved(FinetuningConfig(freeze=parts))
    inside = {name for name in moved(FinetuningConfig()) if any(name.startswith(f"{part}.") for part in parts)}
    assert inside
    assert names == moved(FinetuningConfig()) - inside


def test_adapters_alone_move() -> None:
    names = moved(FinetuningConfig(lora_rank=2))
    assert names
    assert all(name.endswith((".lora_a", ".lora_b")) for name in names)
    assert any(name.startswith("encoder.0.attention.query_key_value") for name in names)


def test_alpha_scales_the_adapters() -> None:
    scales = {}
    for alpha in (16.0, 4.0):
        model = TransformerConfig(d_model=16, heads=2, layers=1).build(11, 11, True)
        FinetuningConfig(lora_rank=2, lora_alpha=alpha).apply(model)
        scales[alpha] = {module.scale for module in model.modules() if isinstance(module, LoraLinear)}
    assert scales == {16.0: {8.0}, 4.0: {2.0}}


def test_complaints() -> None:
    model = TransformerConfig(d_model=16, heads=2, layers=1).build(11, 11, True)
    with pytest.raises(
        ConfigError, match=r"no part 'encodr' with .* Did you mean 'encoder'\? Or encoder\.0\? Parts: t"
    ):
        FinetuningConfig(freeze=["encodr"]).apply(model)
    with pytest.raises(ConfigError, match=r"no part 'source_positions' with weights of its own"):
        FinetuningConfig(freeze=["source_positions"]).apply(model)
    everything = [name for name, part in model.named_children() if list(part.parameters())]
    with pytest.raises(ConfigError, match=r"leaves nothing to train"):
        FinetuningConfig(freeze=everything).apply(model)
    with pytest.raises(ConfigError, match=r"leave one out"):
        FinetuningConfig(freeze=["encoder"], lora_rank=4)
    with pytest.raises(ConfigError, match=r"finetuning.lora_alpha \(0\) must be above 0"):
        FinetuningConfig(lora_rank=4, lora_alpha=0)
