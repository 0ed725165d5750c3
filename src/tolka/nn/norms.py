"""Normalisation layers over the model width."""

from collections.abc import Callable
from functools import partial

from torch import nn

# RMSNorm (Zhang and Sennrich 2019, equation 4): x / sqrt(mean(x^2) + eps) * gain, without centring or bias.
NORMALIZATIONS: dict[str, Callable[[int], nn.Module]] = {
    "layernorm": nn.LayerNorm,
    "rmsnorm": partial(nn.RMSNorm, eps=1e-6),
}
