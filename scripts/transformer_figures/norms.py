"""Pre-norm against post-norm: training with and without warm-up, and gradients before any training."""

import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

import torch
from matplotlib.figure import Figure

from tolka.losses.cross_entropy import Objective
from tolka.models.transformer import TransformerConfig
from tolka.optim.schedules.formulas import LinearConfig
from transformer_figures.common import (
    BLUE,
    FP32,
    GREY,
    ORANGE,
    SMOOTHING,
    Numbers,
    Sample,
    mean_and_range,
    table,
    train,
)

D_MODEL, TOKENS, UPDATES, WARMUP, EVERY = 64, 512, 400, 150, 10
DEPTHS = (2, 6)  # layers of the encoder, and of the decoder
DEEP = max(DEPTHS)
PEAKS = (0.0003, 0.001, 0.003)
SHOWN_PEAK = 0.001  # of the figure; at the greater depth with all seeds, the others with the first
SEEDS = (1, 2, 3)
GRADIENT_SEEDS = range(1, 6)
NORMS = ("post", "pre")
COLOURS = {"post": ORANGE, "pre": BLUE}


@dataclass(frozen=True)
class Setting:
    """One training."""

    layers: int
    norm: str
    warmup: int
    peak: float
    seed: int


def settings() -> list[Setting]:
    """All that are tried, the longest first."""
    return [
        Setting(layers, norm, warmup, peak, seed)
        for layers in sorted(DEPTHS, reverse=True)
        for peak in PEAKS
        for seed in (SEEDS if (layers, peak) == (DEEP, SHOWN_PEAK) else SEEDS[:1])
        for norm in NORMS
        for warmup in (0, WARMUP)
    ]


def measure(sample: Sample) -> Numbers:
    """Curves of every setting; gradient norms by layer."""
    # One thread each, so that the sums are the same however many cores there are.
    with ProcessPoolExecutor(2, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        runs = list(pool.map(run, repeat(sample), settings()))
    sizes = {"d_model": D_MODEL, "tokens": TOKENS, "updates": UPDATES, "warmup": WARMUP}
    return {"setting": sizes, "runs": runs, "gradients": {norm: gradients(sample, norm) for norm in NORMS}}


def run(sample: Sample, setting: Setting) -> Numbers:
    """One training: the nll every few updates, and the validation set's at the end."""
    torch.manual_seed(setting.seed)
    config = TransformerConfig(d_model=D_MODEL, layers=setting.layers, norm=setting.norm)
    model = config.build(sample.vocabulary, sample.vocabulary, shared=True)
    schedule = LinearConfig(warmup=setting.warmup, horizon=UPDATES)
    progress = train(model, sample.loader(TOKENS, setting.seed), schedule, setting.peak, EVERY)
    curve = [look.train_nll for look in progress]
    measured = sample.meter().measure(model, FP32)
    print(f"{setting}: {measured.nll / measured.tokens:.3f}", file=sys.stderr)
    return {**asdict(setting), "train_nll": curve, "valid_nll": measured.nll / measured.tokens}


def gradients(sample: Sample, norm: str) -> dict[str, list[list[float]]]:
    """Stack -> layer -> seed -> norm of the loss's gradient with respect to W_2 of the feed-forward sub-layer."""
    found: dict[str, list[list[float]]] = {stack: [[] for _ in range(DEEP)] for stack in ("encoder", "decoder")}
    for seed in GRADIENT_SEEDS:
        torch.manual_seed(seed)
        config = TransformerConfig(d_model=D_MODEL, layers=DEEP, norm=norm, dropout=0.0)
        model = config.build(sample.vocabulary, sample.vocabulary, True)
        sums = Objective(model, SMOOTHING).train()(sample.loader(TOKENS, seed).batch(0, 0))
        (sums.loss / sums.tokens).backward()
        for stack, layers in found.items():
            for layer, values in zip(getattr(model, stack), layers, strict=True):
                values.append(layer.feedforward.outer.weight.grad.norm().item())
    return found


def tables(numbers: Numbers) -> dict[str, str]:
    """`norms`: validation nll. `gradients`: by layer."""
    cells = [(norm, warmup) for norm in NORMS for warmup in (0, WARMUP)]
    rows = []
    for layers in DEPTHS:
        for peak in PEAKS:
            found = [[r["valid_nll"] for r in chosen(numbers, layers, *cell, peak)] for cell in cells]
            rows.append([f"{layers} + {layers}", f"{peak:g}", str(len(found[0])), *map(mean_and_range, found)])
    header = ["layers", "peak rate", "seeds"]
    header += [f"{norm}-norm, {'warm-up' if warmup else 'no warm-up'}" for norm, warmup in cells]
    layer_rows = [
        [f"{norm}-norm, {stack}", *(f"{mean:.2f}" for mean in gradient_means(numbers, norm)[stack])]
        for norm in NORMS
        for stack in ("encoder", "decoder")
    ]
    numbered = [str(layer + 1) for layer in range(DEEP)]
    return {"norms": table(header, rows), "gradients": table(["layer", *numbered], layer_rows)}


def chosen(numbers: Numbers, layers: int, norm: str, warmup: int, peak: float) -> list[Numbers]:
    """The runs of one setting, seed by seed."""
    wanted = (layers, norm, warmup, peak)
    return [r for r in numbers["runs"] if (r["layers"], r["norm"], r["warmup"], r["peak"]) == wanted]


def gradient_means(numbers: Numbers, norm: str) -> dict[str, list[float]]:
    """Stack -> mean over the seeds, layer by layer."""
    stacks: dict[str, list[list[float]]] = numbers["gradients"][norm]
    return {stack: [sum(seeds) / len(seeds) for seeds in layers] for stack, layers in stacks.items()}


def draw(numbers: Numbers, folder: Path) -> None:
    """norms.png: training curves, final validation nll by rate, and gradients by layer."""
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    curves, rates, layers = figure.subplots(1, 3)
    for norm in NORMS:
        for warmup, style in ((0, "--"), (WARMUP, "-")):
            look = {"color": COLOURS[norm], "linestyle": style}
            look["label"] = f"{norm}-norm, {'warm-up' if warmup else 'no warm-up'}"
            points = list(zip(*(r["train_nll"] for r in chosen(numbers, DEEP, norm, warmup, SHOWN_PEAK)), strict=True))
            updates = [EVERY * (n + 1) for n in range(len(points))]
            curves.plot(updates, [sum(seeds) / len(seeds) for seeds in points], **look)
            band = list(map(min, points)), list(map(max, points))
            curves.fill_between(updates, *band, color=COLOURS[norm], alpha=0.15)
            finals = [[r["valid_nll"] for r in chosen(numbers, DEEP, norm, warmup, peak)] for peak in PEAKS]
            rates.plot(PEAKS, [sum(seeds) / len(seeds) for seeds in finals], marker="o", markersize=4, **look)
        for stack, style in (("encoder", ":"), ("decoder", "-")):
            means = gradient_means(numbers, norm)[stack]
            look = {"color": COLOURS[norm], "linestyle": style, "label": f"{norm}-norm, {stack}"}
            layers.plot(range(1, DEEP + 1), means, marker="o", markersize=4, **look)
    curves.set(
        xlabel="update",
        ylabel="training nll per token (nats)",
        title=f"{DEEP} + {DEEP} layers, rate {SHOWN_PEAK:g}, three seeds",
    )
    rates.set(xscale="log", xlabel="peak learning rate", ylabel="validation nll per token (nats)")
    rates.set(
        title=f"{DEEP} + {DEEP} layers, after {UPDATES} updates",
        xticks=PEAKS,
        xticklabels=[f"{peak:g}" for peak in PEAKS],
    )
    rates.minorticks_off()
    layers.set(
        xlabel="layer, the last nearest the output", ylabel="norm of the gradient of W₂", title="Before training"
    )
    layers.set_ylim(bottom=0)
    for axes in (curves, rates, layers):
        axes.grid(color=GREY, alpha=0.25)
        axes.legend(fontsize=8)
    figure.savefig(folder / "norms.png", dpi=90)
