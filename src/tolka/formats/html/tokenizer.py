"""What src/tolka/page/ needs of a tokenizer, of the form of characters and of the languages, as JSON."""

from base64 import b64encode
from collections.abc import Iterable
from typing import Any

from tolka.text.direction import Direction
from tolka.tokenizer.language_tags import NO_TAGS
from tolka.tokenizer.sentencepiece_model import model_proto
from tolka.tokenizer.special_tokens import UNK
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.tokenizer.vocabulary import Vocabulary


def about_tokenizer(tokenizer: Tokenizer, directions: Iterable[Direction]) -> dict[str, Any]:
    """Return what tokenizer.js needs: the SentencePiece models, the vocabularies beside them, tags of directions."""
    return {
        "models": [_about_model(content) for content in tokenizer.models],
        "vocabularies": [_about_vocabulary(each) for each in tokenizer.listed],
        "directions": {each.code: _about_direction(tokenizer, each) for each in directions},
        "withoutText": tokenizer.without_text,
    }


def _about_model(content: bytes) -> dict[str, Any]:
    model = model_proto(content)
    spec = model.trainer_spec
    return {
        "type": spec.ModelType.Name(spec.model_type).lower(),
        "pieces": [piece.piece for piece in model.pieces],
        "scores": [piece.score for piece in model.pieces],
        "types": "".join(str(piece.type) for piece in model.pieces),
        "byteFallback": spec.byte_fallback,
        "unknownSurface": spec.unk_surface,
        "normalizer": _about_normalizer(model.normalizer_spec, spec.treat_whitespace_as_suffix),
        "denormalizer": _about_normalizer(model.denormalizer_spec, False)
        if model.denormalizer_spec.precompiled_charsmap
        else None,
    }


def _about_normalizer(spec: Any, blank_is_suffix: bool) -> dict[str, Any]:
    return {
        "charsmap": b64encode(spec.precompiled_charsmap).decode(),
        "addBlank": spec.add_dummy_prefix,
        "removeExtraBlanks": spec.remove_extra_whitespaces,
        "escapeBlanks": spec.escape_whitespaces,
        "blankIsSuffix": blank_is_suffix,
    }


def _about_vocabulary(vocabulary: Vocabulary) -> dict[str, Any]:
    never = vocabulary.never_text
    ids = [number for number, name in enumerate(vocabulary.subwords) if number <= UNK or name in never]
    return {"subwords": vocabulary.subwords, "neverText": ids}


def _about_direction(tokenizer: Tokenizer, direction: Direction) -> dict[str, Any]:
    tags = tokenizer.tags(direction) if direction.is_known else NO_TAGS
    typed = sorted(tokenizer.replaced_tags(direction).values())
    return {"source": tags.source, "target": tags.target, "typed": typed}
