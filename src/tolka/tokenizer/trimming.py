"""A tokenizer of many languages without the subwords that some of them do not use; the others stay in their order."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from tolka.text.scripts import script_of, script_test
from tolka.tokenizer.merges import merge
from tolka.tokenizer.sentencepiece_model import model_proto
from tolka.tokenizer.special_tokens import BLANK, UNK
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.tokenizer.vocabulary import Vocabulary


def trim_tokenizer(
    tokenizer: Tokenizer, languages: Collection[str], texts: Iterable[str]
) -> tuple[Tokenizer, list[int]]:
    """Return a tokenizer of one model and one vocabulary with the subwords of some languages, and their old ids.

    Kept are all subwords in the scripts of the languages, with signs and digits. If there are texts, of those with
    several characters only the ones that spell them are kept, and what BPE merges these of: so the texts have the same
    subwords as before. languages: their tags are kept; for one that has no tag yet, all those of its script.
    """
    (content,), (vocabulary,) = tokenizer.models, tokenizer.listed
    proto = model_proto(content)
    normal = {piece.piece: piece.score for piece in proto.pieces if piece.type == proto.SentencePiece.NORMAL}
    belongs = script_test(languages)
    kept = {name for name in normal if belongs(name.replace(BLANK, ""))}
    # What the vocabulary lacks is unknown, and remains so.
    unknown = normal.keys() - {*vocabulary.subwords}
    spelling = {number for text in texts for row in tokenizer.encode_source([text]) for number in row if number > UNK}
    if used := {*tokenizer.source_pieces(sorted(spelling))}:
        kept = {name for name in kept if len(name) == 1} | used
        # All that BPE makes on the way to a subword, and its characters.
        for name in used | unknown if proto.trainer_spec.model_type == proto.trainer_spec.BPE else ():
            kept.update(name)
            merge(name, normal, kept.add)
    kept |= unknown
    tags = _tags(vocabulary, languages)
    # What stands for no text is left out, but for the tags and a <mask>; and what is not the model's stays.
    left_out = {name for name in vocabulary.never_text if not name.startswith("<")} - {*tags.values()}
    left_out |= normal.keys() - kept
    ids = [number for number, name in enumerate(vocabulary.subwords) if number <= UNK or name not in left_out]
    pieces = [piece for piece in proto.pieces if piece.piece in kept or piece.piece not in normal]
    del proto.pieces[:]
    proto.pieces.extend(pieces)
    proto.trainer_spec.vocab_size = len(pieces)
    subwords = tuple(vocabulary.subwords[number] for number in ids)
    return Tokenizer([bytes(proto.SerializeToString())], [replace(vocabulary, subwords=subwords, tags=tags)]), ids


def _tags(vocabulary: Vocabulary, languages: Collection[str]) -> dict[str, str]:
    """Return the tags of languages, and of all that are written as those that have none yet."""
    new = {script_of(code) for code in languages if code not in vocabulary.tags}
    return {code: tag for code, tag in vocabulary.tags.items() if code in languages or script_of(code) in new}
