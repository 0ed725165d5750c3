"""A plain PyTorch loop, frozen: what tolka's speed is compared with, on any machine. Not to be made faster.

What anyone would write over nn.Transformer: the target's padding has logits too, dropout and optimiser are torch's.

    python benchmarks/plain.py WORK UPDATES WINDOW fp32|bf16

Prints a JSON line after the first update, and after every window of updates: target tokens and seconds.
"""

import json
import math
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import sentencepiece
import torch
import torch.nn.functional as F
from torch import Tensor, nn

PAD, BOS, EOS = 0, 1, 2
WIDTH, INNER, HEADS, LAYERS, VOCABULARY, TOKENS = 256, 1024, 4, 3, 8000, 4096
Pair = tuple[list[int], list[int]]


class Plain(nn.Module):
    """Pre-norm, sinusoidal positions, one matrix for source, target and output."""

    table: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=WIDTH**-0.5)
        self.transformer = nn.Transformer(WIDTH, HEADS, LAYERS, LAYERS, INNER, 0.1, batch_first=True, norm_first=True)
        angles = torch.arange(512)[:, None] * torch.exp(torch.arange(0, WIDTH, 2) * (-math.log(10000) / WIDTH))
        self.register_buffer("table", torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1))
        self.dropout = nn.Dropout(0.1)

    def embed(self, ids: Tensor) -> Tensor:
        """(B, L) -> (B, L, D)."""
        embedded: Tensor = self.dropout(self.embedding(ids) * math.sqrt(WIDTH) + self.table[: ids.size(1)])
        return embedded

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """(B, S), (B, T) -> logits (B, T, V)."""
        padding = source == PAD
        states = self.transformer(
            self.embed(source),
            self.embed(target),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(target.size(1)),
            tgt_is_causal=True,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return F.linear(states, self.embedding.weight)


def padded(rows: list[list[int]]) -> Tensor:
    """(B, longest)."""
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


def batches(pairs: list[Pair], rng: random.Random) -> list[list[Pair]]:
    """Sorted by length, about TOKENS target tokens each, in random order."""
    order = sorted(rng.sample(pairs, len(pairs)), key=lambda pair: (len(pair[1]), len(pair[0])))
    made: list[list[Pair]] = [[]]
    tokens = 0
    for pair in order:
        made[-1].append(pair)
        tokens += len(pair[1])
        if tokens >= TOKENS:
            made.append([])
            tokens = 0
    made = [batch for batch in made if batch]
    rng.shuffle(made)
    return made


def loop(
    model: nn.Module,
    logits_of: Callable[[Tensor, Tensor], Tensor],
    work: Path,
    updates: int,
    window: int,
    precision: str,
) -> None:
    """Train, and say how fast. logits_of: source (B, S), what the decoder reads (B, T) -> (B, T, V)."""
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(work / "spm.model"))
    texts = [(work / f"train.{code}").read_text(encoding="utf-8").split("\n")[:-1] for code in ("en", "de")]
    pairs = [([*a, EOS], [*b, EOS]) for a, b in zip(*(pieces.encode(text) for text in texts), strict=True)]
    rng = random.Random(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9)
    waiting: list[list[Pair]] = []
    tokens, started_at = 0, time.perf_counter()
    for update in range(1, updates + 1):
        waiting = waiting or batches(pairs, rng)
        batch = waiting.pop()
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * min(update / 400, (400 / update) ** 0.5)
        source, target = padded([pair[0] for pair in batch]), padded([pair[1] for pair in batch])
        begin = torch.cat([torch.full((len(batch), 1), BOS), target[:, :-1]], dim=1)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            logits = logits_of(source, begin)
        loss = F.cross_entropy(logits.float().flatten(0, 1), target.flatten(), ignore_index=PAD, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        tokens += sum(len(pair[1]) for pair in batch)
        if update == 1 or update % window == 0:
            now = time.perf_counter()
            print(json.dumps({"update": update, "tokens": tokens, "seconds": now - started_at}), flush=True)
            tokens, started_at = 0, now


if __name__ == "__main__":
    torch.manual_seed(1)
    plain = Plain()
    loop(plain, plain, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
