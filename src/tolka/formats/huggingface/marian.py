"""Hugging Face's Marian and tolka's Transformer: which options and which tensors of one are which of the other.

Marian (Junczys-Dowmunt et al. 2018) in `transformers`: post-norm, positions as sinusoids in halves, biases everywhere,
and `final_logits_bias` on the logits. The decoder starts from the row of `<pad>`, which is our BOS. The layout of a
folder is that of Helsinki-NLP's models (Tiedemann and Thottingal 2020), as `convert_marian_to_pytorch.py` of
`transformers` writes it.
"""

from collections.abc import Mapping
from typing import Any

from tolka.errors import CheckpointError, ConfigError
from tolka.models.transformer.config import TransformerConfig
from tolka.models.transformer.options import TransformerOptions

MODEL_TYPE = "marian"
CONFIG, TOKENIZER_CONFIG, GENERATION_CONFIG = "config.json", "tokenizer_config.json", "generation_config.json"
VOCAB, TARGET_VOCAB, SOURCE_SPM, TARGET_SPM = "vocab.json", "target_vocab.json", "source.spm", "target.spm"
SHARED, SOURCE, TARGET = "model.shared.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
OUTPUT, BIAS = "lm_head.weight", "final_logits_bias"
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
CONFIG_KEYS = (
    *("architectures", "model_type", "is_encoder_decoder", "vocab_size", "decoder_vocab_size", "d_model"),
    *("encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads"),
    *("encoder_ffn_dim", "decoder_ffn_dim", "activation_function", "dropout", "attention_dropout"),
    *("activation_dropout", "encoder_layerdrop", "decoder_layerdrop", "init_std", "scale_embedding"),
    *("static_position_embeddings", "max_position_embeddings", "share_encoder_decoder_embeddings"),
    *("tie_word_embeddings", "pad_token_id", "eos_token_id", "forced_eos_token_id", "decoder_start_token_id"),
    *("bos_token_id", "use_cache"),
)
"""The settings of a `config.json` that Marian has."""
_ACTIVATIONS = {"swish": "swish", "silu": "swish", "relu": "relu", "gelu": "gelu"}
# (share_encoder_decoder_embeddings, tie_word_embeddings) -> model.share_embeddings. Whether embeddings are shared
# although none are tied depends on the version of transformers: such a model goes out with copies, as none.
_SHARING = {
    (True, True): "all",
    (True, False): "source_target",
    (False, True): "target_output",
    (False, False): "none",
}
# Settings of BART's family that older folders have, and that Marian's models never set.
_ABSENT = {
    "normalize_before": "pre-norm",
    "normalize_embedding": "a norm",
    "add_final_layer_norm": "norm",
}


def options_of(config: Mapping[str, Any], where: str) -> TransformerConfig:
    """Return the options of a `config.json`. where: its name, for messages; CheckpointError for what has none."""
    for key, meaning in _ABSENT.items():
        if config.get(key):
            raise CheckpointError(
                f"{where}: {key}={config[key]!r:.80} ({meaning}) is no setting of Marian's architecture"
            )
    for encoder, decoder in (
        ("encoder_attention_heads", "decoder_attention_heads"),
        ("encoder_ffn_dim", "decoder_ffn_dim"),
    ):
        if whole(config, encoder, where) != whole(config, decoder, where):
            raise CheckpointError(
                f"{where}: {encoder} ({config[encoder]}) and {decoder} ({config[decoder]}) must be equal in tolka"
            )
    for key in ("encoder_layers", "decoder_layers", "encoder_ffn_dim"):
        if whole(config, key, where) == 0:
            raise CheckpointError(f"{where}: {key} (0) must be at least 1")
    activation = config.get("activation_function", "gelu")
    if not isinstance(activation, str) or activation not in _ACTIVATIONS:
        raise CheckpointError(
            f"{where}: activation_function ({activation!r:.80}) must be one of {', '.join(_ACTIVATIONS)}"
        )
    flags = {"share_encoder_decoder_embeddings": True, "tie_word_embeddings": True, "scale_embedding": False}
    share, tie, scale = (_flag(config, key, default, where) for key, default in flags.items())
    try:
        return TransformerConfig(
            d_model=whole(config, "d_model", where),
            heads=whole(config, "encoder_attention_heads", where),
            d_ff=whole(config, "encoder_ffn_dim", where),
            layers=whole(config, "encoder_layers", where),
            decoder_layers=whole(config, "decoder_layers", where),
            norm="post",
            activation=_ACTIVATIONS[activation],
            positions="sinusoidal_halves",
            scale_embeddings=scale,
            output_bias=True,
            share_embeddings=_SHARING[share, tie],
            dropout=_rate(config, "dropout", where),
            attention_dropout=_rate(config, "attention_dropout", where),
            activation_dropout=_rate(config, "activation_dropout", where),
        )
    except ConfigError as error:
        raise CheckpointError(f"{where}: {error}") from None


def config_of(
    model: TransformerOptions, sizes: tuple[int, int], longest: int, places: tuple[int, int, int]
) -> dict[str, Any]:
    """Return the `config.json` of a model. model: resolved. longest: subwords of a source, `</s>` included.

    sizes: of Marian's source and target vocabulary. places: ids of `</s>`, `<unk>` and `<pad>` in the target's.
    ConfigError, with the setting, for what Marian cannot express.
    """
    check_expressible(model)
    share, tie = next(flags for flags, sharing in _SHARING.items() if sharing == model.share_embeddings)
    share = share and tie
    eos, _, pad = places
    return {
        "architectures": ["MarianMTModel"],
        "model_type": MODEL_TYPE,
        "is_encoder_decoder": True,
        "vocab_size": sizes[0],
        "decoder_vocab_size": sizes[1],
        "d_model": model.d_model,
        "encoder_layers": model.layers,
        "decoder_layers": model.decoder_layers,
        "encoder_attention_heads": model.heads,
        "decoder_attention_heads": model.heads,
        "encoder_ffn_dim": model.inner_width,
        "decoder_ffn_dim": model.inner_width,
        "activation_function": model.activation,
        "dropout": model.dropout,
        "attention_dropout": model.attention_dropout,
        "activation_dropout": model.activation_dropout,
        "encoder_layerdrop": 0.0,
        "decoder_layerdrop": 0.0,
        "init_std": 0.02,
        "scale_embedding": model.scale_embeddings,
        "static_position_embeddings": True,
        "max_position_embeddings": max(512, longest),
        "share_encoder_decoder_embeddings": share,
        "tie_word_embeddings": tie,
        "pad_token_id": pad,
        "eos_token_id": eos,
        "forced_eos_token_id": eos,
        "decoder_start_token_id": pad,
        "bos_token_id": None,
        "use_cache": True,
    }


def check_expressible(model: TransformerOptions) -> None:
    """Raise ConfigError, with the settings that would fit, for options that Marian's architecture does not have."""
    allowed: dict[str, tuple[Any, ...]] = {
        "norm": ("post",),
        "normalization": ("layernorm",),
        "activation": tuple(dict.fromkeys(_ACTIVATIONS.values())),
        "positions": ("sinusoidal_halves",),
        "d_v": (0, model.key_width),
        "share_embeddings": tuple(_SHARING.values()),
    }
    wrong = [
        f"model.{key}={getattr(model, key)} (it has {' or '.join(map(str, values[-1:] if key == 'd_v' else values))})"
        for key, values in allowed.items()
        if getattr(model, key) not in values
    ]
    if wrong:
        raise ConfigError(
            f"Hugging Face's Marian has no {', '.join(wrong)}: train with model=transformer_marian, which fits"
        )


def tensor_names(layers: int, decoder_layers: int) -> dict[str, list[str]]:
    """Return, for each of our tensors in the layers, Marian's, which are one below the other in ours."""
    names: dict[str, list[str]] = {}
    for side, count in (("encoder", layers), ("decoder", decoder_layers)):
        for number in range(count):
            ours, theirs = f"{side}.{number}", f"model.{side}.layers.{number}"
            parts = {
                "attention.query_key_value": [f"self_attn.{part}_proj" for part in "qkv"],
                "attention.output": ["self_attn.out_proj"],
                "around_attention.norm": ["self_attn_layer_norm"],
                "feedforward.inner": ["fc1"],
                "feedforward.outer": ["fc2"],
                "around_feedforward.norm": ["final_layer_norm"],
            }
            if side == "decoder":
                parts |= {
                    "cross.query": ["encoder_attn.q_proj"],
                    "cross.key_value": [f"encoder_attn.{part}_proj" for part in "kv"],
                    "cross.output": ["encoder_attn.out_proj"],
                    "around_cross.norm": ["encoder_attn_layer_norm"],
                }
            for part, fused in parts.items():
                for kind in ("weight", "bias"):
                    names[f"{ours}.{part}.{kind}"] = [f"{theirs}.{name}.{kind}" for name in fused]
    return names


def shapes_of(model: TransformerOptions, sizes: tuple[int, int]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of Marian's tensors in the layers, and of embeddings and bias. sizes: of its vocabularies."""
    width, inner = model.d_model, model.inner_width
    shapes: dict[str, tuple[int, ...]] = {}
    for fused in tensor_names(model.layers, model.decoder_layers or model.layers).values():
        for name in fused:
            outputs = inner if ".fc1." in name else width
            inputs = inner if ".fc2." in name else width
            is_matrix = name.endswith("weight") and "layer_norm" not in name
            shapes[name] = (outputs, inputs) if is_matrix else (outputs,)
    source, target = (sizes[0], width), (sizes[1], width)
    return {**shapes, SHARED: source, SOURCE: source, TARGET: target, OUTPUT: target, BIAS: (1, sizes[1])}


def whole(config: Mapping[str, Any], key: str, where: str) -> int:
    """Return a whole number of a `config.json`; CheckpointError if it is missing or something else."""
    value = config.get(key)
    if type(value) is not int or value < 0:
        raise CheckpointError(f"{where}: {key} ({value!r:.80}) must be a whole number")
    return value


def _flag(config: Mapping[str, Any], key: str, default: bool, where: str) -> bool:
    value = config.get(key, default)
    if not isinstance(value, bool):
        raise CheckpointError(f"{where}: {key} ({value!r:.80}) must be true or false")
    return value


def _rate(config: Mapping[str, Any], key: str, where: str) -> float:
    value = config.get(key, 0.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise CheckpointError(f"{where}: {key} ({value!r:.80}) must be a number, at least 0 and below 1")
    return float(value)
