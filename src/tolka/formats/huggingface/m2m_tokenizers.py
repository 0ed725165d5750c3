"""Tokenizers of Hugging Face's M2M-100 and NLLB-200: one SentencePiece model, and fairseq's order of ids.

M2M-100 numbers its subwords in vocab.json, after `<s>`, `<pad>`, `</s>` and `<unk>`; the tags of languages (`__de__`)
follow. NLLB-200 has the same special tokens, the subwords of its SentencePiece model in their order, and then the tags
(`deu_Latn`) and `<mask>`. Embeddings may have more rows than there are subwords.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tolka.errors import CheckpointError, ConfigError
from tolka.formats.huggingface.family import CONFIG, TOKENIZER_CONFIG
from tolka.formats.huggingface.folder import ModelFolder, check_subwords
from tolka.formats.huggingface.nllb_json import (
    FAIRSEQ_PLACES,
    FAIRSEQ_SPECIAL,
    MASK,
    SPM,
    TOKENIZER_JSON,
    added_tokens,
    in_fairseq_order,
    is_in_published_order,
    numbered_subwords,
    sentencepiece_of,
    subwords_in_fairseq_order,
    tokenizer_json,
)
from tolka.model_directory.read import SavedModel
from tolka.model_directory.settings import character_form
from tolka.tokenizer.character_rules import with_rules
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.tokenizer.vocabulary import Vocabulary

VOCAB, SPECIAL_TOKENS = "vocab.json", "special_tokens_map.json"
M2M100_FILES = VOCAB, SPM, SPECIAL_TOKENS
NLLB_FILES = SPM, TOKENIZER_JSON, SPECIAL_TOKENS
MOST_ROWS = 2_000_000
"""Ceiling on the rows of embeddings."""
_M2M100_TAG = re.compile(r"__(.+)__")
# The languages in the order of their ids, by language_codes of transformers' M2M100Tokenizer.
_M2M100_ORDERS = {
    "m2m100": (
        "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu "
        "hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt "
        "ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"
    ),
    "wmt21": "en ha is ja cs ru zh de",
}


def read_m2m100(folder: ModelFolder, size: int, about: Mapping[str, Any]) -> Tokenizer:
    """Read M2M-100's tokenizer; CheckpointError if files are missing, damaged or do not fit. size: rows of embeddings.

    about: of tokenizer_config.json.
    """
    path, ids = folder.path / VOCAB, folder.vocabulary(VOCAB)
    names = sorted(ids, key=ids.__getitem__)
    if tuple(names[: len(FAIRSEQ_SPECIAL)]) != FAIRSEQ_SPECIAL:
        raise CheckpointError(f"{path} must begin with {', '.join(FAIRSEQ_SPECIAL)}, and begins with {names[:4]!r:.80}")
    codes = str(about.get("language_codes", "m2m100"))
    if codes not in _M2M100_ORDERS:
        raise CheckpointError(f"{folder.path / TOKENIZER_CONFIG}: language_codes ({codes:.80}) must be m2m100 or wmt21")
    # transformers numbers them in this order, whatever is listed.
    tags = [f"__{code}__" for code in _M2M100_ORDERS[codes].split()]
    listed = [each for each in _listed_tags(folder, about) if _M2M100_TAG.fullmatch(each)]
    if listed and listed[: len(tags)] != tags:
        wrong = next(number for number, tag in enumerate(tags) if listed[number : number + 1] != [tag])
        raise CheckpointError(
            f"{folder.path} lists other tags than M2M-100 has (language_codes={codes}): number {wrong + 1} must be "
            f"{tags[wrong]}; copy {SPECIAL_TOKENS} and {TOKENIZER_CONFIG} again"
        )
    tags += listed[len(tags) :]
    languages = {tag.strip("_"): tag for tag in tags}
    model = folder.sentencepiece_model(SPM)
    return _tokenizer(folder, model, [*names, *tags], languages, size)


def read_nllb(folder: ModelFolder, size: int, about: Mapping[str, Any]) -> Tokenizer:
    """Read NLLB-200's tokenizer; CheckpointError if files are missing, damaged or do not fit. size: rows of embeddings.

    about: of tokenizer_config.json.
    """
    # SentencePiece has <unk>, <s> and </s>; fairseq's order has <pad> besides.
    has_model, has_ids = folder.has(SPM), bool(about.get("added_tokens_decoder"))
    is_needed = not has_model or (not has_ids and folder.has(TOKENIZER_JSON))
    content = folder.json(TOKENIZER_JSON) if is_needed else {}
    model = folder.sentencepiece_model(SPM) if has_model else sentencepiece_of(content, folder.path / TOKENIZER_JSON)
    pieces = subwords_in_fairseq_order(model)
    # tokenizer.json numbers them itself: what was added to a model follows its tags.
    names = dict(enumerate(pieces)) if has_model else numbered_subwords(content, folder.path / TOKENIZER_JSON, size)
    added = added_tokens(about, content, folder.path)
    if not added and content:
        raise CheckpointError(f"{folder.path / TOKENIZER_JSON} has no ids of the tags (added_tokens): copy it again")
    if not added:
        listed = [each for each in _listed_tags(folder, about) if each not in (*FAIRSEQ_SPECIAL, MASK)]
        if listed != sorted(listed):
            raise CheckpointError(
                f"{folder.path} lists tags in another order than NLLB-200's, the alphabet's, and no file has their "
                f"ids: copy {SPECIAL_TOKENS} again, or {TOKENIZER_JSON}, which has them"
            )
        added = {len(pieces) + number: tag for number, tag in enumerate([*listed, MASK])}
    tags = {number: name for number, name in added.items() if name not in (*FAIRSEQ_SPECIAL, MASK)}
    for number, name in sorted(added.items()):
        if names.get(number, name) != name:
            raise CheckpointError(
                f"{folder.path}: {name!r:.60} has the id {number}, which is that of {names[number]!r:.60}"
            )
    if added and max(added) >= size:
        raise CheckpointError(
            f"{folder.path / CONFIG}: vocab_size ({size}) is too small for {added[max(added)]!r:.60}, whose id is "
            f"{max(added)}"
        )
    names |= added
    rows = [names.get(number) or _filler(number) for number in range(max(names) + 1)]
    return _tokenizer(folder, model, rows, {tag: tag for _, tag in sorted(tags.items())}, size)


def _tokenizer(
    folder: ModelFolder, model: bytes, names: Sequence[str], tags: Mapping[str, str], size: int
) -> Tokenizer:
    """Return the tokenizer of these subwords, filled up to `size` rows; CheckpointError if they are damaged."""
    if not tags:
        raise CheckpointError(
            f"{folder.path} names no tags of languages: they are in {SPECIAL_TOKENS} or {TOKENIZER_CONFIG} "
            "(additional_special_tokens)"
        )
    check_subwords(tags.values(), folder.path)
    if len(names) > size:
        raise CheckpointError(
            f"{folder.path} has {len(names)} subwords and tags, and {CONFIG} says {size} (vocab_size)"
        )
    rows = [*names, *map(_filler, range(len(names), size))]
    if len(set(rows)) < len(rows):
        raise CheckpointError(f"{folder.path}: a subword is twice in the vocabulary")
    return Tokenizer([model], [Vocabulary.of(rows, FAIRSEQ_PLACES, tags)])


def _filler(number: int) -> str:
    """Return the name of a row without a subword, as fairseq has them."""
    return f"madeupword{number:04d}"


def _listed_tags(folder: ModelFolder, about: Mapping[str, Any]) -> list[str]:
    """Return the tags in the order of their ids, as the folder lists them under one of several names."""
    listed = folder.json(SPECIAL_TOKENS) if folder.has(SPECIAL_TOKENS) else {}
    for values in (about, listed):
        for key in ("extra_special_tokens", "additional_special_tokens"):
            # A token may be an object with its content.
            listed_here = values.get(key)
            if not isinstance(listed_here, list):
                continue
            names = [each.get("content") if isinstance(each, dict) else each for each in listed_here]
            if names and all(isinstance(name, str) for name in names):
                return [str(name) for name in names]
    return []


def m2m100_files(saved: SavedModel, vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the files of M2M-100's tokenizer: name -> bytes, or the object of a JSON file.

    ConfigError for a vocabulary of another form.
    """
    tags = list(vocabulary.tags.values())
    if not all(_M2M100_TAG.fullmatch(tag) for tag in tags):
        raise ConfigError(f"M2M-100's tags are like __de__, and those of {saved.folder} like {tags[0]}")
    names = in_fairseq_order(vocabulary)
    first = names.index(tags[0])
    last = first + len(tags)
    if names[first:last] != tags or not {*names[last:]} <= vocabulary.never_text:
        raise ConfigError(
            f"M2M-100's tags follow all of its subwords in one block, and {saved.folder} has others, as "
            "tokenizer.extend adds them: export it for CTranslate2"
        )
    return {
        SPM: _with_rules(saved),
        VOCAB: {name: number for number, name in enumerate(names[:first])},
        SPECIAL_TOKENS: {**_special_tokens(), "additional_special_tokens": tags},
        TOKENIZER_CONFIG: {
            "tokenizer_class": "M2M100Tokenizer",
            "num_madeup_words": len(names) - last,
            "additional_special_tokens": tags,
            **_special_tokens(),
        },
    }


def nllb_files(saved: SavedModel, vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the files of NLLB-200's tokenizer: name -> bytes, or the object of a JSON file.

    ConfigError for a vocabulary of another form.
    """
    model, tags = _with_rules(saved), list(vocabulary.tags.values())
    # By the SentencePiece model alone, all would be numbered in that order.
    return {
        **({SPM: model} if is_in_published_order(model, vocabulary) else {}),
        TOKENIZER_JSON: tokenizer_json(model, vocabulary),
        SPECIAL_TOKENS: {**_special_tokens(), "mask_token": MASK, "additional_special_tokens": tags},
        TOKENIZER_CONFIG: {
            "tokenizer_class": "NllbTokenizer",
            "extra_special_tokens": tags,
            "legacy_behaviour": False,
            "mask_token": MASK,
            **_special_tokens(),
        },
    }


def _special_tokens() -> dict[str, str]:
    return {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}


def _with_rules(saved: SavedModel) -> bytes:
    """Return the SentencePiece model, which must do itself what cleaning did to the text before."""
    return with_rules(saved.tokenizer.models[0], character_form(saved.config).source, "")
