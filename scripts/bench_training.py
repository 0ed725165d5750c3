"""Training speed of tolka beside a plain PyTorch loop of the same sizes, in turn, on the same text.

    python scripts/bench_training.py --corpus DIR
    python scripts/bench_training.py --corpus DIR --model lstm

DIR holds train.en and train.de. Both train a Transformer of 3 + 3 layers, d_model 256, d_ff 1024, 4 heads, or an
encoder-decoder of one LSTM of 256 each, without attention; with one joint BPE vocabulary of 8000 tied three ways, label
smoothing 0.1, AdamW and clipping, on batches of about 4000 target tokens. The plain loops are those that anyone would
write over nn.Transformer and nn.LSTM: the target's padding has logits too, the optimiser is torch's default, and the
LSTM's encoder runs on into the padding, which tolka's does not. Each
round is a process of its own; the first windows of a round warm up and do not count. Printed: the median, least and
most target tokens per second (</s> counted, padding not) over all windows, peak memory, and the ratio of the medians.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

UPDATES_A_WINDOW = 5
WARM_UP_WINDOWS = 1
SYSTEMS = ("tolka", "plain")
MODELS = {"transformer": "transformer_small", "lstm": "lstm"}  # here -> tolka's name


def overrides(corpus: Path, cache: Path, model: str) -> list[str]:
    """The settings of both systems' data; tolka's trainer follows them entirely."""
    return [
        *("corpus=files", f"corpus.root={corpus}", "corpus.train=train", "corpus.valid=train"),
        *("corpus.source=en", "corpus.target=de", f"model={MODELS[model]}", "tokenizer.vocab_size=8000"),
        *("batching.tokens=4352", "batching.max_length=128", f"run.prepared={cache}"),
    ]


def tolka_steps(corpus: Path, cache: Path, model: str, precision: str) -> Iterator[Callable[[], int]]:
    """Updates as tolka's trainer makes them; each returns its target tokens."""
    from tolka.data.loader import Loader
    from tolka.inputs import Inputs
    from tolka.losses import Objective
    from tolka.overrides import train_config
    from tolka.runtime import Precision, choose_device, keep_freed_memory, seed_everything
    from tolka.training.run import RunFolder
    from tolka.training.trainer import Trainer

    config = train_config(overrides(corpus, cache, model))
    keep_freed_memory()
    seed_everything(1)
    made = Inputs(config, print).prepared
    network = config.model.build(made.tokenizer.source_size, made.tokenizer.target_size, shared=True)
    trainer = Trainer(
        config.trainer,
        Objective(network, config.trainer.label_smoothing),
        config.optimizer.build(network),
        config.scheduler,
        config.optimizer.lr,
        Loader(made.store, config.batching, config.run.seed),
        Precision(choose_device("cpu"), precision),
        RunFolder(cache / "run"),
        validate=lambda update: sys.exit("no validation here"),
        save=lambda folder, state, scores: None,
    )
    trainer.objective.train()

    def step() -> int:
        before = trainer.state.tokens
        trainer.probe()
        return trainer.state.tokens - before

    while True:
        yield step


def plain_steps(corpus: Path, cache: Path, model: str, precision: str) -> Iterator[Callable[[], int]]:
    """Updates of a loop that anyone would write, on the same ids and like batches."""
    import torch
    from torch import nn

    from tolka.batch import Batch
    from tolka.data.loader import Loader
    from tolka.inputs import Inputs
    from tolka.overrides import train_config

    config = train_config(overrides(corpus, cache, model))
    made = Inputs(config, print).prepared
    loader = Loader(made.store, config.batching, config.run.seed)
    torch.manual_seed(1)
    width, vocabulary, number = 256, made.tokenizer.target_size, 0
    embedding = nn.Embedding(vocabulary, width, padding_idx=0)
    nn.init.normal_(embedding.weight, std=width**-0.5)
    if model == "transformer":
        network = nn.ModuleList([nn.Transformer(width, 4, 3, 3, 1024, 0.1, batch_first=True, norm_first=True)])
    else:
        network = nn.ModuleList([nn.LSTM(width, width, batch_first=True) for _ in range(2)])
    dropout, bias = nn.Dropout(0.1), nn.Parameter(torch.zeros(vocabulary))
    parameters = [*embedding.parameters(), *network.parameters(), *([bias] if model == "lstm" else [])]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, betas=(0.9, 0.98), eps=1e-9)
    positions = torch.arange(512)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
    table = torch.stack([positions.sin(), positions.cos()], dim=-1).flatten(1)

    def embed(ids: torch.Tensor) -> torch.Tensor:
        return dropout(embedding(ids) * width**0.5 + table[: ids.size(1)])

    def transformer_logits(batch: Batch) -> torch.Tensor:
        padding = batch.source == 0
        states = network[0](
            embed(batch.source),
            embed(batch.target_in),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(batch.target_in.size(1)),
            tgt_is_causal=True,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return nn.functional.linear(states, embedding.weight)

    def lstm_logits(batch: Batch) -> torch.Tensor:
        encoder, decoder = network
        _, last = encoder(dropout(embedding(batch.source)))
        states, _ = decoder(dropout(embedding(batch.target_in)), last)
        return nn.functional.linear(dropout(states), embedding.weight, bias)

    def step() -> int:
        nonlocal number
        batch = loader.batch(0, number % len(loader.plan(0)))
        number += 1
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            logits = (transformer_logits if model == "transformer" else lstm_logits)(batch)
        loss = nn.functional.cross_entropy(
            logits.float().flatten(0, 1), batch.target_out.flatten(), ignore_index=0, label_smoothing=0.1
        )
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        return batch.tokens

    while True:
        yield step


def measure(system: str, corpus: Path, cache: Path, model: str, precision: str, windows: int) -> dict[str, object]:
    """One round, in this process: tokens per second of each window, and peak memory."""
    from tolka.runtime import peak_memory_bytes

    steps = (tolka_steps if system == "tolka" else plain_steps)(corpus, cache, model, precision)
    rates = []
    for _ in range(WARM_UP_WINDOWS + windows):
        started_at = time.perf_counter()
        tokens = sum(next(steps)() for _ in range(UPDATES_A_WINDOW))
        rates.append(tokens / (time.perf_counter() - started_at))
    return {"rates": rates[WARM_UP_WINDOWS:], "memory": peak_memory_bytes()}


def main() -> None:
    """Rounds of each system in turn, then the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--model", default="transformer", choices=MODELS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--windows", type=int, default=3, help=f"counted windows of {UPDATES_A_WINDOW} updates a round")
    parser.add_argument("--precision", nargs="+", default=["fp32", "bf16"], choices=["fp32", "bf16"])
    parser.add_argument("--one", choices=SYSTEMS, help=argparse.SUPPRESS)
    parser.add_argument("--cache", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        texts = options.corpus, options.cache
        found = measure(options.one, *texts, options.model, options.precision[0], options.windows)
        print(json.dumps(found))
        return
    with tempfile.TemporaryDirectory() as cache:
        for precision in options.precision:
            rates: dict[str, list[float]] = {system: [] for system in SYSTEMS}
            memory = dict.fromkeys(SYSTEMS, 0.0)
            for number in range(options.rounds):
                for system in SYSTEMS:
                    command = [*(sys.executable, __file__, "--corpus", str(options.corpus), "--cache", cache)]
                    command += ["--one", system, "--model", options.model, "--precision", precision]
                    command += ["--windows", str(options.windows)]
                    done = subprocess.run(command, check=True, capture_output=True, text=True)
                    result = json.loads(done.stdout.splitlines()[-1])
                    rates[system] += result["rates"]
                    memory[system] = max(memory[system], result["memory"])
                    print(f"{precision} round {number + 1} {system}: {result['rates']}", file=sys.stderr)
            medians = {system: statistics.median(rates[system]) for system in SYSTEMS}
            for system in SYSTEMS:
                print(
                    f"{precision} {system:<6} {medians[system]:7.0f} target tokens/s "
                    f"({min(rates[system]):.0f} to {max(rates[system]):.0f}), peak {memory[system] / 1e9:.2f} GB"
                )
            print(f"{precision} ratio of medians, tolka to plain: {medians['tolka'] / medians['plain']:.2f}")


if __name__ == "__main__":
    main()
