"""An optimizer's state as named tensors."""

import torch

from tolka.optim.optimizer_state import load_state_tensors, state_tensors


def trained(updates: int) -> tuple[torch.optim.Optimizer, list[torch.nn.Parameter]]:
    """Adam on two weights, of which the second never has a gradient."""
    weights = [torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(3))]
    optimizer = torch.optim.Adam(weights, lr=0.1)
    for update in range(updates):
        step(optimizer, weights, update)
    return optimizer, weights


def step(optimizer: torch.optim.Optimizer, weights: list[torch.nn.Parameter], update: int) -> None:
    weights[0].grad = torch.tensor([1.0, float(update)])
    optimizer.step()


def test_what_is_restored_goes_on_as_if_nothing_had_been() -> None:
    optimizer, weights = trained(3)
    state = state_tensors(optimizer, dict(zip(weights, "ab", strict=True)))
    saved = {name: tensor.clone() for name, tensor in state.items()}
    assert set(saved) == {"optimizer.a.step", "optimizer.a.exp_avg", "optimizer.a.exp_avg_sq"}
    other, others = trained(1)
    load_state_tensors(other, dict(zip(others, "ab", strict=True)), saved)
    others[0].data.copy_(weights[0].data)
    for update in (3, 4):
        step(optimizer, weights, update)
        step(other, others, update)
    assert torch.equal(weights[0], others[0])
    load_state_tensors(other, dict(zip(others, "ab", strict=True)), {})
    assert other.state_dict()["state"] == {}
