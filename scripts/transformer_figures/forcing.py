"""Teacher forcing against free running: loss by position, half-way through training and at its end."""

from dataclasses import asdict
from pathlib import Path

import torch
from matplotlib.figure import Figure

from tolka.data.loader import in_order
from tolka.data.store import TokenStore
from tolka.engines.torch_engine import TorchEngine
from tolka.metrics.options import MetricsConfig
from tolka.metrics.scores import score
from tolka.model_directory.facts import ModelFacts
from tolka.model_directory.verify import TrainingSources
from tolka.models.transformer.config import TransformerConfig
from tolka.models.transformer.model import Transformer
from tolka.optim.schedules.formulas import LinearConfig
from tolka.search.beam import BeamConfig
from tolka.search.greedy import GreedyConfig
from tolka.translation.request import Request
from tolka.translation.translator import Translator
from transformer_figures.common import BLUE, FP32, GREY, ORANGE, Numbers, Sample, table, train
from transformer_figures.exposure_bias import LossByPosition, loss_by_position

LAYERS, D_MODEL, TOKENS, UPDATES, WARMUP, PEAK, SEED = 2, 64, 1024, 1000, 100, 0.005, 1
LOOKS = {"half-way": UPDATES // 2, "at the end": UPDATES}
FEWEST = 30  # sentences; positions that fewer reach are left out of the figure
SEARCHES = {"greedy": GreedyConfig(), "beam 5": BeamConfig(beam_size=5)}


def measure(sample: Sample) -> Numbers:
    """Loss by position, and BLEU of greedy and beam search, at each look."""
    torch.manual_seed(SEED)
    config = TransformerConfig(d_model=D_MODEL, layers=LAYERS)
    model = config.build(sample.vocabulary, sample.vocabulary, shared=True)
    sources = sample.tokenizer.encode_source([pair.source for pair in sample.valid])
    targets = sample.tokenizer.encode_target([pair.target for pair in sample.valid])
    schedule = LinearConfig(warmup=WARMUP, horizon=UPDATES)
    looks = {}
    for progress in train(model, sample.loader(TOKENS, SEED), schedule, PEAK, every=UPDATES // 2):
        (name,) = (name for name, update in LOOKS.items() if update == progress.update)
        found = loss_by_position(model, in_order(TokenStore.from_rows(sources, targets), tokens=2048))
        looks[name] = {"update": progress.update, **asdict(found), "gap": found.gap, "bleu": bleu(model, sample)}
    setting = {"layers": LAYERS, "d_model": D_MODEL, "tokens": TOKENS, "updates": UPDATES, "peak": PEAK}
    return {"setting": setting, "looks": looks}


def bleu(model: Transformer, sample: Sample) -> Numbers:
    """Search -> BLEU of the validation set, and the signature."""
    found: Numbers = {}
    for name, search in SEARCHES.items():
        facts = ModelFacts(sample.tokenizer, TrainingSources(128))
        translator = Translator(TorchEngine(model.eval(), FP32.device), facts, Request(search))
        hypotheses = translator([pair.source for pair in sample.valid])
        metrics = MetricsConfig(names=["bleu"], bootstrap=0, tokenizer="13a")
        (result,) = score(hypotheses, [pair.target for pair in sample.valid], metrics, "ko")
        found |= {name: result.value, "signature": result.signature}
    return found


def by_position(look: Numbers) -> LossByPosition:
    """The measurement, from its numbers."""
    return LossByPosition(*(look[key] for key in ("forced_nll", "free_nll", "on_track", "tokens")))


def tables(numbers: Numbers) -> dict[str, str]:
    """`forcing`: all positions together. `forcing_position`: some of them."""
    whole, single = [], []
    for name, look in numbers["looks"].items():
        found = by_position(look)
        tokens = sum(found.tokens)
        forced, free = sum(found.forced_nll) / tokens, sum(found.free_nll) / tokens
        row = [f"{name} (update {look['update']})", f"{forced:.3f}", f"{free:.3f}", f"{found.gap:.3f}"]
        whole.append(row + [f"{look['bleu'][search]:.1f}" for search in SEARCHES])
        for position in (0, 5, 10, 15):
            share = found.on_track[position] / found.tokens[position]
            values = [f"{found.forced[position]:.3f}", f"{found.free[position]:.3f}", f"{share:.0%}"]
            single.append([name, str(position), str(found.tokens[position]), *values])
    header = ["model", "fed the truth", "fed itself", "gap", *(f"BLEU, {search}" for search in SEARCHES)]
    columns = ["model", "position", "sentences", "fed the truth", "fed itself", "still on the reference"]
    return {"forcing": table(header, whole), "forcing_position": table(columns, single)}


def draw(numbers: Numbers, folder: Path) -> None:
    """forcing.png: one panel a look, and the share of sentences still on the reference."""
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    panels = figure.subplots(1, 3)
    for axes, (name, look), style in zip(panels, numbers["looks"].items(), ("--", "-"), strict=False):
        found = by_position(look)
        shown = [position for position, count in enumerate(found.tokens) if count >= FEWEST]
        axes.plot(shown, found.free[: len(shown)], color=ORANGE, marker="s", markersize=3, label="fed itself")
        axes.plot(shown, found.forced[: len(shown)], color=BLUE, marker="o", markersize=3, label="fed the truth")
        axes.set(title=f"{name} (update {look['update']})".capitalize(), xlabel="target position (pieces)")
        axes.set_ylabel("nll per token (nats)")
        shares = [found.on_track[position] / found.tokens[position] for position in shown]
        panels[2].plot(shown, shares, style, color=GREY if style == "--" else "black", label=name)
    panels[0].sharey(panels[1])
    panels[0].set_ylim(bottom=0)
    panels[2].set(title="Own words so far are the reference's", xlabel="target position (pieces)")
    panels[2].set(ylabel="share of sentences", ylim=(0, 1.02))
    for axes in panels:
        axes.grid(color=GREY, alpha=0.25)
        axes.legend(fontsize=8)
    figure.savefig(folder / "forcing.png", dpi=110)
