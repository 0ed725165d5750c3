"""What src/tolka/page/ needs of a model: the tokenizer, characters and languages as JSON, and the weights as bytes."""

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, int8

from tolka.errors import ConfigError
from tolka.kernels.quantized import Int8Matrix
from tolka.models.options import ModelConfig
from tolka.models.rnn import RnnConfig
from tolka.models.rnn.options import OWN_CELLS
from tolka.models.transformer import TransformerConfig
from tolka.text.abbreviations import COMMON, RARE, abbreviation_before
from tolka.text.characters import CharacterForm
from tolka.text.direction import Direction
from tolka.text.scripts import is_known, plain_code, sentence_blank
from tolka.text.typography import letters_of_rule, own_rules
from tolka.tokenizer.language_tags import NO_TAGS
from tolka.tokenizer.sentencepiece_model import model_proto
from tolka.tokenizer.special_tokens import UNK
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.tokenizer.vocabulary import Vocabulary

DTYPES = ("int8", "fp32")
_ALIGNMENT = 16  # bytes, and values of a row: one turn of the kernels' loop takes as many
_SMALLEST_WIDTH = 32  # rows and columns of a matrix; below, int8 saves hardly anything
_SCALE = "_scale"  # ends the names of scales in a model directory in int8
_WORD = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}"  # \w, which is ASCII alone in JavaScript


def about_tokenizer(tokenizer: Tokenizer, directions: Iterable[Direction]) -> dict[str, Any]:
    """Return what tokenizer.js needs: the SentencePiece models, the vocabularies beside them, tags of directions."""
    return {
        "models": [_about_model(content) for content in tokenizer.models],
        "vocabularies": [_about_vocabulary(each) for each in tokenizer.listed],
        "directions": {each.code: _about_tags(tokenizer, each) for each in directions},
        "withoutText": tokenizer.without_text,
    }


def _about_model(content: bytes) -> dict[str, Any]:
    model = model_proto(content)
    spec, normalizer = model.trainer_spec, model.normalizer_spec
    undone = model.denormalizer_spec.precompiled_charsmap
    if undone or spec.treat_whitespace_as_suffix or not normalizer.escape_whitespaces:
        raise ConfigError(
            "a page cannot compute a SentencePiece model with denormalisation rules, or with blanks that are not ▁ at "
            "the beginning of words"
        )
    return {
        "type": spec.ModelType.Name(spec.model_type).lower(),
        "pieces": [piece.piece for piece in model.pieces],
        "scores": [float(f"{piece.score:.9g}") for piece in model.pieces],  # which is exact for 32 bits
        "types": "".join(str(piece.type) for piece in model.pieces),
        "byteFallback": spec.byte_fallback,
        "unknownSurface": spec.unk_surface,
        "normalizer": {
            "charsmap": b64encode(normalizer.precompiled_charsmap).decode(),
            "addBlank": normalizer.add_dummy_prefix,
            "removeExtraBlanks": normalizer.remove_extra_whitespaces,
        },
    }


def _about_vocabulary(vocabulary: Vocabulary) -> dict[str, Any]:
    never = vocabulary.never_text
    ids = [number for number, name in enumerate(vocabulary.subwords) if number <= UNK or name in never]
    return {"subwords": vocabulary.subwords, "neverText": ids}


def _about_tags(tokenizer: Tokenizer, direction: Direction) -> dict[str, Any]:
    tags = tokenizer.tags(direction) if direction.is_known else NO_TAGS
    return {"source": tags.source, "target": tags.target, "typed": [*tokenizer.replaced_tags(direction).values()]}


def about_characters(form: CharacterForm, directions: Iterable[Direction]) -> dict[str, Any]:
    """Return what characters.js needs to give a source text the form of the training text."""
    languages = {each.source for each in directions} if form.typography == "standard" else ()
    rules = {language: list(map(_about_rule, own_rules(language))) for language in sorted(languages)}
    keys = {key: getattr(form, key) != "keep" for key in ("unicode", "control", "blanks")}
    return {**keys, "typography": rules}


def _about_rule(rule: Mapping[str, str]) -> dict[str, Any]:
    """Return a rule of typography.yaml, with its pattern as JavaScript writes it."""
    where = re.sub(r"\\p\{([A-Z][a-z]{2,})\}", r"\\p{Script=\1}", rule.get("where", "{}")).replace("*+", "*")
    where = re.sub(r"(\[[^\]]*)?\\w", lambda match: match[1] + _WORD if match[1] else f"[{_WORD}]", where)
    return {"where": where, "letters": letters_of_rule(rule), "to": rule.get("to", "").replace("\\1", "$1")}


def about_splitter(directions: Iterable[Direction], split: str, max_length: int) -> dict[str, Any]:
    """Return what sentences.js needs. split: from `resolved_split`. max_length: subwords of the longest sentence."""
    languages = {each.code: _about_languages(each) for each in directions}
    return {"split": split, "maxLength": max_length, "directions": languages}


def _about_languages(direction: Direction) -> dict[str, Any]:
    code = plain_code(direction.source) or "en"
    abbreviation = abbreviation_before(code, (RARE, COMMON))
    blank = sentence_blank(direction.target) if is_known(direction.target) else None
    return {"language": code, "abbreviations": abbreviation and abbreviation.pattern, "blank": blank}


def check_expressible(options: ModelConfig, name: str) -> None:
    """Raise ConfigError for an architecture or a cell that the page's runtime does not compute. name: of the model."""
    cell = options.cell if isinstance(options, RnnConfig) else ""
    if type(options) not in (TransformerConfig, RnnConfig) or cell not in ("", *OWN_CELLS):
        raise ConfigError(
            f"{name}: a page cannot compute model={vars(options)['name']}{cell and f' with model.cell={cell}'}; it can "
            f"the Transformer with all of its options, and recurrent models with model.cell={', '.join(OWN_CELLS)}"
        )


def pack_weights(tensors: Mapping[str, Tensor], dtype: str) -> tuple[list[dict[str, Any]], bytes]:
    """Return where each tensor is, as model.js reads it, and the bytes of all of them.

    tensors: as in a model directory, where some may be in int8. dtype: of `DTYPES`, for matrices in fp32. Rows of
    matrices are filled with zeros to a multiple of 16 values.
    """
    listed, content = list[dict[str, Any]](), bytearray()

    def add(array: NDArray[Any]) -> int:
        if array.ndim == 2:
            array = np.pad(array, ((0, 0), (0, -array.shape[1] % _ALIGNMENT)))
        content.extend(bytes(-len(content) % _ALIGNMENT))
        offset = len(content)
        content.extend(array.astype(array.dtype.newbyteorder("<")).tobytes())
        return offset

    for name, tensor in tensors.items():
        if name.endswith(_SCALE) and name.removesuffix(_SCALE) in tensors:
            continue
        about: dict[str, Any] = {"name": name, "shape": list(tensor.shape), "dtype": "fp32"}
        if tensor.dtype == int8:
            matrix = Int8Matrix(tensor, tensors[name + _SCALE])
        elif dtype == "int8" and tensor.ndim == 2 and min(tensor.shape) >= _SMALLEST_WIDTH:
            matrix = Int8Matrix.of(tensor)
        else:
            listed.append({**about, "offset": add(tensor.numpy().astype(np.float32))})
            continue
        offset, scales = add(matrix.values.numpy()), add(matrix.scales.numpy().astype(np.float32))
        listed.append({**about, "dtype": "int8", "offset": offset, "scales": scales})
    return listed, bytes(content)
