"""trainer.recompute: the same gradients to the last bit, dropout and all, out of less memory."""

from typing import Any

import pytest
import torch

from tolka.config.command_line import train_config
from tolka.data.batch import collate
from tolka.errors import ConfigError
from tolka.losses.objective import Objective
from tolka.models.transformer import TransformerConfig
from tolka.system.device import Precision
from tolka.training.memory import saved_bytes

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
    kept = [
        saved_bytes(made(recompute), collate(SOURCES * 8, TARGETS * 8), Precision(torch.device("cpu"), "fp32"))
        for recompute in (False, True)
    ]
    assert kept[1] < 0.5 * kept[0]


def test_a_run_takes_it_and_a_recurrent_model_does_not(tiny: list[str]) -> None:
    assert train_config([*tiny, "trainer.recompute=true"]).trainer.recompute
    with pytest.raises(ConfigError, match=r"trainer\.recompute=true saves memory between a Transformer's layers"):
        train_config(["model=lstm_attention", "trainer.recompute=true"])
