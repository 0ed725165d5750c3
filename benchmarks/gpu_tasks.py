"""What is measured on a GPU, one thing a process: python benchmarks/gpu_tasks.py NAME DEVICE; prints JSON.

Training: random ids in sentences of 3 to 100 tokens, 27 on average, as news text has; the weights see what they would
of any text. All batches are computed four times, of which the first does not count: in it kernels are compiled.
"""

import itertools
import json
import statistics
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from tolka.data.batch import BOS, EOS, PAD, Batch, Flat, collate
from tolka.data.buckets import BatchingConfig, longest_first
from tolka.data.loader import Loader, Share
from tolka.data.store import TokenStore
from tolka.engines.options import DecodingConfig
from tolka.engines.torch_engine import convert_model
from tolka.errors import TolkaError
from tolka.models.transformer import TransformerConfig
from tolka.models.transformer.model import Transformer
from tolka.optim.optimizers.base import OPTIMIZERS
from tolka.optim.optimizers.of_torch import AdamWConfig
from tolka.search.beam import BeamConfig
from tolka.search.greedy import GreedyConfig
from tolka.system.device import Precision, choose_device, device_memory, has_fast_bf16
from tolka.system.memory import is_out_of_memory
from tolka.training.options import TrainerConfig
from tolka.training.state import Window
from tolka.training.step import TrainStep

SIZES = {
    "tiny": (TransformerConfig(d_model=256, heads=4, d_ff=1024, layers=3), 8000, 8192),
    "base": (TransformerConfig(d_model=512, heads=8, d_ff=2048, layers=6), 32000, 25000),
    "big": (TransformerConfig(d_model=1024, heads=16, d_ff=4096, layers=6, dropout=0.3), 32000, 25000),
    "toy": (TransformerConfig(d_model=32, heads=2, d_ff=64, layers=1), 200, 512),  # to try this script with
}
BATCHES, LONGEST, MEAN, ROUNDS = 30, 100, 27, 3
DECODED = {"toy": 20, "tiny": 4096, "base": 4096}  # sentences


@dataclass(frozen=True)
class Cost:
    """Multiplications and additions in products with weights, forward and backward, of a source and a target token."""

    source: float
    target: float


def cost(model: Transformer) -> Cost:
    """6 for each weight that a token meets: a source token the encoder and the decoder's keys and values of it."""

    def weights(module: nn.Module) -> int:
        return sum(layer.weight.numel() for layer in module.modules() if isinstance(layer, nn.Linear))

    memory = sum(weights(layer.cross.key_value) for layer in model.decoder)
    target = sum(map(weights, model.decoder)) - memory + model.feature_size * model.vocabulary_size
    return Cost(6.0 * (weights(model.encoder) + memory), 6.0 * target)


def random_store(vocabulary: int, tokens: int) -> TokenStore:
    """Pairs of like length, enough for `BATCHES` batches."""
    rng = np.random.default_rng(0)
    pairs = int(1.5 * BATCHES * tokens / MEAN)
    source = np.clip(rng.gamma(3.0, MEAN / 3, pairs), 3, LONGEST - 1).astype(np.int64)
    target = np.clip(source + rng.normal(0, 0.12 * source), 3, LONGEST - 1).astype(np.int64)
    sides: list[Any] = []
    for lengths in (source, target):
        sides.append(rng.integers(4, vocabulary, lengths.sum()).astype(np.int32))
        sides.append(np.concatenate([[0], np.cumsum(lengths)]))
    return TokenStore(*sides)


def trained_in(device: torch.device) -> str:
    """The precision."""
    return "bf16" if has_fast_bf16(device) else "fp32"


def wait(device: torch.device) -> None:
    """Until all that was asked of it is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def training(size: str, device: torch.device) -> dict[str, Any]:
    """Target tokens a second, the FLOP of weights' products a second, seconds that the first pass took longer, GB."""
    config, vocabulary, tokens = SIZES[size]
    torch.manual_seed(0)
    model = config.build(vocabulary, vocabulary, shared=True).to(device).train()
    precision = Precision(device, trained_in(device))
    options = TrainerConfig()
    step = TrainStep(options, options.objective(model), AdamWConfig().build(model), precision)
    loader = Loader(random_store(vocabulary, tokens), BatchingConfig(tokens=tokens, max_length=LONGEST), seed=1)
    numbers, worth, each = range(min(BATCHES, len(loader.plan(0)))), cost(model), []
    for turn in range(1 + ROUNDS):
        wait(device)
        if turn == 1 and device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        started_at, update, nll = time.perf_counter(), turn * len(numbers), torch.zeros(())
        for number in numbers:
            batch = loader.batch(0, number)
            nll = step(update + number + 1, 1e-4, [Share(batch, batch.tokens)]).nll
        wait(device)
        each.append(time.perf_counter() - started_at)
    if not torch.isfinite(nll):
        raise SystemExit("the loss is NaN or inf")
    batches = [loader.batch(0, number) for number in numbers]
    sources, targets = sum(int(batch.source_lengths.sum()) for batch in batches), sum(batch.tokens for batch in batches)
    took = statistics.median(each[1:])
    return {
        "tokens/s": targets / took,
        "FLOP/s": (worth.source * sources + worth.target * targets) / took,
        "first pass": each[0] - took,
        "GB": torch.cuda.max_memory_reserved(device) / 1e9 if device.type == "cuda" else 0.0,
        "ms an update": 1000 * took / len(numbers),
        "parameters": model.parameter_count(),
        "spread": [targets / seconds for seconds in each[1:]],
    }


def waits(device: torch.device) -> dict[str, Any]:
    """The lines at which an update waits for the GPU, and how often; of each precision and optimizer."""
    found = {}
    for precision, optimizer in itertools.product(("bf16", "fp16", "fp32"), ("adamw", "sgd", "adafactor", "muon")):
        model = SIZES["toy"][0].build(200, 200, shared=True).to(device).train()
        options = TrainerConfig(ema=0.99)
        built = OPTIMIZERS.get(optimizer)().build(model)
        step = TrainStep(options, options.objective(model), built, Precision(device, precision))
        batch, window = collate([[4, 5, 6], [7]], [[8, 9], [5, 6, 7]]), Window()
        for number in range(1, 4):
            if number == 3 and device.type == "cuda":
                torch.cuda.set_sync_debug_mode("warn")
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                window.add(step(number, 1e-4, [Share(batch, batch.tokens)]))
        if device.type == "cuda":
            torch.cuda.set_sync_debug_mode("default")
        at = Counter(f"{Path(each.filename).name}:{each.lineno}" for each in seen if "synchroniz" in str(each.message))
        found[f"{precision} {optimizer}"] = dict(at)
    return {"waits": found}


def text(size: str, folder: Path) -> dict[str, Any]:
    """Text of random words in sentences as `random_store` makes them, and mt-train's settings for this size."""
    _, vocabulary, tokens = SIZES[size]
    store, folder = random_store(vocabulary // 2, tokens), folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    pairs = len(store.lengths[0])
    for name, numbers in (("train", range(20, pairs)), ("valid", range(20))):
        for side, ids_of in (("xa", store.source), ("xb", store.target)):
            lines = (" ".join(f"w{number}" for number in ids_of(row).tolist()) for row in numbers)
            (folder / f"{name}.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    model = {"base": "transformer_base", "big": "transformer_big"}.get(size, "transformer_tiny")
    settings = ["corpus=files", "corpus.source=xa", "corpus.target=xb", "cleaning=none"]
    settings += ["tokenizer=word", "tokenizer.byte_fallback=false"]
    settings += [f"corpus.{name}={folder / name}" for name in ("train", "valid")]
    settings += [f"run.dir={folder / 'run'}", f"run.prepared={folder / 'prepared'}", "report.page=false"]
    settings += [f"model={model}", f"tokenizer.vocab_size={vocabulary}", f"batching.tokens={tokens}"]
    return {"settings": [*settings, "trainer.updates=150", "trainer.validate_every=150", "trainer.log_every=25"]}


def peers(size: str, device: torch.device) -> dict[str, Any]:
    """Target tokens a second of Hugging Face's Marian and of a plain loop, with the same batches, in bf16."""
    from transformers import MarianConfig, MarianMTModel

    config, vocabulary, tokens = SIZES[size]
    loader = Loader(random_store(vocabulary, tokens), BatchingConfig(tokens=tokens, max_length=LONGEST), seed=1)
    numbers, found = range(min(BATCHES, len(loader.plan(0)))), {}
    layers = {f"{side}_layers": config.layers for side in ("encoder", "decoder")}
    layers |= {f"{side}_attention_heads": config.heads for side in ("encoder", "decoder")}
    layers |= {f"{side}_ffn_dim": config.d_ff for side in ("encoder", "decoder")}
    sizes = MarianConfig(
        vocab_size=vocabulary, d_model=config.d_model, **layers, dropout=0.1, scale_embedding=True, pad_token_id=PAD,
        decoder_start_token_id=BOS, eos_token_id=EOS, forced_eos_token_id=None, max_position_embeddings=2 * LONGEST,
    )  # fmt: skip
    plain = nn.Transformer(config.d_model, config.heads, config.layers, config.layers, config.d_ff, batch_first=True)
    embedding = nn.Embedding(vocabulary, config.d_model)

    def plain_logits(batch: Batch) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(batch.target_in.size(1), device=device)
        sides, hidden = (embedding(batch.source), embedding(batch.target_in)), batch.source == PAD
        hides = {"src_key_padding_mask": hidden, "memory_key_padding_mask": hidden}
        states: torch.Tensor = plain(*sides, tgt_mask=mask, tgt_is_causal=True, **hides)
        return states @ embedding.weight.T

    marian = MarianMTModel(sizes)

    def marian_logits(batch: Batch) -> torch.Tensor:
        given = {"attention_mask": (batch.source != PAD).long(), "decoder_input_ids": batch.target_in}
        scores: torch.Tensor = marian(input_ids=batch.source, **given).logits
        return scores

    for name, modules, logits in (
        ("plain loop", [plain, embedding], plain_logits),
        ("Hugging Face's Marian", [marian], marian_logits),
    ):
        weights = [weight for module in modules for weight in module.to(device).train().parameters()]
        optimizer, took = torch.optim.AdamW(weights, lr=1e-4, fused=True), []
        for _ in range(1 + ROUNDS):
            wait(device)
            started_at, done = time.perf_counter(), 0
            for number in numbers:
                batch = loader.batch(0, number).to(device)
                optimizer.zero_grad()
                with Precision(device, trained_in(device)).autocast():
                    scores = logits(batch).flatten(0, 1)
                    loss = nn.functional.cross_entropy(
                        scores, batch.target_out.flatten(), ignore_index=PAD, label_smoothing=0.1
                    )
                loss.backward()
                nn.utils.clip_grad_norm_(weights, 1.0)
                optimizer.step()
                done += batch.tokens
            wait(device)
            took.append(done / (time.perf_counter() - started_at))
        found[name] = statistics.median(took[1:])
        for module in modules:
            module.to("cpu")
    return {"target tokens/s": found}


def decoding(size: str, number_format: str, beam: int, device: torch.device) -> dict[str, Any]:
    """Tokens a second, in batches as the translator makes them, of weights that hardly end a sentence before its limit,
    which is as many tokens as its source has."""
    config, vocabulary, enough = SIZES[size]
    torch.manual_seed(0)
    model = convert_model(config.build(vocabulary, vocabulary, shared=True).to(device).eval(), number_format)
    store = random_store(vocabulary, enough)
    rows = [store.source(number).tolist() for number in range(DECODED[size])]
    batches = longest_first(
        [len(row) + 1 for row in rows], DecodingConfig().batch_tokens(device_memory(device)) // beam
    )
    given = [Flat.of([rows[number] for number in batch]).with_eos() for batch in batches]
    options: dict[str, Any] = {"max_length_factor": 1.0, "max_length_extra": 0}
    search = (GreedyConfig(**options) if beam == 1 else BeamConfig(beam_size=beam, **options)).build()
    each = []
    for _ in range(1 + ROUNDS):
        wait(device)
        started_at = time.perf_counter()
        tokens = 0
        for source, lengths in given:
            with torch.inference_mode():
                found = search.search(model, source.to(device), lengths.to(device))
            tokens += sum(len(hypotheses[0].tokens) for hypotheses in found)
        wait(device)
        each.append(time.perf_counter() - started_at)
    took = statistics.median(each[1:])
    peak = torch.cuda.max_memory_reserved(device) / 1e9 if device.type == "cuda" else 0.0
    rates = {"tokens/s": tokens / took, "sentences/s": len(rows) / took, "batches": len(batches)}
    return {**rates, "first pass": each[0] - took, "GB": peak}


def limits(device: torch.device) -> dict[str, Any]:
    """The device: its name, FLOP/s of large products in bf16 and fp32, bytes a second of a copy."""

    def rate(amount: float, work: Callable[[], object]) -> float:
        took = []
        for _ in range(12):
            wait(device)
            started_at = time.perf_counter()
            work()
            wait(device)
            took.append(time.perf_counter() - started_at)
        return amount / statistics.median(took[2:])

    width = 8192 if device.type == "cuda" else 256
    found: dict[str, Any] = {"device": torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"}
    found["torch"] = torch.__version__
    for name, dtype in (("bf16", torch.bfloat16), ("fp32", torch.float32)):
        a, b = (torch.randn(width, width, device=device).to(dtype) for _ in range(2))
        found[f"{name} FLOP/s"] = rate(2.0 * width**3, lambda a=a, b=b: a @ b)  # type: ignore[misc]
    found["FLOP/s in training"] = found[f"{trained_in(device)} FLOP/s"]
    source = torch.ones(2**20 if device.type == "cpu" else 2**29, device=device)
    target = torch.empty_like(source)
    found["copy B/s"] = rate(8.0 * source.numel(), lambda: target.copy_(source))
    return found


def measure(name: str, device: torch.device) -> dict[str, Any]:
    """What a task's name says: limits; training SIZE; decoding SIZE FORMAT BEAM. `failed` says why not."""
    kind, *what = name.split(":")
    try:
        if kind == "limits":
            return limits(device)
        if kind == "waits":
            return waits(device)
        if kind == "text":
            return text(what[0], Path(what[1]))
        if kind == "peers":
            return peers(what[0], device)
        if kind == "training":
            return training(what[0], device)
        return decoding(what[0], what[1], int(what[2]), device)
    except (RuntimeError, TolkaError) as error:
        return {"failed": "no memory" if is_out_of_memory(error) else str(error).partition("\n")[0]}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], choose_device(sys.argv[2]))))
