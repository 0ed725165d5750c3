"""How tolka's training speed changes as the work grows: width, depth, vocabulary, length of sentences, batch.

    python benchmarks/growth.py CORPUS WORK [--out docs/figures/growth.png] [--seconds 15] [--threads N]

One thing grows at a time, from the sizes of `work.py`; each point is the median over the updates of some seconds, in
one process after the other. Printed as a table, with the share of the machine's limit in matrix products, measured
right before and after; drawn.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from work import INNER, LAYERS, TOKENS, VOCABULARY, WIDTH, prepare

HERE = Path(__file__).parent
WARM_UP = 2  # updates
RATES = (500, 1000, 2000, 4000, 8000, 16000)  # marked in the picture


@dataclass(frozen=True)
class Point:
    """Sizes of one measurement; lines: of the corpus that make one sentence."""

    width: int = WIDTH
    layers: int = LAYERS
    vocabulary: int = VOCABULARY
    lines: int = 1
    batch: int = TOKENS

    def settings(self, text: Path) -> list[str]:
        """On top of those of `tolka_train.settings`."""
        sizes = [f"model.d_model={self.width}", f"model.d_ff={4 * self.width}", f"model.layers={self.layers}"]
        pieces = ["tokenizer.model=[]", f"tokenizer.vocab_size={self.vocabulary}", f"corpus.root={text}"]
        batch = [f"batching.tokens={self.batch + 128}", f"batching.max_length={100 * self.lines}"]
        return [*sizes, *pieces, *batch, "trainer.precision=fp32"]  # as the limit that it is compared with

    def flop(self, source: float, target: float) -> float:
        """Of matrix products, a target token, forward and backward; source, target: mean tokens of a sentence.

        As `flop_per_target_token` in work.py, and attention's own products, two of width times keys for each query.
        """
        attention, inner = 4 * self.width**2, 2 * self.width * INNER * self.width // WIDTH
        per_source = self.layers * (attention + inner + 2 * self.width**2 + 2 * self.width * source)
        own = 2 * attention - 2 * self.width**2 + inner + 2 * self.width * (source + target)
        return 6 * (source / target * per_source + self.layers * own + self.width * self.vocabulary)


GROWING: dict[str, list[tuple[float, Point]]] = {
    "width": [(n, Point(width=n)) for n in (128, 256, 512, 768)],
    "layers": [(n, Point(layers=n)) for n in (1, 3, 6)],
    "vocabulary": [(n, Point(vocabulary=n)) for n in (1000, 4000, 8000, 16000)],
    "lines a sentence": [(n, Point(lines=n)) for n in (1, 2, 4, 8, 16)],
    "tokens a batch": [(n, Point(batch=n)) for n in (256, 1024, 4096, 8192)],
}


def join_lines(work: Path, lines: int) -> Path:
    """A folder of the same text with so many lines in one."""
    folder = work / f"lines-{lines}"
    if not (folder / "done").exists():
        folder.mkdir(exist_ok=True)
        for name in ("train.en", "train.de", "test.en", "test.de"):
            rows = (work / name).read_text(encoding="utf-8").split("\n")[:-1]
            joined = [" ".join(rows[start : start + lines]) for start in range(0, len(rows), lines)]
            (folder / name).write_text("".join(f"{row}\n" for row in joined), encoding="utf-8")
        (folder / "done").touch()
    return folder


def speed(point: Point, work: Path, seconds: float) -> dict[str, float]:
    """In this process: target tokens a second, a sentence's mean tokens, and the machine's limit, in GFLOP/s."""
    import torch

    from fresh import fresh_trainer
    from limits import products
    from tolka.config.command_line import train_config
    from tolka.system.memory import keep_freed_memory
    from tolka_train import settings

    keep_freed_memory()
    with tempfile.TemporaryDirectory() as folder:
        config = train_config([*settings(work, Path(folder) / "run"), *point.settings(join_lines(work, point.lines))])
        trainer = fresh_trainer(config)
        trainer.step.objective.train()
        rates: list[float] = []
        limits = [products("square", torch.float32)]
        before, done, ends_at = 0, 0, float("inf")
        while done < WARM_UP + 3 or time.perf_counter() < ends_at:
            started_at = time.perf_counter()
            trainer.probe()
            done += 1
            if done == WARM_UP:
                ends_at = time.perf_counter() + seconds
            elif done > WARM_UP:
                rates.append((trainer.state.tokens - before) / (time.perf_counter() - started_at))
            before = trainer.state.tokens
        limits.append(products("square", torch.float32))
        store = trainer.loader.store  # type: ignore[attr-defined]  # a Loader, not a stream
        sides = [float(lengths.mean()) + 1 for lengths in (store.source_lengths, store.target_lengths)]
    limit = statistics.mean(limits)
    return {"rate": statistics.median(rates), "source": sides[0], "target": sides[1], "limit": limit}


def draw(found: Mapping[str, Sequence[Sequence[float]]], out: Path) -> None:
    """A panel for each thing that grows: tokens a second, and the share of the limit."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.2 * len(found), 3.2), layout="constrained")
    measured = [rate for points in found.values() for _, rate, _ in points]
    span = min(400.0, 0.8 * min(measured)), max(20000.0, 1.25 * max(measured))
    for number, (name, points) in enumerate(found.items()):
        axes = figure.add_subplot(1, len(found), number + 1)
        sizes, rates, shares = zip(*points, strict=True)
        axes.plot(sizes, rates, marker="o", color="tab:blue")
        axes.set(xscale="log", yscale="log", xlabel=name, xticks=sizes, xticklabels=[f"{size:g}" for size in sizes])
        axes.set(ylim=span, yticks=RATES, yticklabels=[str(rate) for rate in RATES])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        other = axes.twinx()
        other.plot(sizes, [100 * share for share in shares], marker="s", color="tab:orange", linestyle="--")
        other.set(ylim=(0, 100))
        axes.set_ylabel("target tokens/s" if number == 0 else "", color="tab:blue")
        other.set_ylabel("% of the limit" if number == len(found) - 1 else "", color="tab:orange")
    figure.savefig(out, dpi=110)


def main() -> None:
    """Every point in a process of its own, then the table and the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--out", type=Path, default=Path("growth.png"))
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--point", help=argparse.SUPPRESS)  # of a child: "width:2"
    options = parser.parse_args()
    work = prepare(options.corpus, options.work.resolve(), "test_2016_flickr").folder
    if options.point:
        name, number = options.point.split(":")
        print(json.dumps(speed(GROWING[name][int(number)][1], work, options.seconds)))
        return
    environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads)}

    def run(arguments: list[str]) -> str:
        command = [sys.executable, *arguments]
        return subprocess.check_output(command, env=environment, text=True, stderr=subprocess.DEVNULL)

    print("| | | target tokens/s | the limit, GFLOP/s | of the limit |\n|---|---|---|---|---|", flush=True)
    found: dict[str, list[tuple[float, float, float]]] = {}
    for name, points in GROWING.items():
        for number, (size, point) in enumerate(points):
            child = [__file__, str(options.corpus), str(work), "--seconds", str(options.seconds)]
            facts = json.loads(run([*child, "--point", f"{name}:{number}"]).splitlines()[-1])
            share = facts["rate"] * point.flop(facts["source"], facts["target"]) / facts["limit"] / 1e9
            found.setdefault(name, []).append((size, facts["rate"], share))
            print(f"| {name} | {size:g} | {facts['rate']:.0f} | {facts['limit']:.0f} | {share:.0%} |", flush=True)
    (work / "growth.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    draw(found, options.out)


if __name__ == "__main__":
    main()
