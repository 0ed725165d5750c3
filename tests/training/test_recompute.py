"""trainer.recompute: the same gradients to the last bit, dropout and all, out of less memory."""

from typing import Any

import pytest
import torch

from tolka.config.command_line import train_config
from tolka.data.batch import collate
from tolka.errors import ConfigError
from tolka.losses.cross_entropy import Objective
from tolka.models.transformer import TransformerConfig

SOURCES = [[4 + (i * j) % 40 for i in range(6 + j)] for j in range(8)]
TARGETS = [[4 + (3 * i + j) % 40 for i in range(5 + j)] for j in range(8)]
OPTIONS = TransformerConfig(d_model=32, layers=3, dropout=0.2, attention_dropout=0.1)


def made(recompute: bool) -> Objective:
    torch.manual_seed(1)
    model = OPTIONS.build(50, 50, shared=True)
    model.recompute = recompute
    return Objective(model, label_smoothing=0.1).train()


def test_the_gradients_are_the_same() -> None:
    found: list[dict[str, Any]] = []
    for recompute in (False, True):
        objective = made(recompute)
        torch.manual_seed(2)
        for _ in range(2):  # the generators go on alike after the first pass, too
            objective(collate(SOURCES, TARGETS)).loss.backward()
        found.append({name: each.grad for name, each in objective.named_parameters()})
    assert found[0].keys() == found[1].keys()
    assert len(found[0]) > 40
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])


def test_it_keeps_less() -> None:
    def bytes_kept(objective: Objective) -> int:
        """Of what a forward pass saves for its backward pass; weights are in it both times."""
        sizes: dict[int, int] = {}  # address of a storage -> bytes

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            _ = objective(collate(SOURCES * 8, TARGETS * 8))
        return sum(sizes.values())

    assert bytes_kept(made(True)) < 0.5 * bytes_kept(made(False))


def test_a_run_takes_it_and_a_recurrent_model_does_not(tiny: list[str]) -> None:
    assert train_config([*tiny, "trainer.recompute=true"]).trainer.recompute
    with pytest.raises(ConfigError, match=r"trainer\.recompute=true saves memory between a Transformer's layers"):
        train_config(["model=lstm_attention", "trainer.recompute=true"])
