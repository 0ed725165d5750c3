"""Folders of Hugging Face's Marian, made with `transformers` and with SentencePiece models trained here.

The layout is that of Helsinki-NLP's models on the Hub (`Helsinki-NLP/opus-mt-en-de`), as the page MarianMT of the
documentation of `transformers` and `convert_marian_to_pytorch.py` there describe it: source.spm, target.spm (unigram,
with SentencePiece's own special tokens), vocab.json (`</s>` 0, `<unk>` 1, the subwords of both in the order of the
training's vocabulary, `<pad>` last), tokenizer_config.json with source_lang and target_lang, config.json with
pad_token_id as decoder_start_token_id, generation_config.json with beams and bad_words_ids.
"""

import io
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from conftest import XA, XB, sentences
from tolka.formats.huggingface.bart_layers import OUTPUT, SOURCE, TARGET, shapes_of
from tolka.formats.huggingface.family import read_foreign
from tolka.formats.huggingface.marian import BIAS
from tolka.model_directory.read import SavedModel
from tolka.models.transformer.config import TransformerConfig

TAGS = (">>deu<<", ">>fra<<")


@dataclass(frozen=True)
class Sizes:
    """Of a small Marian."""

    d_model: int = 32
    layers: int = 2
    decoder_layers: int = 1
    heads: int = 4
    inner: int = 48
    positions: int = 40


def spm(texts: list[str], size: int, kind: str = "unigram") -> bytes:
    """A SentencePiece model with special tokens where SentencePiece itself has them: `<unk>` 0, `<s>` 1, `</s>` 2."""
    from sentencepiece import SentencePieceTrainer

    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=model,
        vocab_size=size,
        hard_vocab_limit=False,
        model_type=kind,
        minloglevel=2,
        num_threads=1,
    )
    return model.getvalue()


def pieces(model: bytes) -> list[str]:
    """The subwords of a model, without its special tokens."""
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(number) for number in range(3, processor.get_piece_size())]


def write_json(path: Path, values: Any) -> None:
    path.write_text(json.dumps(values, ensure_ascii=False, indent=2), encoding="utf-8")


def write_tokenizer(folder: Path, separate: bool, tags: bool, lacking: int = 2) -> tuple[dict[str, int], ...]:
    """Write the tokenizer's files; return the vocabularies. lacking: subwords of each model left out of them."""
    folder.mkdir(parents=True, exist_ok=True)
    pairs = sentences(300, 11)
    source, target = (spm([pair[side] for pair in pairs], 60) for side in (0, 1))
    (folder / "source.spm").write_bytes(source)
    (folder / "target.spm").write_bytes(target)
    draw, sides = random.Random(5), [pieces(source)[lacking:], pieces(target)[lacking:]]
    # The source's list is longer: MarianTokenizer takes the id of its <pad> for the target's, too.
    lists = [sides[0], sides[1][: len(sides[0]) - 4]] if separate else [list(dict.fromkeys(sides[0] + sides[1]))]
    vocabularies = []
    for subwords in lists:
        draw.shuffle(subwords)
        every = ["</s>", "<unk>", *subwords, *(TAGS if tags else ()), "<pad>"]
        vocabularies.append({subword: number for number, subword in enumerate(every)})
    for name, vocabulary in zip(("vocab.json", "target_vocab.json"), vocabularies, strict=False):
        write_json(folder / name, vocabulary)
    about = {"source_lang": "xa", "target_lang": "xb", "tokenizer_class": "MarianTokenizer"}
    write_json(folder / "tokenizer_config.json", {**about, **({"separate_vocabs": True} if separate else {})})
    return tuple(vocabularies)


def settings_of(sizes: Sizes) -> dict[str, Any]:
    """The sizes as config.json has them."""
    return {
        "d_model": sizes.d_model,
        "encoder_layers": sizes.layers,
        "decoder_layers": sizes.decoder_layers,
        "encoder_attention_heads": sizes.heads,
        "decoder_attention_heads": sizes.heads,
        "encoder_ffn_dim": sizes.inner,
        "decoder_ffn_dim": sizes.inner,
        "max_position_embeddings": sizes.positions,
        "init_std": 0.3,  # so that the weights, which nothing trains, tell sources apart
    }


def marian_config(vocabularies: tuple[dict[str, int], ...], sizes: Sizes, **options: Any) -> Any:
    """The MarianConfig for vocabularies."""
    transformers = pytest.importorskip("transformers")
    pad = vocabularies[-1]["<pad>"]
    values = {
        "vocab_size": len(vocabularies[0]),
        "decoder_vocab_size": len(vocabularies[-1]),
        **settings_of(sizes),
        "activation_function": "swish",
        "scale_embedding": True,
        "share_encoder_decoder_embeddings": len(vocabularies) == 1,
        "pad_token_id": pad,
        "decoder_start_token_id": pad,
        "eos_token_id": 0,
        "forced_eos_token_id": 0,
    }
    return transformers.MarianConfig(**{**values, **options})


def write_folder(
    folder: Path,
    sizes: Sizes = Sizes(),
    separate: bool = False,
    tags: bool = False,
    **options: Any,
) -> Path:
    """Write a folder with a model that `transformers` made, of random weights; return the folder."""
    transformers = pytest.importorskip("transformers")
    vocabularies = write_tokenizer(folder, separate, tags)
    torch.manual_seed(7)
    model = transformers.MarianMTModel(marian_config(vocabularies, sizes, **options)).eval()
    with torch.no_grad():  # Marian's own models have one there
        model.final_logits_bias.copy_(torch.randn(model.final_logits_bias.shape) * 0.1)
        for tag in TAGS if tags else ():  # which no translation has
            model.final_logits_bias[0, vocabularies[-1][tag]] = -30.0
    model.generation_config.update(num_beams=6, bad_words_ids=[[model.config.pad_token_id]], max_length=512)
    model.save_pretrained(folder)
    return folder


def write_by_hand(folder: Path, tags: bool = False, **options: Any) -> Path:
    """Write a folder with random weights, without `transformers`. options: of config.json that are other."""
    (vocabulary,) = write_tokenizer(folder, separate=False, tags=tags)
    size, pad = len(vocabulary), vocabulary["<pad>"]
    config = {
        "model_type": "marian",
        "vocab_size": size,
        "d_model": 16,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 24,
        "activation_function": "swish",
        "scale_embedding": True,
        "max_position_embeddings": 64,
        "pad_token_id": pad,
        "decoder_start_token_id": pad,
        "eos_token_id": 0,
    }
    write_json(folder / "config.json", {**config, **options})
    draw = torch.Generator().manual_seed(1)
    shapes = shapes_of(
        TransformerConfig(d_model=16, heads=2, d_ff=24, layers=1, norm="post"), (size, size), shared=True
    )
    shapes[BIAS] = (1, size)
    kept = {name: shape for name, shape in shapes.items() if name not in (SOURCE, TARGET, OUTPUT)}
    # By name: another order of a table would draw another model, which may have ties between its likeliest tokens.
    tensors = {name: torch.randn(shape, generator=draw) * 0.3 for name, shape in sorted(kept.items())}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return folder


def load_marian(folder: Path) -> SavedModel:
    """The model of a folder."""
    return read_foreign(folder).load()


def mixed_lines(count: int, seed: int = 3) -> list[str]:
    """Source lines, some of them with words of the other language, and characters that nobody knows."""
    draw = random.Random(seed)
    words = [*XA, *XB, "7", "é", "語", "zebra", "KETTLE"]
    return [" ".join(draw.choices(words, k=draw.randint(1, 5))) + draw.choice([" .", "", "!"]) for _ in range(count)]
