"""Marian's options and tensors, and tolka's Transformer: which of one are which of the other.

Marian (marian-dev: src/models/transformer.h) has matrices transposed and vectors as (1, n), and its decoder starts from
zeros. Its pre-norm normalises the queries of self-attention but neither keys nor values, so that only post-norm is the
same in both.
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from tolka.errors import CheckpointError, ConfigError
from tolka.formats.huggingface.bart_layers import IN_LAYER, refuse_others
from tolka.formats.huggingface.family import whole_number
from tolka.models.transformer.config import TransformerConfig
from tolka.models.transformer.options import TransformerOptions

BIAS, _OUTPUT = "decoder_ff_logit_out_b", "decoder_ff_logit_out_W"
TRANSPOSED = BIAS, _OUTPUT
"""Their tensors that have a column, not a row, for each subword."""
_SHARED = {"target_embedding.weight": "Wemb", "output_bias": BIAS}
_SEPARATE = {"source_embedding.weight": "encoder_Wemb", "target_embedding.weight": "decoder_Wemb", "output_bias": BIAS}
_UNTIED = {"output_embedding.weight": _OUTPUT}
OF_VOCABULARY = {
    "all": _SHARED,
    "source_target": _SHARED | _UNTIED,
    "target_output": _SEPARATE,
    "none": _SEPARATE | _UNTIED,
}
"""model.share_embeddings -> our tensors with a row for each subword, and theirs."""
_TIES = {"all": "tied-embeddings-all", "source_target": "tied-embeddings-src", "target_output": "tied-embeddings"}
_SIZES = {
    "d_model": "dim-emb",
    "heads": "transformer-heads",
    "d_ff": "transformer-dim-ffn",
    "layers": "enc-depth",
    "decoder_layers": "dec-depth",
}
# What neither names nor shapes of tensors show -> Marian's default, and other values that tolka has.
_FORM: dict[str, tuple[str | bool, ...]] = {
    "type": ("transformer",),
    "transformer-preprocess": ("", "d"),
    "transformer-postprocess": ("dan", "an"),
    "transformer-ffn-activation": ("swish", "relu"),
    "transformer-decoder-autoreg": ("self-attention", "rnn"),
    "dec-cell": ("gru", "ssru"),  # where that is rnn
    "right-left": (False,),  # whether the target is read backwards
}
_KINDS, _NORM_KINDS = {"weight": "W", "bias": "b"}, {"weight": "scale", "bias": "bias"}
# Our layers -> theirs, which ours has stacked in one matrix.
_PARTS = {
    "attention.query_key_value": "self_{}q self_{}k self_{}v",
    "attention.output": "self_{}o",
    "around_attention.norm": "self_Wo_ln_{}",
    "ssru.input": "rnn_{}",
    "ssru.forget": "rnn_{}f",
    "cross.query": "context_{}q",
    "cross.key_value": "context_{}k context_{}v",
    "cross.output": "context_{}o",
    "around_cross.norm": "context_Wo_ln_{}",
    "feedforward.inner": "ffn_{}1",
    "feedforward.outer": "ffn_{}2",
    "around_feedforward.norm": "ffn_ffn_ln_{}",
}


def read_options(options: Mapping[str, Any], where: str) -> TransformerConfig:
    """Return a model's options; CheckpointError for what tolka's Transformer does not have. where: for messages."""
    form = {key: options.get(key, values[0]) for key, values in _FORM.items()}
    is_ssru = form["transformer-decoder-autoreg"] == "rnn"
    for key, values in {**_FORM, "dec-cell": ("ssru",) if is_ssru else (form["dec-cell"],)}.items():
        if form[key] not in values:
            raise CheckpointError(f"{where}: {key} ({form[key]!r:.60}) must be {' or '.join(map(repr, values))}")
    sizes: dict[str, Any] = {ours: whole_number(options, theirs, where) for ours, theirs in _SIZES.items()}
    tied = {key for key in _TIES.values() if options.get(key) is True}
    sharing = next((ours for ours, theirs in _TIES.items() if theirs in tied), "none")
    try:
        return TransformerConfig(
            **sizes,
            norm="post",
            decoder="ssru" if is_ssru else "attention",
            activation=form["transformer-ffn-activation"],
            positions="sinusoidal_marian",
            decoder_start="zero",
            output_bias=True,
            share_embeddings="all" if {"tied-embeddings", "tied-embeddings-src"} <= tied else sharing,
        )
    except ConfigError as error:
        raise CheckpointError(f"{where}: {error}") from None


def written_options(model: TransformerOptions) -> dict[str, Any]:
    """Return the options that `read_options` reads; ConfigError for what Marian does not have. model: resolved."""
    allowed: dict[str, tuple[Any, ...]] = {
        "norm": ("post",),
        "decoder": ("attention", "ssru"),
        "activation": ("swish", "relu"),
        "positions": ("sinusoidal_marian", "sinusoidal_halves"),
        "share_embeddings": tuple(OF_VOCABULARY),
        "scale_embeddings": (True,),
        "decoder_start": ("zero", "bos"),
    }
    refuse_others("Marian", model, allowed, "train with model=transformer_student, which fits")
    return {
        **{key: values[0] for key, values in _FORM.items()},
        **{theirs: getattr(model, ours) for ours, theirs in _SIZES.items()},
        **{theirs: ours == model.share_embeddings for ours, theirs in _TIES.items()},
        "transformer-ffn-activation": model.activation,
        "transformer-decoder-autoreg": "rnn" if model.decoder == "ssru" else "self-attention",
        "dec-cell": "ssru",
    }


def layer_tensors(weights: Mapping[str, Tensor], model: TransformerOptions) -> dict[str, Tensor]:
    """Return views of our weights in the layers, as Marian names and shapes them. model: resolved."""
    views = {}
    for name, weight in weights.items():
        if found := IN_LAYER.fullmatch(name):
            side, number, part, kind = found.groups()
            theirs = _PARTS[part].split()
            if part == "around_attention.norm" and side == "decoder" and model.decoder == "ssru":
                theirs = ["rnn_ffn_ln_{}"]
            kind = _NORM_KINDS[kind] if part.endswith("norm") else _KINDS[kind]
            for each, view in zip(theirs, weight.chunk(len(theirs)), strict=True):
                views[f"{side}_l{int(number) + 1}_{each.format(kind)}"] = view.T if view.ndim == 2 else view[None]
    return views
