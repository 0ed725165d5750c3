"""Model directories with random options and weights, sharp enough that translations differ, for pages of HTML."""

import random
from pathlib import Path
from typing import Any

import torch
from random_model import TEXTS, sharpen

from conftest import XA
from tolka.model_directory.verify import TrainingSources
from tolka.model_directory.write import snapshot
from tolka.models.options import ModelConfig
from tolka.models.rnn import RnnConfig
from tolka.models.transformer import TransformerConfig
from tolka.text.direction import Direction
from tolka.text.pairs import Pair
from tolka.tokenizer.extension import add_tags
from tolka.tokenizer.special_tokens import EOS
from tolka.tokenizer.tokenizer import TokenizerConfig
from tolka.tokenizer.training import train_tokenizer

DIRECTION = Direction("xa", "xb")


def lines(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(XA, k=draw.randint(1, 9))) for _ in range(count)]


def random_config(draw: random.Random, shared: bool) -> ModelConfig:
    """A recurrent model or a Transformer, each of its options drawn, with odd widths."""
    sharing = draw.choice(("all", "source_target", "target_output", "source_output", "none"))
    common: dict[str, Any] = {"share_embeddings": sharing if shared else draw.choice(("target_output", "none"))}
    if draw.random() < 0.5:
        bidirectional, attention = draw.random() < 0.5, draw.choice(("none", "dot", "general", "additive"))
        return RnnConfig(
            d_model=draw.choice((24, 33, 48)),
            cell=draw.choice(("rnn", "lstm", "gru")),
            hidden=draw.choice((0, 34, 50)) if not bidirectional else draw.choice((34, 50)),
            layers=draw.choice((1, 1, 2, 3)),
            bidirectional=bidirectional,
            attention=attention,
            input_feeding=attention != "none" and draw.random() < 0.5,
            token_term=draw.random() < 0.3,
            **common,
        )
    heads = draw.choice((1, 3, 4))
    kinds = [f"sinusoidal{kind}" for kind in ("", "_halves", "_fairseq", "_marian")]
    positions = draw.choice((*kinds, "rotary", "learned"))
    return TransformerConfig(
        d_model=heads * draw.choice((10, 12) if positions == "rotary" else (10, 11, 12)),
        heads=heads,
        d_v=draw.choice((0, 0, 5)),
        d_ff=draw.choice((0, 37)),
        layers=draw.choice((1, 2)),
        decoder_layers=draw.choice((0, 1, 3)),
        decoder=draw.choice(("attention", "attention", "ssru")),
        norm=draw.choice(("pre", "post")),
        normalization=draw.choice(("layernorm", "rmsnorm")),
        activation=draw.choice(("relu", "gelu", "swish", "swiglu")),
        positions=positions,
        max_positions=8,
        decoder_start=draw.choice(("bos", "eos")),
        scale_embeddings=draw.random() < 0.8,
        output_bias=draw.random() < 0.5,
        **common,
    )


def write_random_model(folder: Path, seed: int, directions: tuple[Direction, ...] = (DIRECTION,)) -> ModelConfig:
    """Write a model directory; return the options drawn."""
    draw, shared = random.Random(seed), seed % 3 > 0
    torch.manual_seed(seed)
    pairs = [Pair(text, text.upper()) for text in [*TEXTS, *lines(40, seed)]]
    options = TokenizerConfig(vocab_size=330, shared=shared)
    tokenizer = train_tokenizer(options, lambda: iter(pairs), lambda remark: None)
    form = draw.choice((None, None, "source", "target", "both"))
    if form:
        tokenizer = add_tags(tokenizer, DIRECTION, form)
    config = random_config(draw, shared)
    model = config.build(tokenizer.source_size, tokenizer.target_size, shared)
    # An Elman network with larger weights is chaotic: rounding alone changes what it says.
    inner = 1.0 if getattr(config, "cell", "") == "rnn" else 2.0
    sharpen(model, lambda name: 4.0 if "embedding" in name else inner)
    with torch.no_grad():
        if "output_bias" in dict(model.named_parameters()):
            model.get_parameter("output_bias")[EOS] += 1.0
    settings: dict[str, Any] = {
        "corpus": {"source": DIRECTION.source, "target": DIRECTION.target},
        "run": {"name": "made </script><!-- & co."},
        "cleaning": {"unicode": "nfc"},
        "model": {**vars(config)},
        "tokenizer": {"shared": shared, "vocab_size": 330},
    }
    sources = TrainingSources(60, 0.0, directions=directions)
    snapshot(model, tokenizer, settings, sources, {"facts": {}}, "card").write(folder)
    return config
