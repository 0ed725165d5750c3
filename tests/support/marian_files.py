"""Small models of Marian's own form, as model directories with random weights, and as folders of an OPUS-MT zip."""

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from marian_folder import write_by_hand
from random_model import sharpen, tokenizer_of
from safetensors.torch import load_file

from tolka.model_directory.verify import TrainingSources
from tolka.model_directory.write import snapshot
from tolka.models.transformer.config import TransformerConfig

STUDENT = TransformerConfig(
    d_model=64, heads=4, layers=1, norm="post", positions="sinusoidal_marian", decoder_start="zero", output_bias=True
)


_tokenizer_of = cache(tokenizer_of)


def write_student(folder: Path, config: TransformerConfig = STUDENT, shared: bool = True, seed: int = 7) -> Path:
    """A model whose weights are large enough that translations tell sources apart."""
    torch.manual_seed(seed)
    tokenizer = _tokenizer_of(shared)
    model = config.build(tokenizer.source_size, tokenizer.target_size, shared)
    sharpen(model, lambda name: 4.0 if "cross.output" in name else 1.5)
    settings: dict[str, Any] = {
        "corpus": {"source": "xa", "target": "xb"},
        "run": {"name": "made"},
        "model": {**vars(config)},
        "tokenizer": {"shared": shared, "vocab_size": 310},
    }
    snapshot(model, tokenizer, settings, TrainingSources(40, 0.0), {"facts": {}}, "card").write(folder)
    return folder


def random_student(draw: random.Random, shared: bool, step: int = 1) -> TransformerConfig:
    """Draw any form that Marian has. step: that widths are multiples of."""
    heads = draw.choice([1, 2, 3, 4])
    width = heads * draw.randint(4, 20)
    return TransformerConfig(
        d_model=width if step == 1 else draw.choice([1, 2]) * step,
        heads=heads if step == 1 else draw.choice([1, 2, 4]),
        d_ff=draw.randint(5, 90) if step == 1 else draw.choice([1, 2, 3]) * step,
        layers=draw.randint(1, 4),
        decoder_layers=draw.randint(1, 3),
        decoder=draw.choice(["attention", "ssru"]),
        norm="post",
        activation=draw.choice(["relu", "swish"]),
        positions="sinusoidal_marian",
        decoder_start="zero",
        output_bias=draw.choice([True, False]),
        share_embeddings=draw.choice(
            ["all", "source_target", "target_output", "none"] if shared else ["target_output", "none"]
        ),
    )


# Of transformers' MarianMTModel -> of Marian, as its converter has them the other way around.
_NAMES = {
    "self_attn.q_proj.": "self_{}q",
    "self_attn.k_proj.": "self_{}k",
    "self_attn.v_proj.": "self_{}v",
    "self_attn.out_proj.": "self_{}o",
    "encoder_attn.q_proj.": "context_{}q",
    "encoder_attn.k_proj.": "context_{}k",
    "encoder_attn.v_proj.": "context_{}v",
    "encoder_attn.out_proj.": "context_{}o",
    "fc1.": "ffn_{}1",
    "fc2.": "ffn_{}2",
}
_NORMS = {"self_attn": "self_Wo", "encoder_attn": "context_Wo", "final": "ffn_ffn"}


def write_zip_of_opus_mt(folder: Path, hugging_face: Path, **options: Any) -> Path:
    """Write what a zip of OPUS-MT has: the model of a small folder of Hugging Face's Marian, which is written too."""
    write_by_hand(hugging_face)
    folder.mkdir()
    arrays: dict[str, Any] = {}
    for name, tensor in load_file(hugging_face / "model.safetensors").items():
        array = tensor.numpy()
        if name == "model.shared.weight":
            arrays["Wemb"] = array[:-1]  # the last is <pad>
        elif name == "final_logits_bias":
            arrays["decoder_ff_logit_out_b"] = array[:, :-1]
        else:
            _, side, _, number, part = name.split(".", 4)
            kind = part.rpartition(".")[2]
            if "layer_norm" in part:
                ours = f"{_NORMS[part.partition('_layer_norm')[0]]}_ln_{'scale' if kind == 'weight' else 'bias'}"
            else:
                ours = _NAMES[part.removesuffix(kind)].format("W" if kind == "weight" else "b")
            arrays[f"{side}_l{int(number) + 1}_{ours}"] = array.T if array.ndim == 2 else array[None]
    text = yaml.safe_dump({**OPUS_MT, **options})
    arrays["special:model.yml"] = np.frombuffer(text.encode() + b"\0", np.int8)
    np.savez(folder / "opus.npz", **{name: np.ascontiguousarray(array) for name, array in arrays.items()})  # type: ignore[arg-type]
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes((hugging_face / name).read_bytes())
    ids = json.loads((hugging_face / "vocab.json").read_text(encoding="utf-8"))
    lines = [f"{json.dumps(each) if i % 2 else each}: {i}\n" for each, i in ids.items() if each != "<pad>"]
    (folder / "opus.vocab.yml").write_text("".join(lines), encoding="utf-8")
    decoder = {"models": ["/home/x/opus.npz"], "vocabs": ["/home/x/opus.vocab.yml"] * 2, "relative-paths": True}
    (folder / "decoder.yml").write_text(yaml.safe_dump(decoder))
    return folder


OPUS_MT = {
    "type": "transformer",
    "dim-emb": 16,
    "enc-depth": 1,
    "dec-depth": 1,
    "transformer-heads": 2,
    "transformer-dim-ffn": 24,
    "transformer-ffn-activation": "swish",
    "transformer-ffn-depth": 2,
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-decoder-autoreg": "self-attention",
    "tied-embeddings-all": True,
}
"""Options of the model of `write_zip_of_opus_mt`."""
