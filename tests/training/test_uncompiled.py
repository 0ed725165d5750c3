"""Optimisers without torch's compiler: the same numbers, and the compiler stays where it is."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from tolka.training.uncompiled import SGD, Adam, AdamW


@pytest.mark.parametrize(
    ("ours", "torchs", "options"),
    [
        (AdamW, torch.optim.AdamW, {"fused": True, "weight_decay": 0.1}),
        (Adam, torch.optim.Adam, {"fused": True}),
        (SGD, torch.optim.SGD, {"momentum": 0.9}),
    ],
)
def test_the_same_numbers(
    ours: type[torch.optim.Optimizer], torchs: type[torch.optim.Optimizer], options: dict[str, float]
) -> None:
    weights = []
    for kind in (ours, torchs):
        torch.manual_seed(0)
        layer = nn.Linear(5, 3)
        optimizer = kind(layer.parameters(), lr=0.1, **options)
        for step in range(4):
            optimizer.zero_grad()
            layer(torch.randn(7, 5)).square().sum().backward()
            optimizer.step()
            if step == 1:
                state = optimizer.state_dict()
                optimizer = kind(layer.parameters(), lr=1.0, **options)
                optimizer.load_state_dict(state)
        weights.append(layer.weight)
        assert all(group["lr"] == 0.1 for group in optimizer.param_groups)
        assert not any(parameter.grad is None for parameter in layer.parameters())
    assert torch.equal(*weights)


def test_a_training_does_not_load_the_compiler(tiny: list[str]) -> None:
    """Nor the library for symbols; the first update came after 3.3 s instead of 4.3."""
    settings = [*tiny, "trainer.updates=2", "scheduler.warmup=1", "trainer.validate_every=2"]
    code = (
        f"import sys\nfrom tolka.cli.train import run\ncode = run({settings!r})\n"
        "print(code, *({'torch._dynamo', 'sympy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["0"], done.stderr
