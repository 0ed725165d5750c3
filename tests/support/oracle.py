"""What a fast model is compared with: its weights made unlike fresh ones, random pairs, and the loss written out."""

import random

import torch
from torch import Tensor, nn

from tolka.data.batch import EOS, Batch, collate
from tolka.losses.cross_entropy import Objective
from tolka.models.base import Seq2Seq

VOCABULARY = 14


def perturb(model: nn.Module, seed: int) -> None:
    """Add noise to every parameter, since fresh biases are 0 and gains 1, which would hide what they are used for."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype), alpha=0.2)


def random_batch(draw: random.Random) -> Batch:
    """One to five pairs of 0 to 9 tokens a side, so that padding varies too."""

    def rows() -> list[list[int]]:
        return [draw.choices(range(EOS + 1, VOCABULARY), k=draw.randint(0, 9)) for _ in range(pairs)]

    pairs = draw.randint(1, 5)
    return collate(rows(), rows())


def smoothed_loss(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """Logits (N, V), targets (N,) -> the sum over tokens of the cross-entropy with (1 - e) * one-hot + e / V."""
    log_p = logits.log_softmax(dim=-1)
    wanted = torch.zeros_like(log_p).scatter(1, targets[:, None], 1.0 - smoothing) + smoothing / logits.size(1)
    return -(wanted * log_p).sum()


def assert_equal_training(model: Seq2Seq, batch: Batch, logits: Tensor, parameters: dict[str, Tensor]) -> None:
    """The model's logits, loss and gradients of all parameters are the oracle's, to 1e-9.

    model: float64, without dropout. logits (N, V): the oracle's, of its `parameters`, which have the model's names.
    """
    model.train()
    torch.testing.assert_close(model.logits(model(batch)), logits, rtol=0, atol=1e-9)
    expected = smoothed_loss(logits, batch.targets, 0.1)
    sums = Objective(model, label_smoothing=0.1)(batch)
    torch.testing.assert_close(sums.loss, expected, rtol=1e-9, atol=1e-9)
    names = dict(model.named_parameters())
    assert names.keys() == parameters.keys()
    found = torch.autograd.grad(sums.loss, list(names.values()))
    wanted = torch.autograd.grad(expected, [parameters[name] for name in names])
    for name, one, other in zip(names, found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9, msg=f"{name}: {{}}".format)
