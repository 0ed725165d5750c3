"""Copying random sequences: a task in which order is everything, with and without positions."""

import math
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure

from tolka.data.batch import UNK
from tolka.data.buckets import BatchingConfig
from tolka.data.loader import Loader, in_order
from tolka.data.store import TokenStore
from tolka.optim.schedules.formulas import LinearConfig
from transformer_figures.common import BLUE, GREEN, GREY, ORANGE, PURPLE, Numbers, mean_and_range, table, train
from transformer_figures.exposure_bias import LossByPosition, loss_by_position
from transformer_figures.positions import KINDS, build

LENGTH, WORDS, TRAINING, VALIDATION = 8, 50, 20_000, 500
TOKENS, UPDATES, WARMUP, PEAK, SEEDS = 576, 500, 100, 0.003, (1, 2, 3)
COLOURS = dict(zip(KINDS, (BLUE, GREEN, PURPLE, ORANGE), strict=True))


def measure() -> Numbers:
    """Loss by target position of every kind and seed, fed the truth, and what the bag of words alone allows."""
    vocabulary = UNK + 1 + WORDS
    runs = []
    for kind in KINDS:
        for seed in SEEDS:
            torch.manual_seed(seed)
            model = build(vocabulary, kind)
            loader = Loader(sequences(TRAINING, seed), BatchingConfig(tokens=TOKENS, max_length=LENGTH), seed)
            for _ in train(model, loader, LinearConfig(warmup=WARMUP, horizon=UPDATES), PEAK, UPDATES, smoothing=0.0):
                found = loss_by_position(model, in_order(sequences(VALIDATION, seed=0), tokens=2048))
            runs.append({"kind": kind, "seed": seed, "forced": found.forced, "nll": mean_nll(found)})
    bag = [math.log(LENGTH - position) for position in range(LENGTH)] + [0.0]
    return {"length": LENGTH, "words": WORDS, "updates": UPDATES, "bag": bag, "runs": runs}


def sequences(count: int, seed: int) -> TokenStore:
    """Pairs of a sequence and the same sequence: LENGTH of WORDS words, none twice."""
    draw = np.random.default_rng(seed)
    rows = [(UNK + 1 + draw.permutation(WORDS)[:LENGTH]).tolist() for _ in range(count)]
    return TokenStore.from_rows(rows, rows)


def mean_nll(found: LossByPosition) -> float:
    """Per token, `</s>` counted."""
    return sum(found.forced_nll) / sum(found.tokens)


def tables(numbers: Numbers) -> dict[str, str]:
    """`copying`: mean nll by kind."""
    rows = [[kind, mean_and_range([r["nll"] for r in _runs(numbers, kind)], 3)] for kind in KINDS]
    rows.append(["lowest possible if order is unknown", f"{sum(numbers['bag']) / len(numbers['bag']):.3f}"])
    return {"copying": table(["positions", "nll per token"], rows)}


def _runs(numbers: Numbers, kind: str) -> list[Numbers]:
    return [r for r in numbers["runs"] if r["kind"] == kind]


def draw(numbers: Numbers, folder: Path) -> None:
    """copying.png: nll by target position."""
    figure = Figure(figsize=(6, 3.8), layout="constrained")
    axes = figure.subplots()
    positions = range(LENGTH + 1)
    axes.plot(positions, numbers["bag"], "k--", linewidth=1, label="ln(words not yet copied)")
    for number, kind in enumerate(KINDS):
        points = list(zip(*(r["forced"] for r in _runs(numbers, kind)), strict=True))
        means = [sum(seeds) / len(seeds) for seeds in points]
        size = 9 - 2 * number  # one curve may cover another
        axes.plot(positions, means, color=COLOURS[kind], marker="o", markersize=size, label=kind)
        axes.fill_between(positions, list(map(min, points)), list(map(max, points)), color=COLOURS[kind], alpha=0.15)
    axes.set(xlabel="target position", ylabel="nll (nats)", title=f"Copying {LENGTH} random words", ylim=(-0.05, None))
    axes.set_xticks(positions, [*map(str, range(LENGTH)), "</s>"])
    axes.grid(color=GREY, alpha=0.25)
    axes.legend(fontsize=8, title="positions", title_fontsize=8)
    figure.savefig(folder / "copying.png", dpi=110)
