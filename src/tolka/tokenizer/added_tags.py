"""Tags of languages that a tokenizer does not have yet, added after its subwords: no other id changes."""

from collections.abc import Sequence
from dataclasses import replace

from tolka.errors import ConfigError
from tolka.tokenizer.sentencepiece_model import model_proto
from tolka.tokenizer.tags import FORMS
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.tokenizer.vocabulary import Vocabulary


def add_tags(tokenizer: Tokenizer, languages: Sequence[str], form: str) -> Tokenizer:
    """Return the tokenizer with a tag for each of these languages; itself if it has them all.

    form: of FORMS, for a tokenizer that has no tags; others keep theirs. ConfigError where a subword is spelt as a tag.
    """
    new = [language for language in languages if language not in tokenizer.languages]
    if not new:
        return tokenizer
    if tokenizer.listed:
        return Tokenizer(tokenizer.models, [_with_tags(each, new) for each in tokenizer.listed])
    written = FORMS[tokenizer.tag_form if tokenizer.languages else form]
    return Tokenizer([_with_symbols(model, [written.format(code) for code in new]) for model in tokenizer.models])


def _with_symbols(content: bytes, symbols: Sequence[str]) -> bytes:
    """Return a SentencePiece model with control symbols, which no text is spelt with, and which are no text."""
    model = model_proto(content)
    if taken := {each.piece for each in model.pieces}.intersection(symbols):
        raise ConfigError(
            f"the tokenizer has {min(taken)} as a subword, and it is to be a language's tag: leave it out of "
            "tokenizer.symbols, or choose another tokenizer.tags"
        )
    for symbol in symbols:
        model.pieces.add(piece=symbol, score=0.0, type=model.SentencePiece.CONTROL)
    model.trainer_spec.vocab_size = len(model.pieces)
    return bytes(model.SerializeToString())


def _with_tags(vocabulary: Vocabulary, languages: Sequence[str]) -> Vocabulary:
    """Return a vocabulary with tags written as those that it has: NLLB-200's are codes, M2M-100's are __en__."""
    known_code, known_tag = next(iter(vocabulary.tags.items()))
    tags = {code: known_tag.replace(known_code, code) for code in languages}
    return replace(vocabulary, subwords=(*vocabulary.subwords, *tags.values()), tags={**vocabulary.tags, **tags})
