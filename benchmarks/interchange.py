"""Marian in and out on a thousand sentences: identical lines, BLEU between both sides, logits, tensors.

    python benchmarks/interchange.py WORK [--steps N] [--lines N] [--width D] [--layers L]

In WORK `transformers` makes a Marian of that size, trains it on the embedded English-Korean sample, and saves it in the
layout of OPUS-MT's models. It is imported, and exported again. Of each direction a JSON line is printed: how alike both
sides translate greedily, and whether the tensors that come back are those that went in. The Python that runs it needs
`transformers`.
"""

import argparse
import io
import json
import random
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

from tolka.formats.any_model import load_any
from tolka.formats.huggingface.marian import Marian
from tolka.interchange.huggingface import export_huggingface, import_huggingface
from tolka.interchange.parity import Parity, TolkaSide, compare
from tolka.interchange.transformers_side import TransformersSide
from tolka.system.package_data import sample_dir
from tolka.text.lines import read_lines

SUBWORDS = 4000  # of each SentencePiece model
BATCH = 64  # sentences


def spm(texts: list[str]) -> bytes:
    """Train a SentencePiece model with its own special tokens, as OPUS-MT's are."""
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=model, vocab_size=SUBWORDS, hard_vocab_limit=False, minloglevel=2
    )
    return model.getvalue()


def write_tokenizer(folder: Path, sources: list[str], targets: list[str]) -> dict[str, int]:
    """Write the tokenizer's files; return the vocabulary of both sides, in an order of its own."""
    folder.mkdir(parents=True)
    subwords: dict[str, None] = {}
    for name, texts in (("source.spm", sources), ("target.spm", targets)):
        model = spm(texts)
        (folder / name).write_bytes(model)
        processor = SentencePieceProcessor(model_proto=model)
        subwords |= dict.fromkeys(processor.id_to_piece(number) for number in range(3, processor.get_piece_size()))
    others = list(subwords)
    random.Random(1).shuffle(others)
    vocabulary = {subword: number for number, subword in enumerate(["</s>", "<unk>", *others, "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    about = {"source_lang": "en", "target_lang": "ko"}
    (folder / "tokenizer_config.json").write_text(json.dumps(about), encoding="utf-8")
    return vocabulary


def make(folder: Path, steps: int, width: int, layers: int) -> None:
    """Make and train a Marian in `transformers`."""
    sources, targets = (list(read_lines(sample_dir() / f"train.{side}")) for side in ("en", "ko"))
    vocabulary = write_tokenizer(folder, sources, targets)
    pad, sizes = vocabulary["<pad>"], dict[str, Any]()
    for side in ("encoder", "decoder"):
        sizes |= {f"{side}_layers": layers, f"{side}_attention_heads": 8, f"{side}_ffn_dim": 4 * width}
    special = {"pad_token_id": pad, "decoder_start_token_id": pad, "eos_token_id": 0, "forced_eos_token_id": 0}
    torch.manual_seed(1)
    model = MarianMTModel(
        MarianConfig(
            vocab_size=len(vocabulary),
            d_model=width,
            max_position_embeddings=512,
            activation_function="swish",
            scale_embedding=True,
            init_std=width**-0.5,
            **sizes,
            **special,
        )
    ).train()
    tokenizer = MarianTokenizer.from_pretrained(str(folder))
    optimizer, draw = torch.optim.Adam(model.parameters(), lr=5e-4), random.Random(1)
    for step in range(steps):
        rows = [draw.randrange(len(sources)) for _ in range(BATCH)]
        texts, references = [sources[row] for row in rows], [targets[row] for row in rows]
        batch = tokenizer(texts, text_target=references, return_tensors="pt", padding=True)
        labels = batch.pop("labels")
        labels[labels == pad] = -100
        optimizer.zero_grad()
        loss = model(**batch, labels=labels).loss
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.2f}", flush=True)
    model.eval().save_pretrained(folder)


def shown(direction: str, parity: Parity, **facts: Any) -> None:
    """Print a direction's figures."""
    bleu = {"bleu": parity.bleu.value, "signature": parity.bleu.signature}
    found = {"lines": parity.lines, "identical": parity.identical, **bleu, "logits": parity.logits}
    print(json.dumps({"direction": direction, "other": parity.other, **found, **facts}), flush=True)


def main() -> None:
    """Make, import, export, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("work", type=Path)
    for name, default in (("steps", 300), ("lines", 1000), ("width", 256), ("layers", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    work, folder = options.work, options.work / "marian"
    if not (folder / "config.json").exists():
        make(folder, options.steps, options.width, options.layers)
    lines = list(islice(read_lines(sample_dir() / "train.en"), options.lines))
    saved = load_any(folder)
    target = saved.tokenizer.vocabularies[-1]
    found = compare(TolkaSide(saved), TransformersSide(folder, Marian(), target), lines)
    shown("Hugging Face -> tolka", found, different_translations=len({*TolkaSide(saved).translate(lines)}))
    if not (work / "model").exists():
        import_huggingface(folder, work / "model", None, lines[:50], print)
    if not (work / "back").exists():
        export_huggingface(work / "model", work / "back", "float32", lines[:50], print)
    found = compare(TolkaSide(load_any(work / "model")), TransformersSide(work / "back", Marian(), target), lines)
    before, after = (load_file(path / "model.safetensors") for path in (folder, work / "back"))
    equal = before.keys() == after.keys() and all(
        torch.equal(before[name].view(torch.uint8), after[name].view(torch.uint8)) for name in before
    )
    shown("tolka -> Hugging Face", found, tensors=len(before), tensors_are_byte_identical=equal)


if __name__ == "__main__":
    main()
