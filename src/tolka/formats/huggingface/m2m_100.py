"""Hugging Face's M2M-100 and NLLB-200, and tolka's Transformer with tags of languages.

M2M-100 (Fan et al. 2021) and NLLB-200 (NLLB Team 2022) are one architecture in `transformers`, M2M100: pre-norm with a
norm at the end of each stack, fairseq's sinusoids, biases in the layers, one embedding for both sides and, as a rule,
the output. The tag of the source's language stands before the source; the decoder reads `</s>`, and then the tag of
the target's language. The two differ in their tokenizers.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from tolka.errors import CheckpointError, ConfigError
from tolka.formats.huggingface import bart_layers as bart
from tolka.formats.huggingface.family import (
    CONFIG,
    FAMILIES,
    GENERATION_CONFIG,
    TOKENIZER_CONFIG,
    Family,
    Fill,
    Foreign,
    boolean,
    whole_number,
)
from tolka.formats.huggingface.folder import ModelFolder
from tolka.formats.huggingface.m2m_100_tokenizer import SPECIAL_TOKENS, SPM, VOCAB, m2m_100_files, read_m2m_100
from tolka.formats.huggingface.nllb_tokenizer import TOKENIZER_JSON, nllb_files, read_nllb, tokenizer_json
from tolka.model_directory.read import SavedModel
from tolka.model_directory.settings import direction_of
from tolka.models.options import ModelConfig
from tolka.models.transformer.options import TransformerOptions
from tolka.nn.positions import FAIRSEQ_OFFSET
from tolka.text.direction import Direction
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.tokenizer.vocabulary import Vocabulary

POSITIONS = ("model.encoder.embed_positions.weights", "model.decoder.embed_positions.weights")
_MOST_ROWS = 2_000_000  # of embeddings


class _M2M100Layers(Family):
    """What M2M-100 and NLLB-200 share: all but the tokenizer."""

    MODEL = "M2M100ForConditionalGeneration"
    read_tokenizer: "ClassVar[staticmethod[[ModelFolder, int, Mapping[str, Any]], Tokenizer]]"
    """Reads the tokenizer of a folder, of so many rows of the embedding; CheckpointError if it does not fit."""
    tokenizer_files: "ClassVar[staticmethod[[SavedModel, Vocabulary], dict[str, Any]]]"
    """Returns its files: name -> bytes, or the object of a JSON file. ConfigError if the family has others."""

    def read(self, folder: ModelFolder, config: Mapping[str, Any], about: Mapping[str, Any]) -> Foreign:
        where = str(folder.path / CONFIG)
        tied = boolean(config, "tie_word_embeddings", True, where)
        options = bart.read_options(
            config,
            where,
            "relu",
            norm="pre",
            positions="sinusoidal_fairseq",
            decoder_start="eos",
            scale_embeddings=boolean(config, "scale_embedding", True, where),
            # Untied, they are three matrices in transformers 5, and two in older versions, which come in as copies.
            share_embeddings="all" if tied else "none",
        )
        size = whole_number(config, "vocab_size", where)
        # Rows without a subword get names: not as many as a config.json may claim.
        if size > _MOST_ROWS:
            raise CheckpointError(f"{where}: vocab_size ({size}) must be at most {_MOST_ROWS}")
        tokenizer = self.read_tokenizer(folder, size, about)
        for key, number in _special_ids(tokenizer.vocabularies[0]).items():
            if config.get(key, number) != number:
                raise CheckpointError(
                    f"{where}: {key} ({config[key]!r:.80}) must be {number}, as its vocabulary has it"
                )
        longest = whole_number(config, "max_position_embeddings", where) - 2  # for the tag and </s>
        named = Direction(*(str(about.get(key) or "") for key in ("src_lang", "tgt_lang")))
        direction = named if set(named) <= {*tokenizer.languages} else None
        return Foreign(self, folder, config, about, options, tokenizer, longest, direction)

    def weights(self, foreign: Foreign) -> Fill:
        options, path = foreign.options, foreign.folder.path
        assert isinstance(options, TransformerOptions)
        size = foreign.tokenizer.source_size
        table = (foreign.longest + 2 + FAIRSEQ_OFFSET, options.d_model)
        # Only old folders have the sinusoids; each version writes a shared matrix under some of its names.
        shapes = bart.shapes_of(options, (size, size), shared=True) | dict.fromkeys(POSITIONS, table)
        theirs = foreign.folder.weights(shapes, {*POSITIONS, bart.OUTPUT, bart.SHARED, bart.SOURCE, bart.TARGET})
        if options.share_embeddings == "none" and bart.SHARED in theirs:
            # Older versions of transformers have one matrix for both sides, though the output has its own.
            theirs = dict.fromkeys((bart.SOURCE, bart.TARGET), theirs[bart.SHARED]) | theirs
        vocabularies = foreign.tokenizer.vocabularies
        return lambda ours: bart.fill_layers(ours, theirs, options, vocabularies, path)

    def files(self, saved: SavedModel, options: ModelConfig) -> dict[str, Any]:
        if not isinstance(options, TransformerOptions) or not saved.tokenizer.languages:
            raise ConfigError(
                f"Hugging Face's {self.NAME} is a Transformer with tags of languages, and {saved.folder} is not"
            )
        allowed: dict[str, tuple[Any, ...]] = {
            "norm": ("pre",),
            "positions": ("sinusoidal_fairseq",),
            "decoder_start": ("eos",),
            "share_embeddings": ("all", "source_target", "none"),
            "output_bias": (False,),
        }
        advice = "start from a model of this family (run.init_from)"
        bart.refuse_others(f"{self.PROGRAM}{self.NAME}", options, allowed, advice)
        (vocabulary,) = saved.tokenizer.vocabularies
        files = self.tokenizer_files(saved, vocabulary)
        config = _config_of(options, vocabulary, saved.sources.longest + 2)
        generation = {**_special_ids(vocabulary), "num_beams": bart.BEAM, "max_length": 512}
        files[TOKENIZER_CONFIG] |= {"model_max_length": config["max_position_embeddings"]}
        for key, code in zip(("src_lang", "tgt_lang"), direction_of(saved.config), strict=True):
            files[TOKENIZER_CONFIG][key] = code if code in vocabulary.tags else None
        return {**files, CONFIG: config, GENERATION_CONFIG: generation}

    def tensors(self, saved: SavedModel, options: ModelConfig) -> dict[str, Tensor]:
        assert isinstance(options, TransformerOptions)
        sharing = "all" if options.share_embeddings == "all" else "none"
        return bart.their_tensors(saved.model.state_dict(), sharing, saved.tokenizer.vocabularies)

    def compared_config(self, foreign: Foreign, positions: int) -> dict[str, Any]:
        assert isinstance(foreign.options, TransformerOptions)
        known = _config_of(foreign.options, foreign.tokenizer.vocabularies[0], positions)
        return {key: value for key, value in foreign.config.items() if key in known}


@FAMILIES.register("m2m_100")
class M2M100(_M2M100Layers):
    """M2M-100, whose vocab.json numbers the subwords."""

    NAME = "M2M-100"
    TOKENIZER = "M2M100Tokenizer"
    TOKENIZER_FILES = VOCAB, SPM, SPECIAL_TOKENS
    TOKENIZER_KEYS = "language_codes", "num_madeup_words"
    read_tokenizer = staticmethod(read_m2m_100)
    tokenizer_files = staticmethod(m2m_100_files)

    def read(self, folder: ModelFolder, config: Mapping[str, Any], about: Mapping[str, Any]) -> Foreign:
        if about.get("tokenizer_class") == "SMALL100Tokenizer":
            raise CheckpointError(
                f"{folder.path} is a SMaLL-100, which has the target's tag before the source, and a tokenizer of its "
                "own code: only M2M-100 and NLLB-200 can be imported"
            )
        # tokenizer_config.json is missing in some folders: only M2M-100 has a vocabulary beside its subwords.
        if not folder.has(VOCAB):
            return Nllb().read(folder, config, about)
        return super().read(folder, config, about)


@FAMILIES.register("m2m_100/NllbTokenizer")
@FAMILIES.register("m2m_100/NllbTokenizerFast")  # its name before transformers 5
class Nllb(_M2M100Layers):
    """NLLB-200, whose subwords are numbered as its SentencePiece model has them."""

    NAME = "NLLB-200"
    TOKENIZER = "NllbTokenizer"
    TOKENIZER_FILES = SPM, TOKENIZER_JSON, SPECIAL_TOKENS
    read_tokenizer = staticmethod(read_nllb)
    tokenizer_files = staticmethod(nllb_files)

    def compared_files(self, foreign: Foreign) -> dict[str, Any]:
        # Of the SentencePiece model alone, transformers 5 makes a tokenizer with <mask> before the tags.
        if foreign.folder.has(TOKENIZER_JSON):
            return {}
        return {TOKENIZER_JSON: tokenizer_json(foreign.tokenizer.models[0], foreign.tokenizer.vocabularies[0])}


def _special_ids(vocabulary: Vocabulary) -> dict[str, int]:
    """Return the ids of special tokens, as config.json names them."""
    eos, _, pad, bos = vocabulary.places
    return {"bos_token_id": bos, "pad_token_id": pad, "eos_token_id": eos, "decoder_start_token_id": eos}


def _config_of(model: TransformerOptions, vocabulary: Vocabulary, longest: int) -> dict[str, Any]:
    """Return the `config.json` of a model. longest: tokens of a source, tag and `</s>` included."""
    return {
        "architectures": [_M2M100Layers.MODEL],
        "model_type": "m2m_100",
        "vocab_size": len(vocabulary.subwords),
        **bart.layer_settings(model),
        "max_position_embeddings": max(1024, longest),
        "tie_word_embeddings": model.share_embeddings == "all",
        **_special_ids(vocabulary),
    }
