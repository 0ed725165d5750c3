"""Positions: how alike the sinusoidal vectors are, and what a model can do without any."""

import random
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from tolka.evaluation.perplexity import PerplexityMeter
from tolka.models.transformer.config import TransformerConfig
from tolka.models.transformer.model import Transformer
from tolka.nn.positions import LearnedPositions, sinusoids
from tolka.optim.schedules.formulas import LinearConfig
from tolka.text.pairs import Pair
from transformer_figures.common import BLUE, FP32, GREEN, GREY, ORANGE, Numbers, Sample, mean_and_range, table, train

KINDS = ("sinusoidal", "learned", "rotary", "none")  # values of model.positions; "none" is made here
SHOWN = 64
WIDTHS = {"64": BLUE, "256": ORANGE}
LAYERS, D_MODEL, TOKENS, UPDATES, WARMUP, PEAK, SEEDS = 2, 64, 512, 600, 100, 0.005, (1, 2, 3)
LEARNED_SHOWN = 24  # positions that most training sentences reach


class NoPositions(nn.Module):
    """Zeros: tokens are what they are, wherever they stand."""

    def forward(self, start: int, length: int) -> Tensor:
        """(length, 1), to be added."""
        return torch.zeros(length, 1)


def measure(sample: Sample) -> Numbers:
    """Similarities by distance, and validation nll with and without word order, by kind and seed."""
    similar = {width: similarity(sinusoids(torch.arange(SHOWN), int(width)))[0].tolist() for width in WIDTHS}
    runs = [run(sample, kind, seed) for kind in KINDS for seed in SEEDS]
    setting = {"layers": LAYERS, "d_model": D_MODEL, "tokens": TOKENS, "updates": UPDATES, "peak": PEAK}
    return {"setting": setting, "similarity": similar, "runs": runs}


def similarity(vectors: Tensor) -> Tensor:
    """(T, D) -> (T, T): cosines."""
    unit = nn.functional.normalize(vectors, dim=-1)
    return unit @ unit.T


def build(vocabulary: int, kind: str) -> Transformer:
    """A model with this kind of positions."""
    positions = "sinusoidal" if kind == "none" else kind
    config = TransformerConfig(d_model=D_MODEL, layers=LAYERS, positions=positions)
    model = config.build(vocabulary, vocabulary, shared=True)
    if kind == "none":
        model.source_positions = model.target_positions = NoPositions()  # type: ignore[assignment]
    return model


def run(sample: Sample, kind: str, seed: int) -> Numbers:
    """One training; then the validation set as it is, and with the pieces of each source in another order."""
    torch.manual_seed(seed)
    model = build(sample.vocabulary, kind)
    schedule = LinearConfig(warmup=WARMUP, horizon=UPDATES)
    curve = [progress.train_nll for progress in train(model, sample.loader(TOKENS, seed), schedule, PEAK, every=50)]
    found: Numbers = {"kind": kind, "seed": seed, "train_nll": curve}
    for order, pairs in (("valid_nll", sample.valid), ("shuffled_nll", shuffled(sample.valid))):
        measured = PerplexityMeter(pairs, sample.tokenizer, tokens=2048).measure(model, FP32)
        found[order] = measured.nll / measured.tokens
    if isinstance(model.source_positions, LearnedPositions):
        vectors = model.source_positions.embedding.weight.detach()[:LEARNED_SHOWN]
        found["by_distance"] = by_distance(similarity(vectors))
    return found


def shuffled(pairs: list[Pair]) -> list[Pair]:
    """The words of each source in a random order: the same bag of pieces, as no piece spans a blank."""
    draw = random.Random(1)
    sources = [pair.source.split() for pair in pairs]
    for words in sources:
        draw.shuffle(words)
    return [Pair(" ".join(words), pair.target) for words, pair in zip(sources, pairs, strict=True)]


def by_distance(similar: Tensor) -> list[float]:
    """Means of the diagonals of (T, T)."""
    return [similar.diagonal(distance).mean().item() for distance in range(len(similar))]


def tables(numbers: Numbers) -> dict[str, str]:
    """`positions`: nll by kind. `similarity`: cosine by distance."""
    rows = []
    for kind in KINDS:
        runs = [r for r in numbers["runs"] if r["kind"] == kind]
        rows.append([kind] + [mean_and_range([r[key] for r in runs], 3) for key in ("valid_nll", "shuffled_nll")])
    distances = (0, 1, 2, 4, 8, 16, 32)
    similar = [
        [f"sinusoidal, d_model {width}", *(f"{numbers['similarity'][width][d]:.2f}" for d in distances)]
        for width in WIDTHS
    ]
    learned = learned_by_distance(numbers)
    similar.append(
        [f"learned, d_model {D_MODEL}", *(f"{learned[d]:.2f}" if d < len(learned) else "" for d in distances)]
    )
    return {
        "positions": table(["positions", "validation nll", "the same, source words shuffled"], rows),
        "similarity": table(["distance", *map(str, distances)], similar),
    }


def learned_by_distance(numbers: Numbers) -> list[float]:
    """Cosine by distance of the trained source positions, mean over the seeds."""
    found = [r["by_distance"] for r in numbers["runs"] if r["kind"] == "learned"]
    return [sum(values) / len(values) for values in zip(*found, strict=True)]


def draw(numbers: Numbers, folder: Path) -> None:
    """positions.png: the sinusoidal matrix, similarity by distance, validation nll."""
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    matrix, curve, bars = figure.subplots(1, 3)
    image = matrix.imshow(similarity(sinusoids(torch.arange(SHOWN), D_MODEL)), vmin=-1, vmax=1, cmap="RdBu_r")
    figure.colorbar(image, ax=matrix, label="cosine", shrink=0.85)
    matrix.set(xlabel="position", ylabel="position", title=f"Sinusoidal vectors, d_model {D_MODEL}")
    for width, colour in WIDTHS.items():
        curve.plot(numbers["similarity"][width], color=colour, label=f"sinusoidal, d_model {width}")
    curve.plot(learned_by_distance(numbers), color=GREEN, label=f"learned, d_model {D_MODEL}, trained")
    curve.set(xlabel="distance of two positions", ylabel="cosine", title="Similarity by distance", ylim=(-0.5, 1.05))
    for place, kind in enumerate(KINDS):
        runs = [r for r in numbers["runs"] if r["kind"] == kind]
        for shift, key, colour, label in (
            (-0.2, "valid_nll", BLUE, "as written"),
            (0.2, "shuffled_nll", ORANGE, "source words shuffled"),
        ):
            values = [r[key] for r in runs]
            mean = sum(values) / len(values)
            bars.bar(place + shift, mean, 0.38, color=colour, label=label if place == 0 else None)
            bars.plot([place + shift] * len(values), values, "k.", markersize=4)
    bars.set(ylabel="validation nll per token (nats)", title=f"After {UPDATES} updates, three seeds (dots)")
    bars.set_xticks(range(len(KINDS)), KINDS)
    bars.set_ylim(top=1.3 * max(r["shuffled_nll"] for r in numbers["runs"]))  # room for the legend
    for axes in (curve, bars):
        axes.grid(color=GREY, alpha=0.25)
        axes.legend(fontsize=8)
    bars.set_axisbelow(True)
    figure.savefig(folder / "positions.png", dpi=110)
