"""A model directory with random weights, written by hand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tolka.model_directory.verify import TrainingSources
from tolka.model_directory.write import snapshot
from tolka.models.transformer.config import TransformerConfig
from tolka.text.pairs import Pair
from tolka.tokenizer.special_tokens import EOS
from tolka.tokenizer.tokenizer import Tokenizer, TokenizerConfig
from tolka.tokenizer.training import train_tokenizer

TEXTS = ["lantern ferry .", "kettle pebble saddle walnut .", "ferry", "copper velvet orchid lantern lantern kettle ."]


def tokenizer_of(shared: bool) -> Tokenizer:
    pairs = [Pair(text, text.upper()) for text in TEXTS * 20]
    config = TokenizerConfig(vocab_size=310, shared=shared)
    return train_tokenizer(config, lambda: iter(pairs), lambda remark: None)


def sharpen(model: nn.Module, scale: Callable[[str], float]) -> None:
    """Draw gains and biases, and scale matrices by their names: distributions of a fresh model are flat."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.3)
            else:
                parameter.mul_(scale(name))


def write_model(folder: Path, config: TransformerConfig, shared: bool = True) -> Path:
    """A model with random weights, larger than fresh ones."""
    torch.manual_seed(7)
    tokenizer = tokenizer_of(shared)
    model = config.build(tokenizer.source_size, tokenizer.target_size, shared)
    sharpen(model, lambda name: 1.0 if "embedding" in name else 1.5)
    with torch.no_grad():
        if config.share_embeddings == "none":  # no output is <pad> or <s>, as of a model that is trained
            weights = model.state_dict()
            weights["decoder_norm.bias"].mul_(8.0)
            weights["output_embedding.weight"][:EOS] = -0.1 * weights["decoder_norm.bias"]
    settings: dict[str, Any] = {
        "corpus": {"source": "xa", "target": "xb"},
        "run": {"name": "made"},
        "cleaning": {"unicode": "nfc"},
        "model": {**vars(config)},
        "tokenizer": {"shared": shared, "vocab_size": 310},
    }
    snapshot(model, tokenizer, settings, TrainingSources(40, 0.0), {"facts": {}}, "card").write(folder)
    return folder
