"""Hugging Face's Marian and tolka's Transformer: which options, tensors and subwords of one are which of the other.

Marian (Junczys-Dowmunt et al. 2018) in `transformers`: post-norm, positions as sinusoids in halves, biases everywhere,
and `final_logits_bias` on the logits. The decoder starts from the row of `<pad>`, which is our BOS. The layout of a
folder is that of Helsinki-NLP's models (Tiedemann and Thottingal 2020), as `convert_marian_to_pytorch.py` of
`transformers` writes it.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from tolka.data.batch import PAD
from tolka.errors import CheckpointError, ConfigError
from tolka.formats.huggingface import bart_layers as bart
from tolka.formats.huggingface.family import (
    CONFIG,
    FAMILIES,
    GENERATION_CONFIG,
    LANGUAGE,
    TOKENIZER_CONFIG,
    Family,
    Fill,
    Foreign,
    boolean,
)
from tolka.formats.huggingface.folder import ModelFolder
from tolka.formats.huggingface.marian_tokenizer import FILES, read_tokenizer, tokenizer_files
from tolka.model_directory.read import SavedModel
from tolka.models.options import ModelConfig
from tolka.models.transformer.options import TransformerOptions
from tolka.text.direction import Direction

BIAS = "final_logits_bias"
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
# (share_encoder_decoder_embeddings, tie_word_embeddings) -> model.share_embeddings. Whether embeddings are shared
# although none are tied depends on the version of transformers: such a model goes out with copies, as none.
_SHARING = {
    (True, True): "all",
    (True, False): "source_target",
    (False, True): "target_output",
    (False, False): "none",
}
_NEVER = -30.0  # bias of the logit of our <pad>, which Marian does not have: exp(-30) adds nothing to a softmax


@FAMILIES.register("marian")
class Marian(Family):
    """MarianMTModel, as of OPUS-MT."""

    NAME = "Marian"
    MODEL, TOKENIZER = "MarianMTModel", "MarianTokenizer"
    TOKENIZER_FILES = FILES
    TOKENIZER_KEYS = "source_lang", "target_lang", "separate_vocabs"

    def read(self, folder: ModelFolder, config: Mapping[str, Any], about: Mapping[str, Any]) -> Foreign:
        where = str(folder.path / CONFIG)
        # The defaults of MarianConfig, which a config.json leaves out.
        flags = {"share_encoder_decoder_embeddings": True, "tie_word_embeddings": True, "scale_embedding": False}
        share, tie, scale = (boolean(config, key, default, where) for key, default in flags.items())
        own = {"norm": "post", "positions": "sinusoidal_halves", "output_bias": True}
        options = bart.read_options(
            config, where, "gelu", scale_embeddings=scale, share_embeddings=_SHARING[share, tie], **own
        )
        tokenizer = read_tokenizer(folder, config, bool(about.get("separate_vocabs")))
        if options.share_embeddings in ("all", "source_target") and not tokenizer.shared:
            raise CheckpointError(f"{where}: embeddings are shared, but {TOKENIZER_CONFIG} has separate vocabularies")
        longest = bart.read_positions(config, where) - 1  # one is that of </s>
        return Foreign(self, folder, config, about, options, tokenizer, longest, _direction(about))

    def weights(self, foreign: Foreign) -> Fill:
        options, vocabularies, path = foreign.options, foreign.tokenizer.vocabularies, foreign.folder.path
        assert isinstance(options, TransformerOptions)
        sizes = foreign.tokenizer.source_size - 1, foreign.tokenizer.target_size - 1
        shapes = bart.shapes_of(options, sizes) | dict.fromkeys(POSITIONS, (foreign.longest + 1, options.d_model))
        shapes[BIAS] = (1, sizes[1])
        if not any(bart.SHARED in names for names in bart.MATRICES[options.share_embeddings].values()):
            del shapes[bart.SHARED]
        # transformers writes each matrix under some of its names, by its version; sinusoids need not be written.
        theirs = foreign.folder.weights(shapes, {BIAS, *POSITIONS, bart.OUTPUT, bart.SHARED, bart.SOURCE, bart.TARGET})
        tables = {name: theirs[name]() for name in POSITIONS if name in theirs}
        bart.check_sinusoids(tables, "sinusoidal_halves", path, self.NAME)

        def fill(ours: Mapping[str, Tensor]) -> None:
            bart.fill_layers(ours, theirs, options, vocabularies, path)
            bias = theirs[BIAS]()[0] if BIAS in theirs else torch.zeros(sizes[1])
            bart.fill_rows(ours["output_bias"], bias, vocabularies[-1])
            ours["output_bias"][PAD] = _NEVER  # Marian's <pad> is our <s>: our <pad> has no row, and no probability

        return fill

    def files(self, saved: SavedModel, options: ModelConfig) -> dict[str, Any]:
        if not isinstance(options, TransformerOptions):
            raise ConfigError(
                f"Hugging Face's Marian is a Transformer, and {saved.folder} is model.name={vars(options)['name']}: "
                "train with model=transformer_marian, which fits"
            )
        if saved.tokenizer.languages and saved.tokenizer.tag_form != "source":
            raise ConfigError(
                f"Hugging Face's Marian has tags before the source alone, and {saved.folder} is not so: train with "
                "tokenizer.tags=source"
            )
        vocabularies = saved.tokenizer.vocabularies
        sizes = len(vocabularies[0].subwords) - 1, len(vocabularies[-1].subwords) - 1
        config = config_of(options, sizes, saved.sources.longest + 1, vocabularies[-1].places)
        files = {CONFIG: config, GENERATION_CONFIG: _generation(config)}
        return {**files, **tokenizer_files(saved, config["max_position_embeddings"])}

    def tensors(self, saved: SavedModel, options: ModelConfig) -> dict[str, Tensor]:
        assert isinstance(options, TransformerOptions)
        weights, vocabularies = saved.model.state_dict(), saved.tokenizer.vocabularies
        sharing = options.share_embeddings
        # Embeddings shared but not tied go out as copies; see _SHARING.
        tensors = bart.their_tensors(weights, options, "none" if sharing == "source_target" else sharing, vocabularies)
        target = torch.tensor(vocabularies[-1].ids_in_original_order())
        bias = weights["output_bias"] if options.output_bias else torch.zeros(len(vocabularies[-1].subwords))
        tensors[BIAS] = bias[target][None]
        return tensors

    def compared_config(self, foreign: Foreign, positions: int) -> dict[str, Any]:
        assert isinstance(foreign.options, TransformerOptions)
        known = config_of(foreign.options, (0, 0), 0, (0, 0, 0))
        config = {key: value for key, value in foreign.config.items() if key in known}
        # transformers computes sinusoids row by row in Python: 10**7 of them take minutes. Where the folder has them,
        # they have as many rows as config.json says.
        if foreign.folder.tensor_names().isdisjoint(POSITIONS):
            config["max_position_embeddings"] = min(foreign.longest + 1, positions)
        return config


def config_of(
    model: TransformerOptions, sizes: tuple[int, int], longest: int, places: tuple[int, ...]
) -> dict[str, Any]:
    """Return the `config.json` of a model. model: resolved. longest: subwords of a source, `</s>` included.

    sizes: of Marian's source and target vocabulary. places: ids of `</s>`, `<unk>` and `<pad>` in the target's.
    ConfigError, with the setting, for what Marian cannot express.
    """
    check_expressible(model)
    share, tie = next(flags for flags, sharing in _SHARING.items() if sharing == model.share_embeddings)
    share = share and tie  # see _SHARING
    eos, _, pad = places
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "vocab_size": sizes[0],
        "decoder_vocab_size": sizes[1],
        **bart.layer_settings(model),
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
        "activation": tuple(dict.fromkeys(bart.ACTIVATIONS.values())),
        "positions": ("sinusoidal_halves",),
        "d_v": (0, model.key_width),
        "share_embeddings": tuple(_SHARING.values()),
        "decoder_start": ("bos",),
    }
    bart.refuse_others("Marian", model, allowed, "train with model=transformer_marian, which fits")


def _direction(about: Mapping[str, Any]) -> Direction | None:
    """Return the direction that tokenizer_config.json names; None unless both are codes of languages."""
    direction = Direction(*(str(about.get(key, "")) for key in ("source_lang", "target_lang")))
    return direction if all(map(LANGUAGE.fullmatch, direction)) else None


def _generation(config: dict[str, Any]) -> dict[str, Any]:
    """Return the `generation_config.json`: our beam, and never `<pad>`."""
    keys = ("pad_token_id", "eos_token_id", "forced_eos_token_id", "decoder_start_token_id")
    own = {"bad_words_ids": [[config["pad_token_id"]]], "num_beams": bart.BEAM, "max_length": 512}
    return {**{key: config[key] for key in keys}, **own}
