"""Tokenizers of Hugging Face's Marian: two SentencePiece models, and vocabularies whose ids are not theirs."""

from collections.abc import Mapping
from typing import Any

from tolka.errors import CheckpointError
from tolka.formats.huggingface.family import CONFIG, TOKENIZER_CONFIG, whole_number
from tolka.formats.huggingface.folder import ModelFolder
from tolka.model_directory.read import SavedModel
from tolka.model_directory.settings import character_form, direction_of
from tolka.tokenizer.character_rules import with_rules
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.tokenizer.vocabulary import Vocabulary

VOCAB, TARGET_VOCAB, SOURCE_SPM, TARGET_SPM = "vocab.json", "target_vocab.json", "source.spm", "target.spm"
FILES = SOURCE_SPM, TARGET_SPM, VOCAB, TARGET_VOCAB


def read_tokenizer(folder: ModelFolder, config: Mapping[str, Any], separate: bool) -> Tokenizer:
    """Read the tokenizer of a folder; CheckpointError if files are missing, damaged, or do not fit config.json.

    separate: whether source and target have vocabularies of their own (separate_vocabs).
    """
    where = str(folder.path / CONFIG)
    eos, start = whole_number(config, "eos_token_id", where), whole_number(config, "decoder_start_token_id", where)
    # The decoder's first token is our <s>, and Marian's <pad> becomes it.
    if not separate and config.get("pad_token_id") != start:
        raise CheckpointError(
            f"{where}: decoder_start_token_id ({start}) must be pad_token_id ({config.get('pad_token_id')!r:.80}), "
            "from which Marian's decoder starts"
        )
    names = [VOCAB, TARGET_VOCAB] if separate else [VOCAB]
    size = whole_number(config, "vocab_size", where)
    target_size = (
        size if config.get("decoder_vocab_size") is None else whole_number(config, "decoder_vocab_size", where)
    )
    vocabularies = [_vocabulary(folder, name, sized) for name, sized in zip(names, (size, target_size), strict=False)]
    if not separate and size != target_size:
        raise CheckpointError(f"{where}: decoder_vocab_size ({target_size}) and vocab_size ({size}) must be equal")
    if vocabularies[-1].places[0] != eos or vocabularies[-1].places[2] != start:
        raise CheckpointError(
            f"{folder.path / names[-1]}: </s> and <pad> are {vocabularies[-1].places[0::2]}, and in {CONFIG} "
            f"(eos_token_id, decoder_start_token_id) they are {(eos, start)}"
        )
    return Tokenizer([folder.sentencepiece_model(name) for name in (SOURCE_SPM, TARGET_SPM)], vocabularies)


def _vocabulary(folder: ModelFolder, name: str, size: int) -> Vocabulary:
    """Read a vocabulary; CheckpointError if it does not fit. size: as config.json says."""
    path, ids = folder.path / name, folder.vocabulary(name)
    if missing := [special for special in ("</s>", "<unk>", "<pad>") if special not in ids]:
        raise CheckpointError(f"{path} lacks {' and '.join(missing)}")
    if len(ids) != size:
        raise CheckpointError(f"{path} has {len(ids)} subwords, and {CONFIG} says {size} (vocab_size)")
    return Vocabulary.of(sorted(ids, key=ids.__getitem__), (ids["</s>"], ids["<unk>"], ids["<pad>"]))


def tokenizer_files(saved: SavedModel, longest: int) -> dict[str, Any]:
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
        special = dict(zip(vocabulary.places, ("</s>", "<unk>", "<pad>"), strict=True))
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
