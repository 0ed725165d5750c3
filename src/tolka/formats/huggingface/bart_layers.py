"""What Hugging Face's descendants of BART have in common: settings of layers, names and shapes of tensors.

Marian, M2M-100 and NLLB-200 have biases everywhere, attention with four matrices, and shared embeddings under several
names, of which each version of `transformers` writes others.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tolka.errors import CheckpointError, ConfigError
from tolka.formats.huggingface.family import CONFIG, rate, whole_number
from tolka.formats.huggingface.folder import Weights
from tolka.models.transformer.config import TransformerConfig
from tolka.models.transformer.options import TransformerOptions
from tolka.tokenizer.vocabulary import Vocabulary

SHARED, SOURCE, TARGET = "model.shared.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
OUTPUT = "lm_head.weight"
BEAM = 5
"""Of the generation_config.json that is written: the default of mt-translate."""
_ACTIVATION = "activation_function"
# Our options -> their settings.
_SIZES = {
    "d_model": "d_model",
    "heads": "encoder_attention_heads",
    "d_ff": "encoder_ffn_dim",
    "layers": "encoder_layers",
    "decoder_layers": "decoder_layers",
}
_RATES = "dropout", "attention_dropout", "activation_dropout"
ACTIVATIONS = {"swish": "swish", "silu": "swish", "relu": "relu", "gelu": "gelu"}
MATRICES: dict[str, dict[str, tuple[str, ...]]] = {
    "all": {"target_embedding.weight": (SHARED, SOURCE, TARGET, OUTPUT)},
    "source_target": {"target_embedding.weight": (SHARED, SOURCE, TARGET), "output_embedding.weight": (OUTPUT,)},
    "target_output": {"source_embedding.weight": (SOURCE,), "target_embedding.weight": (TARGET, OUTPUT)},
    "none": {
        "source_embedding.weight": (SOURCE,),
        "target_embedding.weight": (TARGET,),
        "output_embedding.weight": (OUTPUT,),
    },
}
"""model.share_embeddings -> our embeddings, and the names under which theirs may have each matrix."""

# Our modules of a layer -> theirs, which ours has stacked in one matrix.
_PARTS = {
    "attention.query_key_value": "self_attn.q_proj self_attn.k_proj self_attn.v_proj",
    "attention.output": "self_attn.out_proj",
    "around_attention.norm": "self_attn_layer_norm",
    "cross.query": "encoder_attn.q_proj",
    "cross.key_value": "encoder_attn.k_proj encoder_attn.v_proj",
    "cross.output": "encoder_attn.out_proj",
    "around_cross.norm": "encoder_attn_layer_norm",
    "feedforward.inner": "fc1",
    "feedforward.outer": "fc2",
    "around_feedforward.norm": "final_layer_norm",
}
IN_LAYER = re.compile(r"(encoder|decoder)\.(\d+)\.(.+)\.(weight|bias)")
"""Our names of tensors in the layers."""
_LAST_NORM = re.compile(r"(encoder|decoder)_norm\.(weight|bias)")


def read_options(config: Mapping[str, Any], where: str, default_activation: str, **own: Any) -> TransformerConfig:
    """Return the options of a `config.json`; CheckpointError for what they cannot express. where: its name.

    default_activation: where it names none. own: the options that are the family's.
    """
    for key in ("attention_heads", "ffn_dim"):
        encoder, decoder = f"encoder_{key}", f"decoder_{key}"
        if whole_number(config, encoder, where) != whole_number(config, decoder, where):
            raise CheckpointError(
                f"{where}: {encoder} ({config[encoder]}) and {decoder} ({config[decoder]}) must be equal in tolka"
            )
    sizes: dict[str, Any] = {ours: whole_number(config, theirs, where) for ours, theirs in _SIZES.items()}
    for key in ("layers", "decoder_layers", "d_ff"):  # where 0 has a meaning in tolka
        if not sizes[key]:
            raise CheckpointError(f"{where}: {_SIZES[key]} (0) must be at least 1")
    activation = config.get(_ACTIVATION, default_activation)
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise CheckpointError(
            f"{where}: activation_function ({activation!r:.80}) must be one of {', '.join(ACTIVATIONS)}"
        )
    try:
        rates: dict[str, Any] = {key: rate(config, key, where) for key in _RATES}
        return TransformerConfig(activation=ACTIVATIONS[activation], **sizes, **rates, **own)
    except ConfigError as error:
        raise CheckpointError(f"{where}: {error}") from None


def layer_settings(model: TransformerOptions) -> dict[str, Any]:
    """Return the settings of a `config.json` that `read_options` reads. model: resolved."""
    sizes = {theirs: getattr(model, "inner_width" if ours == "d_ff" else ours) for ours, theirs in _SIZES.items()}
    return {
        **sizes,
        "is_encoder_decoder": True,
        "use_cache": True,
        "decoder_attention_heads": model.heads,
        "decoder_ffn_dim": model.inner_width,
        _ACTIVATION: model.activation,
        **{key: getattr(model, key) for key in _RATES},
        **dict.fromkeys(("encoder_layerdrop", "decoder_layerdrop"), 0.0),
        "init_std": 0.02,
        "scale_embedding": model.scale_embeddings,
    }


def refuse_others(family: str, model: TransformerOptions, allowed: Mapping[str, Sequence[Any]], advice: str) -> None:
    """Raise ConfigError, with the values that would fit, for options that a family does not have.

    allowed: option -> its values, beside those that all have. advice: what to do instead.
    """
    activations = tuple(dict.fromkeys(ACTIVATIONS.values()))
    usual = {"decoder": ("attention",), "normalization": ("layernorm",), "activation": activations}
    allowed = {**usual, **allowed, "d_v": (0, model.key_width)}
    wrong = [
        f"model.{key}={getattr(model, key)} (it has {' or '.join(map(str, values[-1:] if key == 'd_v' else values))})"
        for key, values in allowed.items()
        if getattr(model, key) not in values
    ]
    if wrong:
        raise ConfigError(f"{family} has no {', '.join(wrong)}: {advice}")


def layer_tensors(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return views of our weights in the layers, as they name them."""
    views = {}
    for name, weight in weights.items():
        if found := IN_LAYER.fullmatch(name):
            side, number, part, kind = found.groups()
            theirs = _PARTS[part].split()
            for each, view in zip(theirs, weight.chunk(len(theirs)), strict=True):
                views[f"model.{side}.layers.{number}.{each}.{kind}"] = view
        elif found := _LAST_NORM.fullmatch(name):
            views[f"model.{found[1]}.layer_norm.{found[2]}"] = weight
    return views


def shapes_of(model: TransformerOptions, sizes: tuple[int, int], shared: bool) -> dict[str, tuple[int, ...]]:
    """Return the shapes of their tensors in the layers, and of embeddings. sizes: of their vocabularies."""
    layers = layer_tensors(model.shapes(*sizes, shared).state_dict())
    source, target = ((size, model.d_model) for size in sizes)
    embeddings = {SHARED: source, SOURCE: source, TARGET: target, OUTPUT: target}
    return {name: tuple(view.shape) for name, view in layers.items()} | embeddings


def fill_layers(
    weights: Mapping[str, Tensor],
    theirs: Weights,
    model: TransformerOptions,
    vocabularies: Sequence[Vocabulary],
    path: Path,
) -> None:
    """Read layers and embeddings into our model's `weights`; CheckpointError for embeddings that do not fit.

    vocabularies: of both sides, or of each. path: of their folder, for messages.
    """
    # The largest first, while the rest of the model takes no memory yet.
    for ours, names in MATRICES[model.share_embeddings].items():
        vocabulary = vocabularies[0 if ours.startswith("source") else -1]
        fill_rows(weights[ours], _only_one(theirs, names, path), vocabulary)
    for name, view in layer_tensors(weights).items():
        view.copy_(theirs[name]())


def their_tensors(weights: Mapping[str, Tensor], sharing: str, vocabularies: Sequence[Vocabulary]) -> dict[str, Tensor]:
    """Return the layers and embeddings as they name them. sharing: which of MATRICES the embeddings go out as."""
    tensors = layer_tensors(weights)
    for ours, (name, *_) in MATRICES[sharing].items():
        vocabulary = vocabularies[0 if ours.startswith("source") else -1]
        tensors[name] = weights[ours][torch.tensor(vocabulary.ids_in_original_order())]
    return tensors


def fill_rows(rows: Tensor, theirs: Tensor, vocabulary: Vocabulary) -> None:
    """Fill rows (V, ...) of our subwords with theirs; those of special tokens that they do not have become zero."""
    order = vocabulary.ids_in_original_order()
    rows[sorted({*range(len(rows))} - {*order})] = 0.0
    rows[torch.tensor(order)] = theirs


def _only_one(theirs: Weights, names: Sequence[str], path: Path) -> Tensor:
    """Return the matrix that has these names; CheckpointError if it has none of them, or matrices differ."""
    first, *others = [name for name in names if name in theirs] or [""]
    if not first:
        raise CheckpointError(f"{path} has no embeddings: {names[0]} is missing")
    matrix = theirs[first]()
    for name in others:
        if not torch.equal(theirs[name](), matrix):
            raise CheckpointError(f"{path}: {name} and {first} differ, and by {CONFIG} they are one matrix")
    return matrix
