"""What can be counted or computed without training: sizes, scales, masks, the floor of the smoothed loss, rates."""

import math
from collections import Counter
from pathlib import Path

import torch

from tolka.config.command_line import train_config
from tolka.data.batch import collate
from tolka.kernels.attention import fused_attention
from tolka.losses.cross_entropy import smoothed_gradient
from tolka.models.transformer.config import TransformerConfig
from tolka.models.transformer.model import Transformer
from tolka.nn.attention import attention_weights
from tolka.nn.positions import sinusoids
from tolka.optim.schedules.formulas import NoamConfig
from transformer_figures.common import SMOOTHING, Numbers, table

MODELS = ("transformer_tiny", "transformer_small", "transformer_base")
VOCABULARY = 2000
# One query and three keys and values that can be followed by hand: d_k 4, d_v 2.
QUERY = [1.0, 1.0, 0.0, 0.0]
KEYS = [[1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]
VALUES = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]


def measure() -> Numbers:
    """All of it; seconds."""
    torch.manual_seed(1)
    model = (
        TransformerConfig(d_model=128, layers=3, dropout=0.0).build(VOCABULARY, VOCABULARY, shared=True).double().eval()
    )
    scaled = model.target_embedding.weight.detach()[1:] * math.sqrt(128)
    floor, nll = smoothing_floor()
    peak_step = 4000
    noam = NoamConfig(warmup=peak_step, lr_init=512**-0.5)
    return {
        "example": example(),
        "parameters": {name: parameters(name) for name in MODELS},
        "embedding_rms": model.target_embedding.weight.detach()[1:].square().mean().sqrt().item(),
        "scaled_embedding_rms": scaled.square().mean().sqrt().item(),
        "position_rms": sinusoids(torch.arange(64), 128).square().mean().sqrt().item(),
        "look_ahead": look_ahead(model),
        "padding": padding(model),
        "smoothing_floor": floor,
        "smoothing_floor_nll": nll,
        "smoothing_floor_ppl": math.exp(nll),
        "noam_rates": {str(step): noam.rate(step, 0.0) for step in (1, 400, peak_step, 16000, 100000)},
    }


def parameters(name: str) -> dict[str, int]:
    """Part of the model -> trained numbers, with a shared vocabulary of 2000 subwords."""
    model = train_config([f"model={name}"]).model.build(VOCABULARY, VOCABULARY, shared=True)
    counts: Counter[str] = Counter()
    for key, parameter in model.named_parameters():
        counts[part_of(key)] += parameter.numel()
    return dict(counts)


def part_of(key: str) -> str:
    """The part that a parameter belongs to: "norms" of "encoder.0.around_attention.norm.weight"."""
    if "norm." in key:
        return "norms"
    if "embedding" in key:
        return "embeddings"
    return "feed-forward" if "feedforward" in key else "attention"


def example() -> Numbers:
    """Scores, scaled scores, weights and output of the query above."""
    query, key, value = (torch.tensor(rows)[None, None] for rows in ([QUERY], KEYS, VALUES))  # (1, 1, T or S, width)
    weights = attention_weights(query, key, mask=None, causal=False)
    return {
        "scores": (query @ key.transpose(-1, -2)).flatten().tolist(),
        "weights": weights.flatten().tolist(),
        "output": fused_attention(query, key, value, mask=None, causal=False).flatten().tolist(),
    }


def look_ahead(model: Transformer) -> float:
    """Largest change of any feature before a target token, when that token is another one."""
    with torch.no_grad():
        one, other = (model(collate([[4, 5, 6]], [[7, 8, 9, last]])) for last in (10, 11))
    return float((one[:4] - other[:4]).abs().max().item())


def padding(model: Transformer) -> float:
    """Largest difference between a sentence's features alone and beside a longer one."""
    with torch.no_grad():
        alone = model(collate([[4, 5]], [[6, 7]]))
        beside = model(collate([[4, 5], list(range(8, 28))], [[6, 7], list(range(8, 28))]))[:3]
    return float((alone - beside).abs().max().item())


def smoothing_floor() -> tuple[float, float]:
    """The smoothed loss, and the nll, of a model that says exactly the smoothed target: no model has a lower loss."""
    target = torch.full((1, VOCABULARY), SMOOTHING / VOCABULARY, dtype=torch.float64)
    target[0, 0] += 1 - SMOOTHING
    loss, nll, gradient = smoothed_gradient(target.log(), torch.zeros(1, dtype=torch.long), SMOOTHING)
    assert gradient.abs().max() < 1e-12
    return loss.item(), nll.item()


def tables(numbers: Numbers) -> dict[str, str]:
    """`example`: one query. `parameters`: by part. `scales`: embeddings and positions. `noam`: the paper's rates."""
    attended = numbers["example"]
    header = ["key and value", "q·k", "q·k / 2", "weight"]
    columns = zip(attended["scores"], attended["weights"], strict=True)
    keys = [[str(n + 1), f"{score:g}", f"{score / 2:g}", f"{weight:.3f}"] for n, (score, weight) in enumerate(columns)]
    keys.append(["output", "", "", ", ".join(f"{value:.3f}" for value in attended["output"])])
    rooms = ("embeddings", "attention", "feed-forward", "norms")
    rows = []
    for name, counts in numbers["parameters"].items():
        total = sum(counts.values())
        rows.append([name, f"{total:,}", *(f"{counts[room]:,} ({counts[room] / total:.0%})" for room in rooms)])
    scales = [
        ["embedding, d_model 128, as initialised", f"{numbers['embedding_rms']:.3f}"],
        ["the same times sqrt(d_model)", f"{numbers['scaled_embedding_rms']:.3f}"],
        ["sinusoidal position", f"{numbers['position_rms']:.3f}"],
    ]
    exact = [
        ["features before a changed target token (look-ahead mask)", f"{numbers['look_ahead']:.1g}"],
        ["features of a sentence beside a longer one (padding mask)", f"{numbers['padding']:.1g}"],
    ]
    smoothing = [[f"{numbers[f'smoothing_floor{key}']:.3f}" for key in ("", "_nll", "_ppl")]]
    rates = numbers["noam_rates"]
    return {
        "example": table(header, keys),
        "parameters": table(["model", "parameters", *rooms], rows),
        "scales": table(["root mean square of", ""], scales),
        "masks": table(["largest change of", "in float64"], exact),
        "smoothing": table(["lowest possible smoothed loss", "nll there", "PPL there"], smoothing),
        "noam": table(["update", *rates], [["rate", *(f"{rate:.2e}" for rate in rates.values())]]),
    }


def draw(numbers: Numbers, folder: Path) -> None:
    """Nothing to draw."""
