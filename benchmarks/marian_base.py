"""Train a Marian model of Hugging Face's transformers, fresh, in the layout of the Hub's opus-mt folders.

    python benchmarks/marian_base.py TRAIN.en TRAIN.de OUT --minutes 25     (its Python has transformers)

Two SentencePiece models and one vocabulary, as opus-mt has; post-norm, swish, sinusoids in halves, one matrix for all
embeddings. Files may be compressed by gzip. The learning rate warms up over 400 updates and falls to zero at the end
of the minutes. It is a model to import, to fine-tune and to compare with, and not a record.
"""

import argparse
import gzip
import io
import json
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import sentencepiece
import torch
from torch.nn.functional import cross_entropy
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

PEAK, WARMUP = 1e-3, 400
IGNORED = -100


def lines(path: Path) -> list[str]:
    """Return the lines of a file, also of one compressed by gzip."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return content.decode("utf-8").removesuffix("\n").split("\n")


def subwords(texts: list[str], size: int) -> bytes:
    """Train a unigram model."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=model, vocab_size=size, model_type="unigram",
        character_coverage=1.0, minloglevel=2, num_threads=1,
    )  # fmt: skip
    return model.getvalue()


def write_tokenizer(folder: Path, sources: list[str], targets: list[str], size: int) -> dict[str, int]:
    """Write source.spm, target.spm and vocab.json, `</s>` first and `<pad>` last; return the vocabulary."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces: dict[str, None] = dict.fromkeys(("</s>", "<unk>"))
    for name, texts in (("source.spm", sources), ("target.spm", targets)):
        model = subwords(texts, size)
        (folder / name).write_bytes(model)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        pieces |= dict.fromkeys(processor.id_to_piece(i) for i in range(len(processor)) if not processor.is_control(i))
    vocabulary = {piece: number for number, piece in enumerate([*pieces, "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False, indent=1), encoding="utf-8")
    return vocabulary


def batches(rows: list[tuple[list[int], list[int]]], tokens: int, draw: random.Random) -> Iterator[list[int]]:
    """Yield the numbers of pairs of similar length, for ever."""
    while True:
        order = sorted(range(len(rows)), key=lambda i: (max(map(len, rows[i])), draw.random()))
        found, longest = [list[int]()], 0
        for number in order:
            longest = max(longest, *map(len, rows[number]))
            if found[-1] and longest * (len(found[-1]) + 1) > tokens:
                found.append([])
                longest = max(map(len, rows[number]))
            found[-1].append(number)
        draw.shuffle(found)
        yield from found


def padded(rows: list[list[int]], fill: int) -> torch.Tensor:
    """Return (B, L)."""
    longest = max(map(len, rows))
    return torch.tensor([row + [fill] * (longest - len(row)) for row in rows])


def train(model: MarianMTModel, rows: list[tuple[list[int], list[int]]], minutes: float, tokens: int) -> None:
    """Train in bf16 on a CPU that has it, for some minutes."""
    pad = model.config.pad_token_id
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0)
    begun, losses = time.monotonic(), list[float]()
    for update, numbers in enumerate(batches(rows, tokens, random.Random(1)), 1):
        done = (time.monotonic() - begun) / (60 * minutes)
        if done >= 1:
            break
        rate = PEAK * min(update / WARMUP, 1.0, max(0.0, 1 - done) / 0.7)
        for group in optimizer.param_groups:
            group["lr"] = rate
        source = padded([rows[i][0] for i in numbers], pad)
        target = padded([rows[i][1] for i in numbers], IGNORED)
        before = target[:, :-1].masked_fill(target[:, :-1] == IGNORED, pad)
        begin = torch.cat([torch.full((len(numbers), 1), pad), before], dim=1)
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(input_ids=source, attention_mask=(source != pad).long(), decoder_input_ids=begin).logits
        loss = cross_entropy(logits.float().flatten(0, 1), target.flatten(), ignore_index=IGNORED, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if update % 100 == 0:
            print(f"update {update}, {60 * minutes * done:.0f} s, loss {sum(losses[-100:]) / 100:.3f}", flush=True)


def main() -> None:
    """Train, and write the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--languages", nargs=2, default=["en", "de"])
    parser.add_argument("--minutes", type=float, default=25)
    parser.add_argument("--subwords", type=int, default=8000)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=2048)
    options = parser.parse_args()
    torch.manual_seed(1)
    sources, targets = lines(options.source), lines(options.target)
    part = options.out.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    vocabulary = write_tokenizer(part, sources, targets, options.subwords)
    end, pad, unknown = vocabulary["</s>"], vocabulary["<pad>"], vocabulary["<unk>"]
    sides = []
    for name, texts in (("source.spm", sources), ("target.spm", targets)):
        processor = sentencepiece.SentencePieceProcessor(model_file=str(part / name))
        pieces = (processor.encode(text, out_type=str) for text in texts)
        sides.append([[*(vocabulary.get(piece, unknown) for piece in row), end] for row in pieces])
    rows = [pair for pair in zip(*sides, strict=True) if max(map(len, pair)) <= 100]
    config = MarianConfig(
        vocab_size=len(vocabulary), d_model=options.width, encoder_layers=options.layers, decoder_layers=options.layers,
        encoder_ffn_dim=4 * options.width, decoder_ffn_dim=4 * options.width, encoder_attention_heads=4,
        decoder_attention_heads=4, dropout=0.1, attention_dropout=0.0, activation_dropout=0.0,
        activation_function="swish", scale_embedding=True, share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True, static_position_embeddings=True, normalize_embedding=False,
        add_bias_logits=False, add_final_layer_norm=False, max_position_embeddings=512, init_std=0.02,
        pad_token_id=pad, eos_token_id=end, decoder_start_token_id=pad, forced_eos_token_id=end,
    )  # fmt: skip
    model = MarianMTModel(config).train()
    torch.nn.init.normal_(model.model.shared.weight, std=options.width**-0.5)
    train(model, rows, options.minutes, options.tokens)
    model.eval()
    model.generation_config.bad_words_ids = [[pad]]
    model.save_pretrained(part)
    tokenizer = MarianTokenizer(
        source_spm=str(part / "source.spm"), target_spm=str(part / "target.spm"), vocab=str(part / "vocab.json"),
        source_lang=options.languages[0], target_lang=options.languages[1],
    )  # fmt: skip
    tokenizer.save_pretrained(part)
    part.rename(options.out)


if __name__ == "__main__":
    main()
