"""Tokenizer of Hugging Face's M2M-100: one SentencePiece model, and fairseq's order of ids in vocab.json.

The subwords follow `<s>`, `<pad>`, `</s>` and `<unk>`, and the tags of languages (`__de__`) follow these. Embeddings
may have more rows than there are subwords. `nllb_tokenizer.py` shares most of it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tolka.errors import CheckpointError, ConfigError
from tolka.formats.huggingface.family import CONFIG, TOKENIZER_CONFIG
from tolka.formats.huggingface.folder import ModelFolder, check_subwords
from tolka.model_directory.read import SavedModel
from tolka.model_directory.settings import character_form
from tolka.tokenizer.character_rules import with_rules
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.tokenizer.vocabulary import Vocabulary

SPM, VOCAB, SPECIAL_TOKENS = "sentencepiece.bpe.model", "vocab.json", "special_tokens_map.json"
FAIRSEQ_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
NAMED_SPECIAL = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
_FAIRSEQ_PLACES = (2, 3, 1, 0)  # the ids of </s>, <unk>, <pad> and <s>, as a `Vocabulary` has its places
_TAG = re.compile(r"__(.+)__")
# The languages in the order of their ids, by language_codes of transformers' M2M100Tokenizer.
_ORDERS = {
    "m2m100": (
        "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu "
        "hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt "
        "ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"
    ),
    "wmt21": "en ha is ja cs ru zh de",
}


def read_m2m_100(folder: ModelFolder, size: int, about: Mapping[str, Any]) -> Tokenizer:
    """Read M2M-100's tokenizer; CheckpointError if files are missing, damaged or do not fit. size: rows of embeddings.

    about: of tokenizer_config.json.
    """
    path, names = folder.path / VOCAB, folder.vocabulary(VOCAB)
    if tuple(names[: len(FAIRSEQ_SPECIAL)]) != FAIRSEQ_SPECIAL:
        raise CheckpointError(f"{path} must begin with {', '.join(FAIRSEQ_SPECIAL)}, and begins with {names[:4]!r:.80}")
    codes = str(about.get("language_codes", "m2m100"))
    if codes not in _ORDERS:
        raise CheckpointError(f"{folder.path / TOKENIZER_CONFIG}: language_codes ({codes:.80}) must be m2m100 or wmt21")
    # transformers numbers them in this order, whatever is listed.
    tags = [f"__{code}__" for code in _ORDERS[codes].split()]
    listed = [each for each in listed_tags(folder, about) if _TAG.fullmatch(each)]
    tags += listed[len(tags) :]
    model = folder.sentencepiece_model(SPM)
    return fill_up(folder, model, [*names, *tags], {tag.strip("_"): tag for tag in tags}, size)


def m2m_100_files(saved: SavedModel, vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the files of M2M-100's tokenizer: name -> bytes, or the object of a JSON file.

    ConfigError for a vocabulary of another form.
    """
    tags = list(vocabulary.tags.values())
    if not all(_TAG.fullmatch(tag) for tag in tags):
        raise ConfigError(f"M2M-100's tags are like __de__, and those of {saved.folder} like {tags[0]}")
    names = fairseq_order(vocabulary)
    first = names.index(tags[0])
    last = first + len(tags)
    if names[first:last] != tags or not {*names[last:]} <= vocabulary.never_text:
        raise ConfigError(
            f"M2M-100's tags follow all of its subwords in one block, and {saved.folder} has others, as "
            "tokenizer.extend adds them: export it for CTranslate2"
        )
    special = {**NAMED_SPECIAL, "additional_special_tokens": tags}
    about = {"tokenizer_class": "M2M100Tokenizer", "num_madeup_words": len(names) - last, **special}
    ids = {name: number for number, name in enumerate(names[:first])}
    return {SPM: sentencepiece_with_rules(saved), VOCAB: ids, SPECIAL_TOKENS: special, TOKENIZER_CONFIG: about}


def fill_up(folder: ModelFolder, model: bytes, names: Sequence[str], tags: Mapping[str, str], size: int) -> Tokenizer:
    """Return the tokenizer of these subwords, filled up to `size` rows; CheckpointError if they are damaged."""
    if not tags:
        raise CheckpointError(
            f"{folder.path} names no tags of languages: they are in {SPECIAL_TOKENS} or {TOKENIZER_CONFIG} "
            "(additional_special_tokens)"
        )
    check_subwords(tags.values(), folder.path)
    if len(names) > size:
        raise CheckpointError(f"{folder.path / CONFIG}: vocab_size ({size}) is too small for its subwords and tags")
    rows = [*names, *map(filler, range(len(names), size))]
    if len(set(rows)) < len(rows):
        raise CheckpointError(f"{folder.path}: a subword is twice in the vocabulary")
    return Tokenizer([model], [Vocabulary.of(rows, _FAIRSEQ_PLACES, tags)])


def filler(number: int) -> str:
    """Return the name of a row without a subword, as fairseq has them."""
    return f"madeupword{number:04d}"


def listed_tags(folder: ModelFolder, about: Mapping[str, Any]) -> list[str]:
    """Return the tags in the order of their ids, as the folder lists them under one of several names."""
    listed = folder.json(SPECIAL_TOKENS) if folder.has(SPECIAL_TOKENS) else {}
    for values in (about, listed):
        for key in ("extra_special_tokens", "additional_special_tokens"):
            if isinstance(found := values.get(key), list):
                # A token may be an object with its content.
                names = [each.get("content") if isinstance(each, dict) else each for each in found]
                if names and all(isinstance(name, str) for name in names):
                    return [str(name) for name in names]
    return []


def fairseq_order(vocabulary: Vocabulary) -> list[str]:
    """Return the subwords in fairseq's order; ConfigError if they are of another program."""
    if vocabulary.places != _FAIRSEQ_PLACES:
        raise ConfigError("its vocabulary does not begin as fairseq's, with <s>, <pad>, </s> and <unk>")
    return [vocabulary.subwords[number] for number in vocabulary.ids_in_original_order()]


def sentencepiece_with_rules(saved: SavedModel) -> bytes:
    """Return the SentencePiece model, which must do itself what cleaning did to the text before."""
    return with_rules(saved.tokenizer.models[0], character_form(saved.config).source, "")
