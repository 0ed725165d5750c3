"""Why scores are divided by sqrt(d_k): their variance, how peaked the softmax gets, and what gradient it passes on.

Shapes: N draws, S keys of a draw, K width of queries and keys.
"""

import math
import statistics
from collections.abc import Callable
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor

from tolka.kernels.packing import Packing
from tolka.models.transformer import TransformerConfig
from tolka.models.transformer.layers import EncoderLayer
from transformer_figures.common import BLUE, GREY, ORANGE, Numbers, table

WIDTHS = [4, 8, 16, 32, 64, 128, 256, 512, 1024]
KEYS, DRAWS, SEED = 20, 2000, 1
MODEL_WIDTH, MODEL_HEADS = 256, (64, 16, 4, 1)
FACTORS: dict[str, Callable[[int], float]] = {"unscaled": lambda d_k: 1.0, "scaled": lambda d_k: 1.0 / math.sqrt(d_k)}
COLOURS = {"unscaled": ORANGE, "scaled": BLUE}


def measure() -> Numbers:
    """Way of scaling -> quantity -> one summary a width; and the score variance of untrained models."""
    draws: dict[str, dict[str, list[Numbers]]] = {name: {} for name in FACTORS}
    for d_k in WIDTHS:
        generator = torch.Generator().manual_seed(SEED)
        query = torch.randn(DRAWS, 1, d_k, generator=generator)
        key = torch.randn(DRAWS, KEYS, d_k, generator=generator)
        for name, factor in FACTORS.items():
            for quantity, values in quantities(query, key, factor(d_k)).items():
                draws[name].setdefault(quantity, []).append(summary(values))
    return {"widths": WIDTHS, "keys": KEYS, "draws": DRAWS, **draws, "model": model_variances()}


def quantities(query: Tensor, key: Tensor, factor: float) -> dict[str, Tensor]:
    """Each (N,). query (N, 1, K), key (N, S, K); p = softmax(s), s = factor * q.k, J = dp/ds = diag(p) - p p^T.

    query_gradient: Frobenius norm of dp/dq = factor * J K, which is what reaches W_Q.
    """
    scores = (query @ key.transpose(1, 2))[:, 0] * factor
    p = scores.softmax(-1)
    jacobian = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
    return {
        "variance": scores.square().mean(-1),
        "largest": p.amax(-1),
        "entropy": torch.special.entr(p).sum(-1),
        "jacobian": jacobian.flatten(1).norm(dim=-1),
        "query_gradient": (factor * (jacobian @ key)).flatten(1).norm(dim=-1),
    }


def summary(values: Tensor) -> Numbers:
    """Mean, median and the middle 80 % of the draws."""
    deciles = statistics.quantiles(values.tolist(), n=10)
    return {"mean": values.mean().item(), "median": deciles[4], "low": deciles[0], "high": deciles[-1]}


def model_variances() -> dict[str, float]:
    """d_k -> variance of q.k, unscaled, in the first encoder layer of an untrained pre-norm model, random pieces."""
    found = {}
    for heads in MODEL_HEADS:
        torch.manual_seed(SEED)
        config = TransformerConfig(d_model=MODEL_WIDTH, heads=heads, layers=1, dropout=0.0)
        layer = config.build(2000, 2000, shared=True).encoder[0]
        assert isinstance(layer, EncoderLayer)
        x = torch.randn(64, KEYS, MODEL_WIDTH)
        with torch.no_grad():
            query, key, _ = layer.attention.project(
                layer.around_attention.norm(x).flatten(0, 1), Packing(torch.full((64,), KEYS), KEYS)
            )
        found[str(MODEL_WIDTH // heads)] = (
            (query.view(64, KEYS, heads, -1).transpose(1, 2) @ key.view(64, KEYS, heads, -1).permute(0, 2, 3, 1))
            .var()
            .item()
        )
    return found


def tables(numbers: Numbers) -> dict[str, str]:
    """`scaling`: unscaled and scaled side by side. `model`: the same variance inside a model."""

    def cell(quantity: str, which: str, place: int, digits: int) -> str:
        pair = [numbers[name][quantity][place][which] for name in FACTORS]
        return " / ".join(f"{value:.{digits}f}" for value in pair)

    rows = [
        [
            str(d_k),
            cell("variance", "mean", place, 2),
            cell("largest", "mean", place, 2),
            cell("entropy", "mean", place, 2),
            cell("jacobian", "median", place, 4),
            cell("query_gradient", "median", place, 3),
            cell("query_gradient", "mean", place, 3),
        ]
        for place, d_k in enumerate(WIDTHS)
        if d_k in (4, 16, 64, 256, 1024)
    ]
    header = ["d_k (unscaled / scaled)", "variance of the scores", "largest weight, mean", "entropy, mean (nats)"]
    header += ["norm of dp/ds, median", "norm of dp/dq, median", "norm of dp/dq, mean"]
    model = table(["d_k", *numbers["model"]], [["variance of q·k", *(f"{v:.1f}" for v in numbers["model"].values())]])
    return {"scaling": table(header, rows), "scaling_model": model}


def draw(numbers: Numbers, folder: Path) -> None:
    """scaling.png: variance, largest weight, gradient."""
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    panels = {
        "variance": ("mean", "variance of the scores", "Spread of q·k"),
        "largest": ("mean", f"largest of {KEYS} weights", "Peakedness"),
        "jacobian": ("median", "norm of dp/ds", "Gradient through the softmax"),
    }
    for axes, (quantity, (which, label, title)) in zip(figure.subplots(1, 3), panels.items(), strict=True):
        for name in FACTORS:
            found = numbers[name][quantity]
            text = {"unscaled": "q·k", "scaled": "q·k / √d_k"}[name]
            axes.plot(WIDTHS, [f[which] for f in found], marker="o", markersize=4, color=COLOURS[name], label=text)
            band = [f["low"] for f in found], [f["high"] for f in found]
            axes.fill_between(WIDTHS, *band, color=COLOURS[name], alpha=0.15)
        axes.set_xscale("log", base=2)
        axes.set(
            xlabel="d_k", ylabel=f"{label}, {which}", title=title, xticks=WIDTHS[::2], xticklabels=map(str, WIDTHS[::2])
        )
        axes.grid(color=GREY, alpha=0.25)
        if quantity == "variance":
            axes.set_yscale("log")
        elif quantity == "jacobian":
            axes.set_yscale("log")
            axes.set_ylim(bottom=1e-6)
        else:
            axes.set_ylim(0, 1)
    lines = axes.get_lines()
    figure.legend(handles=lines, loc="outside lower center", ncols=2, title="band: the middle 80 % of draws")
    figure.savefig(folder / "scaling.png", dpi=110)
