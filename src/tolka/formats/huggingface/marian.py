"""Hugging Face's Marian and tolka's Transformer: which options, tensors and subwords of one are which of the other.

Marian (Junczys-Dowmunt et al. 2018) in `transformers`: post-norm, positions as sinusoids in halves, biases everywhere,
and `final_logits_bias` on the logits. The decoder starts from the row of `<pad>`, which is our BOS. The layout of a
folder is that of Helsinki-NLP's models (Tiedemann and Thottingal 2020), as `convert_marian_to_pytorch.py` of
`transformers` writes it: two SentencePiece models, and vocabularies whose ids are not theirs.
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
    whole_number,
)
from tolka.formats.huggingface.folder import ModelFolder
from tolka.model_directory.read import SavedModel
from tolka.model_directory.settings import character_form, direction_of
from tolka.models.options import ModelConfig
from tolka.models.transformer.options import TransformerOptions
from tolka.text.direction import Direction
from tolka.tokenizer.character_rules import with_rules
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.tokenizer.vocabulary import Vocabulary

VOCAB, TARGET_VOCAB, SOURCE_SPM, TARGET_SPM = "vocab.json", "target_vocab.json", "source.spm", "target.spm"
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
_SPECIAL = ("</s>", "<unk>", "<pad>")
_NEVER = -30.0  # bias of the logit of our <pad>, which Marian does not have: exp(-30) adds nothing to a softmax


@FAMILIES.register("marian")
class Marian(Family):
    """MarianMTModel, as of OPUS-MT."""

    NAME = "Marian"
    MODEL, TOKENIZER = "MarianMTModel", "MarianTokenizer"
    TOKENIZER_FILES = SOURCE_SPM, TARGET_SPM, VOCAB, TARGET_VOCAB
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
        tokenizer = _read_tokenizer(folder, config, bool(about.get("separate_vocabs")))
        if options.share_embeddings in ("all", "source_target") and not tokenizer.shared:
            raise CheckpointError(f"{where}: embeddings are shared, but {TOKENIZER_CONFIG} has separate vocabularies")
        longest = whole_number(config, "max_position_embeddings", where) - 1  # one is that of </s>
        named = Direction(*(str(about.get(key, "")) for key in ("source_lang", "target_lang")))
        direction = named if all(map(LANGUAGE.fullmatch, named)) else None
        return Foreign(self, folder, config, about, options, tokenizer, longest, direction)

    def weights(self, foreign: Foreign) -> Fill:
        options, vocabularies, path = foreign.options, foreign.tokenizer.vocabularies, foreign.folder.path
        assert isinstance(options, TransformerOptions)
        sizes = foreign.tokenizer.source_size - 1, foreign.tokenizer.target_size - 1
        shapes = bart.shapes_of(options, sizes, foreign.tokenizer.shared) | dict.fromkeys(
            POSITIONS, (foreign.longest + 1, options.d_model)
        )
        shapes[BIAS] = (1, sizes[1])
        if not any(bart.SHARED in names for names in bart.MATRICES[options.share_embeddings].values()):
            del shapes[bart.SHARED]
        # transformers writes each matrix under some of its names, by its version; sinusoids need not be written.
        theirs = foreign.folder.weights(shapes, {BIAS, *POSITIONS, bart.OUTPUT, bart.SHARED, bart.SOURCE, bart.TARGET})

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
        keys = ("pad_token_id", "eos_token_id", "forced_eos_token_id", "decoder_start_token_id")
        never = {"bad_words_ids": [[config["pad_token_id"]]]}
        generation = {**{key: config[key] for key in keys}, **never, "num_beams": bart.BEAM, "max_length": 512}
        files = {CONFIG: config, GENERATION_CONFIG: generation}
        return {**files, **_tokenizer_files(saved, config["max_position_embeddings"])}

    def tensors(self, saved: SavedModel, options: ModelConfig) -> dict[str, Tensor]:
        assert isinstance(options, TransformerOptions)
        weights, vocabularies = saved.model.state_dict(), saved.tokenizer.vocabularies
        sharing = options.share_embeddings
        # Embeddings shared but not tied go out as copies; see _SHARING.
        tensors = bart.their_tensors(weights, "none" if sharing == "source_target" else sharing, vocabularies)
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
    allowed: dict[str, tuple[Any, ...]] = {
        "norm": ("post",),
        "positions": ("sinusoidal_halves",),
        "share_embeddings": tuple(_SHARING.values()),
        "decoder_start": ("bos",),
    }
    bart.refuse_others("Hugging Face's Marian", model, allowed, "train with model=transformer_marian, which fits")
    share, tie = next(flags for flags, sharing in _SHARING.items() if sharing == model.share_embeddings)
    share = share and tie  # see _SHARING
    eos, _, pad = places
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
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
    }


def _read_tokenizer(folder: ModelFolder, config: Mapping[str, Any], separate: bool) -> Tokenizer:
    """Read the tokenizer of a folder; CheckpointError if files are missing, damaged, or do not fit config.json.

    separate: whether source and target have vocabularies of their own (separate_vocabs).
    """
    where = str(folder.path / CONFIG)
    eos, start = whole_number(config, "eos_token_id", where), whole_number(config, "decoder_start_token_id", where)
    sizes = {VOCAB: "vocab_size"} | ({TARGET_VOCAB: "decoder_vocab_size"} if separate else {})
    vocabularies = [_vocabulary(folder, name, whole_number(config, key, where)) for name, key in sizes.items()]
    # The decoder's first token is our <s>, and Marian's <pad> becomes it.
    if vocabularies[-1].places[0] != eos or vocabularies[-1].places[2] != start:
        raise CheckpointError(
            f"{folder.path / [*sizes][-1]}: </s> and <pad> are {vocabularies[-1].places[0::2]}, and in {CONFIG} "
            f"(eos_token_id, decoder_start_token_id) they are {(eos, start)}"
        )
    return Tokenizer([folder.sentencepiece_model(name) for name in (SOURCE_SPM, TARGET_SPM)], vocabularies)


def _vocabulary(folder: ModelFolder, name: str, size: int) -> Vocabulary:
    """Read a vocabulary; CheckpointError if it does not fit. size: as config.json says."""
    path, subwords = folder.path / name, folder.vocabulary(name)
    if missing := [special for special in _SPECIAL if special not in subwords]:
        raise CheckpointError(f"{path} lacks {' and '.join(missing)}")
    if len(subwords) != size:
        raise CheckpointError(f"{path} has {len(subwords)} subwords, and {CONFIG} says {size} (vocab_size)")
    return Vocabulary.of(subwords, tuple(map(subwords.index, _SPECIAL)))


def _tokenizer_files(saved: SavedModel, longest: int) -> dict[str, Any]:
    """Return the tokenizer's files of a folder: name -> bytes, or the object of a JSON file. longest: in positions."""
    models, vocabularies = saved.tokenizer.models, saved.tokenizer.vocabularies
    source, target = direction_of(saved.config)
    form = character_form(saved.config)
    # MarianTokenizer gives SentencePiece the text as it comes: the model itself must do what cleaning did.
    files: dict[str, Any] = {
        SOURCE_SPM: with_rules(models[0], form.source, source),
        TARGET_SPM: with_rules(models[-1], form.target, target),
    }
    for name, vocabulary in zip((VOCAB, TARGET_VOCAB), vocabularies, strict=False):
        order = vocabulary.ids_in_original_order()
        special = dict(zip(vocabulary.places, _SPECIAL, strict=True))
        files[name] = {special.get(place) or vocabulary.subwords[number]: place for place, number in enumerate(order)}
        # A JSON object has each name once.
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
