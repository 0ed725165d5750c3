"""Hugging Face's Marian and tolka's Transformer: which options, tensors and subwords of one are which of the other.

Marian (Junczys-Dowmunt et al. 2018) in `transformers`: post-norm, positions as sinusoids in halves, biases everywhere,
and `final_logits_bias` on the logits. The decoder starts from the row of `<pad>`, which is our BOS. The layout of a
folder is that of Helsinki-NLP's models (Tiedemann and Thottingal 2020), as `convert_marian_to_pytorch.py` of
`transformers` writes it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tolka.data.batch import PAD
from tolka.errors import CheckpointError, ConfigError
from tolka.formats.huggingface.family import (
    CONFIG,
    FAMILIES,
    GENERATION_CONFIG,
    LANGUAGE,
    TOKENIZER_CONFIG,
    Family,
    Foreign,
    flag,
    rate,
    whole,
)
from tolka.formats.huggingface.folder import ModelFolder
from tolka.model_directory.read import SavedModel
from tolka.model_directory.settings import character_form, direction_of
from tolka.models.options import ModelConfig
from tolka.models.transformer.config import TransformerConfig
from tolka.models.transformer.options import TransformerOptions
from tolka.nn.positions import sinusoids
from tolka.system.surrogates import is_utf8, printable
from tolka.text.direction import Direction
from tolka.tokenizer.character_rules import with_rules
from tolka.tokenizer.coders import processor_of
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.tokenizer.vocabulary import Vocabulary

VOCAB, TARGET_VOCAB, SOURCE_SPM, TARGET_SPM = "vocab.json", "target_vocab.json", "source.spm", "target.spm"
SHARED, SOURCE, TARGET = "model.shared.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
OUTPUT, BIAS = "lm_head.weight", "final_logits_bias"
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
_ACTIVATIONS = {"swish": "swish", "silu": "swish", "relu": "relu", "gelu": "gelu"}
# (share_encoder_decoder_embeddings, tie_word_embeddings) -> model.share_embeddings. Whether embeddings are shared
# although none are tied depends on the version of transformers: such a model goes out with copies, as none.
_SHARING = {
    (True, True): "all",
    (True, False): "source_target",
    (False, True): "target_output",
    (False, False): "none",
}
# model.share_embeddings -> our embeddings, and the names under which theirs may have each matrix.
_MATRICES: dict[str, dict[str, tuple[str, ...]]] = {
    "all": {"target_embedding.weight": (SHARED, SOURCE, TARGET, OUTPUT)},
    "source_target": {"target_embedding.weight": (SHARED, SOURCE, TARGET), "output_embedding.weight": (OUTPUT,)},
    "target_output": {"source_embedding.weight": (SOURCE,), "target_embedding.weight": (TARGET, OUTPUT)},
    "none": {
        "source_embedding.weight": (SOURCE,),
        "target_embedding.weight": (TARGET,),
        "output_embedding.weight": (OUTPUT,),
    },
}
# Settings of BART's family that older folders have, and that Marian's models never set.
_ABSENT = {
    "normalize_before": "pre-norm",
    "normalize_embedding": "a norm",
    "add_final_layer_norm": "norm",
}
_FEWEST_POSITIONS = 8  # below, hardly any sentence fits that could be compared
_NEVER = -30.0  # bias of the logit of our <pad>, which Marian does not have: exp(-30) adds nothing to a softmax
_SAME_POSITIONS = 2e-3  # greatest difference from the sinusoids that rounding to half precision makes
_BEAM = 5  # as mt-translate has it by default


@FAMILIES.register("marian")
class Marian(Family):
    """MarianMTModel, as of OPUS-MT."""

    NAME = "Marian"
    MODEL, TOKENIZER = "MarianMTModel", "MarianTokenizer"
    TOKENIZER_FILES = SOURCE_SPM, TARGET_SPM, VOCAB, TARGET_VOCAB
    TOKENIZER_KEYS = "source_lang", "target_lang", "separate_vocabs"

    def read(self, folder: ModelFolder, config: Mapping[str, Any], about: Mapping[str, Any]) -> Foreign:
        where = str(folder.path / CONFIG)
        options = options_of(config, where)
        tokenizer = _tokenizer(folder, config, bool(about.get("separate_vocabs")))
        if options.share_embeddings in ("all", "source_target") and not tokenizer.shared:
            raise CheckpointError(f"{where}: embeddings are shared, but {TOKENIZER_CONFIG} has separate vocabularies")
        positions = whole(config, "max_position_embeddings", where)
        if positions < _FEWEST_POSITIONS:
            raise CheckpointError(
                f"{where}: max_position_embeddings ({positions}) must be at least {_FEWEST_POSITIONS}, for a sentence"
            )
        return Foreign(self, folder, config, about, options, tokenizer, positions - 1, _direction(about))

    def weights(self, foreign: Foreign) -> dict[str, Tensor]:
        options, tokenizer, path = foreign.options, foreign.tokenizer, foreign.folder.path
        assert isinstance(options, TransformerOptions)
        sizes = tokenizer.source_size - 1, tokenizer.target_size - 1
        matrices = _MATRICES[options.share_embeddings]
        shapes = shapes_of(options, sizes) | dict.fromkeys(POSITIONS, (foreign.longest + 1, options.d_model))
        if not any(SHARED in names for names in matrices.values()):
            del shapes[SHARED]
        theirs = foreign.folder.weights(shapes, {BIAS, *POSITIONS, OUTPUT, SHARED, SOURCE, TARGET})
        _check_positions(theirs, path)
        weights = {
            ours: torch.cat([theirs[name] for name in fused]) if len(fused) > 1 else theirs[fused[0]]
            for ours, fused in tensor_names(options.layers, options.decoder_layers).items()
        }
        source, target = tokenizer.vocabularies[0], tokenizer.vocabularies[-1]
        for ours, names in matrices.items():
            vocabulary = source if ours.startswith("source") else target
            weights[ours] = _in_our_order(_only_one(theirs, names, path), vocabulary)
        weights["output_bias"] = _in_our_order(theirs.get(BIAS, torch.zeros(1, sizes[1]))[0], target)
        weights["output_bias"][PAD] = _NEVER
        return weights

    def files(self, saved: SavedModel, options: ModelConfig) -> dict[str, Any]:
        if not isinstance(options, TransformerOptions):
            raise ConfigError(
                f"Hugging Face's Marian is a Transformer, and {saved.folder} is model.name={vars(options)['name']}: "
                "train with model=transformer_marian, which fits"
            )
        vocabularies = saved.tokenizer.vocabularies
        sizes = len(vocabularies[0].subwords) - 1, len(vocabularies[-1].subwords) - 1
        config = config_of(options, sizes, saved.sources.longest + 1, vocabularies[-1].places)
        files = {CONFIG: config, GENERATION_CONFIG: _generation(config)}
        return {**files, **_tokenizer_files(saved, config["max_position_embeddings"])}

    def tensors(self, saved: SavedModel, options: ModelConfig) -> dict[str, Tensor]:
        assert isinstance(options, TransformerOptions)
        weights, vocabularies = saved.model.state_dict(), saved.tokenizer.vocabularies
        found: dict[str, Tensor] = {}
        for name, fused in tensor_names(options.layers, options.decoder_layers).items():
            found |= dict(zip(fused, weights[name].chunk(len(fused)), strict=True))
        source, target = (torch.tensor(each.ids_in_original_order()) for each in (vocabularies[0], vocabularies[-1]))
        sharing = options.share_embeddings
        for ours, (name, *_) in _MATRICES["none" if sharing == "source_target" else sharing].items():
            found[name] = weights[ours][source if ours.startswith("source") else target]
        bias = weights["output_bias"] if options.output_bias else torch.zeros(len(vocabularies[-1].subwords))
        found[BIAS] = bias[target][None]
        return found

    def compared_config(self, foreign: Foreign, positions: int) -> dict[str, Any]:
        assert isinstance(foreign.options, TransformerOptions)
        known = config_of(foreign.options, (0, 0), 0, (0, 0, 0))
        config = {key: value for key, value in foreign.config.items() if key in known}
        # transformers computes sinusoids row by row in Python: 10**7 of them take minutes.
        if foreign.folder.tensor_names().isdisjoint(POSITIONS):  # else they have as many rows as config.json says
            config["max_position_embeddings"] = min(foreign.longest + 1, positions)
        return config


def options_of(config: Mapping[str, Any], where: str) -> TransformerConfig:
    """Return the options of a `config.json`. where: its name, for messages; CheckpointError for what has none."""
    for key, meaning in _ABSENT.items():
        if config.get(key):
            raise CheckpointError(
                f"{where}: {key}={config[key]!r:.80} ({meaning}) is not a setting of Marian's architecture"
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
    share, tie, scale = (flag(config, key, default, where) for key, default in flags.items())
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
            dropout=rate(config, "dropout", where),
            attention_dropout=rate(config, "attention_dropout", where),
            activation_dropout=rate(config, "activation_dropout", where),
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
        "model_type": "marian",
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


def _direction(about: Mapping[str, Any]) -> Direction | None:
    """Return the languages that tokenizer_config.json names; None if they are no codes."""
    direction = Direction(*(str(about.get(key, "")) for key in ("source_lang", "target_lang")))
    return direction if all(map(LANGUAGE.fullmatch, direction)) else None


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


def _only_one(theirs: Mapping[str, Tensor], names: Sequence[str], path: Path) -> Tensor:
    """Return the matrix that has these names; CheckpointError if it has none of them, or matrices differ."""
    first, *others = [name for name in names if name in theirs] or [""]
    if not first:
        raise CheckpointError(f"{path} has no embeddings: {names[0]} is missing")
    for name in others:
        if not torch.equal(theirs[name], theirs[first]):
            raise CheckpointError(f"{path}: {name} and {first} differ, and by {CONFIG} they are one matrix")
    return theirs[first]


def _in_our_order(rows: Tensor, vocabulary: Vocabulary) -> Tensor:
    """Return (V + 1, ...) of Marian's (V, ...): rows in the order of our ids, that of <pad> zero."""
    ordered = rows.new_zeros(len(vocabulary.subwords), *rows.shape[1:])
    ordered[torch.tensor(vocabulary.ids_in_original_order())] = rows
    return ordered


def _check_positions(theirs: Mapping[str, Tensor], path: Path) -> None:
    """Raise CheckpointError for positions that are not the sinusoids."""
    for name in POSITIONS:
        if name in theirs:
            table = sinusoids(torch.arange(len(theirs[name])), theirs[name].size(1), halves=True)
            if not torch.allclose(theirs[name], table, rtol=0, atol=_SAME_POSITIONS):
                raise CheckpointError(f"{path}: {name} is trained, and Marian's positions are sinusoids")


def _tokenizer(folder: ModelFolder, config: Mapping[str, Any], separate: bool) -> Tokenizer:
    """Return the tokenizer; CheckpointError if files are missing, damaged, or do not fit config.json."""
    where = str(folder.path / CONFIG)
    eos, start = whole(config, "eos_token_id", where), whole(config, "decoder_start_token_id", where)
    if not separate and config.get("pad_token_id") != start:
        raise CheckpointError(
            f"{where}: decoder_start_token_id ({start}) must be pad_token_id ({config.get('pad_token_id')!r:.80}), "
            "from which Marian's decoder starts"
        )
    names = [VOCAB, TARGET_VOCAB] if separate else [VOCAB]
    size = whole(config, "vocab_size", where)
    target_size = size if config.get("decoder_vocab_size") is None else whole(config, "decoder_vocab_size", where)
    vocabularies = [_vocabulary(folder, name, sized) for name, sized in zip(names, (size, target_size), strict=False)]
    if not separate and size != target_size:
        raise CheckpointError(f"{where}: decoder_vocab_size ({target_size}) and vocab_size ({size}) must be equal")
    if vocabularies[-1].places[0] != eos or vocabularies[-1].places[2] != start:
        raise CheckpointError(
            f"{folder.path / names[-1]}: </s> and <pad> are {vocabularies[-1].places[0::2]}, and in {CONFIG} "
            f"(eos_token_id, decoder_start_token_id) they are {(eos, start)}"
        )
    models = [folder.bytes(name) for name in (SOURCE_SPM, TARGET_SPM)]
    for name, model in zip((SOURCE_SPM, TARGET_SPM), models, strict=True):
        try:
            processor_of(model)
        except RuntimeError:
            raise CheckpointError(f"{folder.path / name} is not a SentencePiece model") from None
    return Tokenizer(models, vocabularies)


def _vocabulary(folder: ModelFolder, name: str, size: int) -> Vocabulary:
    """Read a vocabulary: subword -> id, all ids from 0 on."""
    path, found = folder.path / name, folder.json(name)
    if not all(type(number) is int for number in found.values()) or sorted(found.values()) != list(range(len(found))):
        raise CheckpointError(f"{path} must number its {len(found)} subwords from 0 to {len(found) - 1}, each once")
    if broken := [subword for subword in found if not is_utf8(subword)]:
        raise CheckpointError(f"{path}: the subword {printable(broken[0]):.80} is not UTF-8: a lone surrogate is in it")
    if missing := [special for special in ("</s>", "<unk>", "<pad>") if special not in found]:
        raise CheckpointError(f"{path} lacks {' and '.join(missing)}")
    if len(found) != size:
        raise CheckpointError(f"{path} has {len(found)} subwords, and {CONFIG} says {size} (vocab_size)")
    return Vocabulary.of(sorted(found, key=found.__getitem__), found["</s>"], found["<unk>"], found["<pad>"])


def _generation(config: dict[str, Any]) -> dict[str, Any]:
    """Return the `generation_config.json`: our beam, and never `<pad>`."""
    keys = ("pad_token_id", "eos_token_id", "forced_eos_token_id", "decoder_start_token_id")
    own = {"bad_words_ids": [[config["pad_token_id"]]], "num_beams": _BEAM, "max_length": 512}
    return {**{key: config[key] for key in keys}, **own}


def _tokenizer_files(saved: SavedModel, longest: int) -> dict[str, Any]:
    """Return the SentencePiece models and the vocabularies, in Marian's order."""
    models, vocabularies = saved.tokenizer.models, saved.tokenizer.vocabularies
    source, target = direction_of(saved.config)
    form = character_form(saved.config)
    files: dict[str, Any] = {
        SOURCE_SPM: with_rules(models[0], form.source, source),
        TARGET_SPM: with_rules(models[-1], form.target, target),
    }
    for name, vocabulary in zip((VOCAB, TARGET_VOCAB), vocabularies, strict=False):
        order = vocabulary.ids_in_original_order()
        special = dict(zip(vocabulary.places, ("</s>", "<unk>", "<pad>"), strict=True))
        files[name] = {special.get(place) or vocabulary.subwords[number]: place for place, number in enumerate(order)}
        if len(files[name]) < len(order):
            raise CheckpointError(f"{saved.folder}: a subword is twice in the vocabulary, which {name} cannot have")
    files[TOKENIZER_CONFIG] = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": source,
        "target_lang": target,
        "separate_vocabs": len(vocabularies) > 1,
        "model_max_length": longest,
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "pad_token": "<pad>",
        "clean_up_tokenization_spaces": False,
    }
    return files
