"""Tokenizers of Hugging Face's M2M-100 and NLLB-200: one SentencePiece model, and fairseq's order of ids.

M2M-100 numbers its subwords in vocab.json, after `<s>`, `<pad>`, `</s>` and `<unk>`; the tags of languages (`__de__`)
follow. NLLB-200 has the same special tokens, the subwords of its SentencePiece model in their order, and then the tags
(`deu_Latn`) and `<mask>`. Embeddings may have more rows than there are subwords.
"""

import base64
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from tolka.errors import CheckpointError, ConfigError
from tolka.formats.huggingface.family import CONFIG, TOKENIZER_CONFIG
from tolka.formats.huggingface.folder import ModelFolder
from tolka.model_directory.read import SavedModel
from tolka.model_directory.settings import character_form
from tolka.system.surrogates import is_utf8, printable
from tolka.tokenizer.character_rules import with_rules
from tolka.tokenizer.coders import processor_of
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.tokenizer.vocabulary import Vocabulary

VOCAB, SPM, TOKENIZER_JSON, SPECIAL_TOKENS = (
    "vocab.json",
    "sentencepiece.bpe.model",
    "tokenizer.json",
    "special_tokens_map.json",
)
M2M100_FILES = VOCAB, SPM, SPECIAL_TOKENS
NLLB_FILES = SPM, TOKENIZER_JSON, SPECIAL_TOKENS
SMALL100 = "SMALL100Tokenizer"
_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
MOST_ROWS = 2_000_000
"""Ceiling on the rows of embeddings."""
_MOST_DIGITS = 9  # of an id
_PLACES = (2, 3, 1, 0)  # of </s>, <unk>, <pad> and <s>
_MASK = "<mask>"
_M2M100_TAG = re.compile(r"__(.+)__")
_BLANK = "\N{LOWER ONE EIGHTH BLOCK}"  # SentencePiece's word boundary


def read_m2m100(folder: ModelFolder, size: int, about: Mapping[str, Any]) -> Tokenizer:
    """Read M2M-100's tokenizer; CheckpointError if files are missing, damaged or do not fit. size: rows of embeddings.

    about: of tokenizer_config.json.
    """
    path, ids = folder.path / VOCAB, folder.json(VOCAB)
    # By exact type: True and 1.0 are equal to 1.
    if not all(type(number) is int for number in ids.values()) or sorted(ids.values()) != list(range(len(ids))):
        raise CheckpointError(f"{path} must number its {len(ids)} subwords from 0 to {len(ids) - 1}, each once")
    names = sorted(ids, key=ids.__getitem__)
    if tuple(names[: len(_SPECIAL)]) != _SPECIAL:
        raise CheckpointError(f"{path} must begin with {', '.join(_SPECIAL)}, and begins with {names[:4]!r:.80}")
    tags = [each for each in _listed_tags(folder, about) if _M2M100_TAG.fullmatch(each)]
    languages = {tag.strip("_"): tag for tag in tags}
    model = folder.bytes(SPM)
    _pieces(model, folder)  # checked
    return _tokenizer(folder, model, [*names, *tags], languages, size)


def read_nllb(folder: ModelFolder, size: int, about: Mapping[str, Any]) -> Tokenizer:
    """Read NLLB-200's tokenizer; CheckpointError if files are missing, damaged or do not fit. size: rows of embeddings.

    about: of tokenizer_config.json.
    """
    # SentencePiece has <unk>, <s> and </s>; fairseq's order has <pad> besides.
    model = folder.bytes(SPM) if folder.has(SPM) else _model_of(folder)
    names = [*_SPECIAL, *_pieces(model, folder)]
    added = _added_tokens(folder, about)
    if not added:
        listed = [each for each in _listed_tags(folder, about) if each not in (*_SPECIAL, _MASK)]
        added = {len(names) + number: tag for number, tag in enumerate([*listed, _MASK])}
    tags = {number: name for number, name in added.items() if name not in (*_SPECIAL, _MASK)}
    for number, name in sorted(added.items()):
        if number < len(names) and names[number] != name:
            raise CheckpointError(
                f"{folder.path}: {name!r:.60} has the id {number}, which is that of {names[number]!r:.60}"
            )
    if added and max(added) >= size:
        raise CheckpointError(
            f"{folder.path / CONFIG}: vocab_size ({size}) is too small for {added[max(added)]!r:.60}, whose id is "
            f"{max(added)}"
        )
    names += [added.get(number, _filler(number)) for number in range(len(names), max(added, default=0) + 1)]
    return _tokenizer(folder, model, names, {tag: tag for _, tag in sorted(tags.items())}, size)


def _tokenizer(
    folder: ModelFolder, model: bytes, names: Sequence[str], tags: Mapping[str, str], size: int
) -> Tokenizer:
    """Return the tokenizer of these subwords, filled up to `size` rows; CheckpointError if they are damaged."""
    if not tags:
        raise CheckpointError(
            f"{folder.path} names no tags of languages: they are in {SPECIAL_TOKENS} or {TOKENIZER_CONFIG} "
            "(additional_special_tokens)"
        )
    if broken := [name for name in names if not is_utf8(name)]:
        raise CheckpointError(
            f"{folder.path}: the subword {printable(broken[0]):.80} is not UTF-8: a lone surrogate is in it"
        )
    if len(names) > size:
        raise CheckpointError(
            f"{folder.path} has {len(names)} subwords and tags, and {CONFIG} says {size} (vocab_size)"
        )
    rows = [*names, *map(_filler, range(len(names), size))]
    if len(set(rows)) < len(rows):
        raise CheckpointError(f"{folder.path}: a subword is twice in the vocabulary")
    return Tokenizer([model], [Vocabulary.of(rows, _PLACES, tags)])


def _filler(number: int) -> str:
    """Return the name of a row without a subword, as fairseq has them."""
    return f"madeupword{number:04d}"


def _pieces(model: bytes, folder: ModelFolder) -> list[str]:
    """Return the subwords of a SentencePiece model without its special tokens; CheckpointError if it is damaged."""
    try:
        processor = processor_of(model)
    except RuntimeError:
        raise CheckpointError(f"{folder.path / SPM} is not a SentencePiece model") from None
    names = (str(processor.id_to_piece(number)) for number in range(processor.get_piece_size()))
    return [name for name in names if name not in _SPECIAL]


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


def _added_tokens(folder: ModelFolder, about: Mapping[str, Any]) -> dict[int, str]:
    """Return id -> token for those that are added to the subwords; empty if neither file tells ids."""
    decoder = about.get("added_tokens_decoder")
    if not isinstance(decoder, dict) and folder.has(TOKENIZER_JSON):
        added = folder.json(TOKENIZER_JSON).get("added_tokens")
        decoder = {each.get("id"): each for each in added if isinstance(each, dict)} if isinstance(added, list) else {}
    tokens = dict[int, str]()
    for number, token in (decoder or {}).items():
        content = token.get("content") if isinstance(token, dict) else None
        if not str(number).isdecimal() or len(str(number)) > _MOST_DIGITS or not isinstance(content, str):
            raise CheckpointError(
                f"{folder.path}: the added token {number!r:.20} ({content!r:.60}) has no id or no text"
            )
        tokens[int(number)] = content
    return tokens


def m2m100_files(saved: SavedModel, vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the files of M2M-100's tokenizer: name -> bytes, or the object of a JSON file.

    ConfigError for a vocabulary of another form.
    """
    tags = list(vocabulary.tags.values())
    if not all(_M2M100_TAG.fullmatch(tag) for tag in tags):
        raise ConfigError(f"M2M-100's tags are like __de__, and those of {saved.folder} like {tags[0]}")
    names = _in_original_order(vocabulary)
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
    return {
        SPM: model,
        TOKENIZER_JSON: tokenizer_json(model, vocabulary),
        SPECIAL_TOKENS: {**_special_tokens(), "mask_token": _MASK, "additional_special_tokens": tags},
        TOKENIZER_CONFIG: {
            "tokenizer_class": "NllbTokenizer",
            "extra_special_tokens": tags,
            "legacy_behaviour": False,
            "mask_token": _MASK,
            **_special_tokens(),
        },
    }


def tokenizer_json(model: bytes, vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the tokenizer.json of NLLB-200 that does what a SentencePiece model of BPE does, with tags and `<mask>`.

    ConfigError for a vocabulary of another form.
    """
    names, proto = _in_original_order(vocabulary), _proto(model)
    subwords = [*_SPECIAL, *(each.piece for each in proto.pieces if each.piece not in _SPECIAL)]
    if names[: len(subwords)] != subwords:
        raise ConfigError(
            "NLLB-200 numbers its subwords as its SentencePiece model does, and this model has others after its tags, "
            "as tokenizer.extend adds them: export it for CTranslate2"
        )
    added = {number: name for number, name in enumerate(names) if name in {*vocabulary.tags.values(), _MASK}}
    tag, ids = next(iter(vocabulary.tags.values())), {name: number for number, name in enumerate(subwords)}
    blanks = {"type": "Metaspace", "replacement": _BLANK, "prepend_scheme": "always", "split": True}
    charsmap = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()
    steps: list[dict[str, Any]] = [{"type": "Precompiled", "precompiled_charsmap": charsmap}] if charsmap else []
    steps.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
    tokens = {**dict(enumerate(_SPECIAL)), **added}
    sequence = [_template(tag), {"Sequence": {"id": "A", "type_id": 0}}, _template("</s>")]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": number,
                "content": token,
                "single_word": False,
                "lstrip": token == _MASK,
                "rstrip": False,
                "normalized": token == _MASK,
                "special": True,
            }
            for number, token in tokens.items()
        ],
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "pre_tokenizer": blanks,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": sequence,
            "pair": [*sequence[:2], {"Sequence": {"id": "B", "type_id": 0}}, sequence[2]],
            "special_tokens": {
                token: {"id": token, "ids": [number], "tokens": [token]}
                for number, token in tokens.items()
                if token in (tag, "</s>")
            },
        },
        "decoder": blanks,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": ids,
            "merges": _merges(subwords),
        },
    }


def _merges(subwords: Sequence[str]) -> list[list[str]]:
    """Return the merges of BPE that do what SentencePiece does: it joins any two neighbours to a subword that it has.

    subwords: in the order of their ids, of which the lowest is joined first.
    """
    known = set(subwords)
    return [
        [name[:cut], name[cut:]]
        for name in subwords[len(_SPECIAL) :]
        for cut in range(1, len(name))
        if name[:cut] in known and name[cut:] in known
    ]


def _model_of(folder: ModelFolder) -> bytes:
    """Return the SentencePiece model that does what tokenizer.json does, all that transformers 5 saves.

    CheckpointError if there is none.
    """
    content, where = folder.json(TOKENIZER_JSON), folder.path / TOKENIZER_JSON
    model = content["model"] if isinstance(content.get("model"), dict) else {}
    ids, merges = model.get("vocab"), model.get("merges")
    if not isinstance(ids, dict) or not isinstance(merges, list) or model.get("type") != "BPE":
        raise CheckpointError(f"{where} is no BPE: copy {SPM} from the model that this one was made from")
    if not all(type(number) is int for number in ids.values()):
        raise CheckpointError(f"{where}: its subwords must be numbered (model.vocab)")
    added = {*_SPECIAL, *_added_tokens(folder, {}).values()}
    subwords = [*_SPECIAL, *sorted((name for name in ids if name not in added), key=lambda name: ids[name])]
    # Older files have each merge as one text.
    if [each.split(" ") if isinstance(each, str) else each for each in merges] != _merges(subwords):
        raise CheckpointError(
            f"{where} merges other subwords than SentencePiece would: copy {SPM} from the model that this one was made "
            "from"
        )
    proto = import_module("sentencepiece.sentencepiece_model_pb2").ModelProto()
    kinds = proto.SentencePiece
    for name, kind in (("<unk>", kinds.UNKNOWN), ("<s>", kinds.CONTROL), ("</s>", kinds.CONTROL)):
        proto.pieces.add(piece=name, score=0.0, type=kind)
    for number, name in enumerate(subwords[len(_SPECIAL) :]):
        proto.pieces.add(piece=name, score=float(-number))
    proto.trainer_spec.model_type = proto.trainer_spec.BPE
    proto.normalizer_spec.name = "from tokenizer.json"
    try:
        steps = (content.get("normalizer") or {}).get("normalizers") or [content.get("normalizer") or {}]
        for step in steps:
            if step.get("type") == "Precompiled":
                proto.normalizer_spec.precompiled_charsmap = base64.b64decode(
                    step["precompiled_charsmap"], validate=True
                )
    except (AttributeError, KeyError, TypeError, ValueError):
        raise CheckpointError(f"{where}: its normalizer cannot be read") from None
    return bytes(proto.SerializeToString())


def _proto(model: bytes) -> Any:
    return import_module("sentencepiece.sentencepiece_model_pb2").ModelProto.FromString(model)


def _template(token: str) -> dict[str, Any]:
    return {"SpecialToken": {"id": token, "type_id": 0}}


def _special_tokens() -> dict[str, str]:
    return {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}


def _in_original_order(vocabulary: Vocabulary) -> list[str]:
    """Return the subwords in fairseq's order; ConfigError if they are of another program."""
    if vocabulary.places != _PLACES:
        raise ConfigError("its vocabulary does not begin as fairseq's, with <s>, <pad>, </s> and <unk>")
    return [vocabulary.subwords[number] for number in vocabulary.ids_in_original_order()]


def _with_rules(saved: SavedModel) -> bytes:
    """Return the SentencePiece model, which must do itself what cleaning did to the text before."""
    return with_rules(saved.tokenizer.models[0], character_form(saved.config).source, "")
