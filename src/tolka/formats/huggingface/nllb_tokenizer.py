"""Tokenizer of Hugging Face's NLLB-200: one SentencePiece model, then the tags of languages (`deu_Latn`) and `<mask>`.

The subwords have fairseq's special tokens before them, as in M2M-100. tokenizer.json does what the SentencePiece model
of BPE does, and is made a model again: transformers 5 saves nothing else of a tokenizer, and of the SentencePiece model
alone it makes one with `<mask>` before the tags, where the published models have it last.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tolka.errors import CheckpointError, ConfigError
from tolka.formats.huggingface.family import TOKENIZER_CONFIG
from tolka.formats.huggingface.folder import ModelFolder, check_subwords
from tolka.formats.huggingface.m2m_100_tokenizer import (
    FAIRSEQ_SPECIAL,
    NAMED_SPECIAL,
    SPECIAL_TOKENS,
    SPM,
    fairseq_order,
    fill_up,
    filler,
    listed_tags,
    sentencepiece_with_rules,
)
from tolka.model_directory.read import SavedModel
from tolka.tokenizer.sentencepiece_model import model_proto, processor_of
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.tokenizer.vocabulary import Vocabulary

TOKENIZER_JSON = "tokenizer.json"
_MASK = "<mask>"
_MOST_DIGITS = 9  # of an id


def read_nllb(folder: ModelFolder, size: int, about: Mapping[str, Any]) -> Tokenizer:
    """Read NLLB-200's tokenizer; CheckpointError if files are missing, damaged or do not fit. size: rows of embeddings.

    about: of tokenizer_config.json.
    """
    where, has_model = folder.path / TOKENIZER_JSON, folder.has(SPM)
    is_needed = not has_model or (not about.get("added_tokens_decoder") and folder.has(TOKENIZER_JSON))
    content = folder.json(TOKENIZER_JSON) if is_needed else {}
    model = folder.sentencepiece_model(SPM) if has_model else _sentencepiece_of(content, where)
    pieces = _subwords_of(model)
    # tokenizer.json numbers them itself: what was added to a model follows its tags.
    names = dict(enumerate(pieces)) if has_model else _numbered_subwords(content, where, size)
    added = _added_tokens(about, content, folder.path)
    if not added and content:
        raise CheckpointError(f"{where} has no ids of the tags (added_tokens): copy it again")
    if not added:
        listed = [each for each in listed_tags(folder, about) if each not in (*FAIRSEQ_SPECIAL, _MASK)]
        if listed != sorted(listed):
            raise CheckpointError(
                f"{folder.path} lists tags in another order than NLLB-200's, the alphabet's, and no file has their "
                f"ids: copy {SPECIAL_TOKENS} again, or {TOKENIZER_JSON}, which has them"
            )
        added = {len(pieces) + number: tag for number, tag in enumerate([*listed, _MASK])}
    for number, name in sorted(added.items()):
        if names.get(number, name) != name:
            raise CheckpointError(
                f"{folder.path}: {name!r:.60} has the id {number}, which is that of {names[number]!r:.60}"
            )
    tags = [name for _, name in sorted(added.items()) if name not in (*FAIRSEQ_SPECIAL, _MASK)]
    names |= added
    rows = [names.get(number) or filler(number) for number in range(min(max(names), size) + 1)]
    return fill_up(folder, model, rows, {tag: tag for tag in tags}, size)


def nllb_files(saved: SavedModel, vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the files of NLLB-200's tokenizer: name -> bytes, or the object of a JSON file.

    ConfigError for a vocabulary of another form.
    """
    model, tags = sentencepiece_with_rules(saved), list(vocabulary.tags.values())
    special = {**NAMED_SPECIAL, "mask_token": _MASK}
    about = {"tokenizer_class": "NllbTokenizer", "extra_special_tokens": tags, "legacy_behaviour": False, **special}
    # By the SentencePiece model alone, all would be numbered in that order.
    return {
        **({SPM: model} if _is_in_published_order(model, vocabulary) else {}),
        TOKENIZER_JSON: tokenizer_json(model, vocabulary),
        SPECIAL_TOKENS: {**special, "additional_special_tokens": tags},
        TOKENIZER_CONFIG: about,
    }


def tokenizer_json(model: bytes, vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the tokenizer.json of NLLB-200 that does what a SentencePiece model of BPE does, with tags and `<mask>`.

    ConfigError for a vocabulary of another form.
    """
    names, subwords = fairseq_order(vocabulary), _subwords_of(model)
    ids = {name: number for number, name in enumerate(names)}
    special = {*vocabulary.tags.values(), _MASK}
    if not {*subwords} <= {*names} or special & {*subwords}:
        raise ConfigError("its SentencePiece model has other subwords than its vocabulary: export it for CTranslate2")
    added = [name for name in names if name in special]
    # Without numbers, what is added follows the subwords in its order.
    numbered = subwords if _is_in_published_order(model, vocabulary) else [*subwords, *added]
    # Beside this file: all that is the same in each.
    content: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    for token in (*FAIRSEQ_SPECIAL, *added):
        flags = {"single_word": False, "lstrip": token == _MASK, "rstrip": False, "normalized": token == _MASK}
        content["added_tokens"].append({"id": ids[token], "content": token, **flags, "special": True})
    content["model"] |= {"vocab": {name: ids[name] for name in numbered}, "merges": _merges(subwords)}
    if rules := model_proto(model).normalizer_spec.precompiled_charsmap:
        step = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(rules).decode()}
        content["normalizer"]["normalizers"].insert(0, step)
    # A tag before the subwords of a text, until the program that reads it chooses another.
    tag, order = next(iter(vocabulary.tags.values())), content["post_processor"]
    order["special_tokens"][tag] = {"id": tag, "ids": [ids[tag]], "tokens": [tag]}
    for texts in (order["single"], order["pair"]):
        texts.insert(0, {"SpecialToken": {"id": tag, "type_id": 0}})
    return content


def _merges(subwords: Sequence[str]) -> list[list[str]]:
    """Return the merges of BPE that do what SentencePiece does: it joins any two neighbours to a subword that it has.

    subwords: in the order of their ids, of which the lowest is joined first.
    """
    known = set(subwords)
    return [
        [name[:cut], name[cut:]]
        for name in subwords[len(FAIRSEQ_SPECIAL) :]
        for cut in range(1, len(name))
        if name[:cut] in known and name[cut:] in known
    ]


def _sentencepiece_of(content: Mapping[str, Any], where: Path) -> bytes:
    """Return the SentencePiece model that does what tokenizer.json does; CheckpointError if there is none.

    content: of the file `where`.
    """
    own = content["model"] if isinstance(content.get("model"), dict) else {}
    ids, merges = own.get("vocab"), own.get("merges")
    if not isinstance(ids, dict) or not isinstance(merges, list) or own.get("type") != "BPE":
        raise CheckpointError(f"{where} is no BPE: copy {SPM} from the model that this one was made from")
    if not all(type(number) is int for number in ids.values()):
        raise CheckpointError(f"{where}: its subwords must be numbered (model.vocab)")
    check_subwords(ids, where)
    added = {*FAIRSEQ_SPECIAL, *_added_tokens({}, content, where.parent).values()}
    subwords = [*FAIRSEQ_SPECIAL, *sorted((name for name in ids if name not in added), key=lambda name: ids[name])]
    # Older files have each merge as one text.
    if [each.split(" ") if isinstance(each, str) else each for each in merges] != _merges(subwords):
        raise CheckpointError(
            f"{where} merges other subwords than SentencePiece would: copy {SPM} from the model that this one was made "
            "from"
        )
    proto = model_proto()
    kinds = proto.SentencePiece
    for name, kind in (("<unk>", kinds.UNKNOWN), ("<s>", kinds.CONTROL), ("</s>", kinds.CONTROL)):
        proto.pieces.add(piece=name, score=0.0, type=kind)
    for number, name in enumerate(subwords[len(FAIRSEQ_SPECIAL) :]):
        proto.pieces.add(piece=name, score=float(-number))
    proto.trainer_spec.model_type = proto.trainer_spec.BPE
    proto.normalizer_spec.name = "from tokenizer.json"
    try:
        steps = (content.get("normalizer") or {}).get("normalizers") or [content.get("normalizer") or {}]
        for step in steps:
            if step.get("type") == "Precompiled":
                rules = base64.b64decode(step["precompiled_charsmap"], validate=True)
                proto.normalizer_spec.precompiled_charsmap = rules
        model = bytes(proto.SerializeToString())
        processor_of(model)  # which reads the rules
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError):
        raise CheckpointError(f"{where}: its normalizer cannot be read") from None
    return model


def _numbered_subwords(content: Mapping[str, Any], where: Path, size: int) -> dict[int, str]:
    """Return id -> subword of tokenizer.json, which `_sentencepiece_of` has read; CheckpointError for other ids."""
    subwords: Mapping[str, int] = content["model"]["vocab"]
    numbered = {number: name for name, number in subwords.items()}
    if len(numbered) < len(subwords) or not all(0 <= number < size for number in numbered):
        raise CheckpointError(f"{where}: its subwords must be numbered below vocab_size ({size}), each another number")
    return dict(enumerate(FAIRSEQ_SPECIAL)) | numbered


def _added_tokens(about: Mapping[str, Any], content: Mapping[str, Any], path: Path) -> dict[int, str]:
    """Return id -> token for those that are added to the subwords; empty if neither file tells ids.

    about, content: of tokenizer_config.json, which counts first, and of tokenizer.json. path: of their folder.
    """
    decoder, added = about.get("added_tokens_decoder"), content.get("added_tokens")
    if not isinstance(decoder, dict) or not decoder:
        decoder = {each.get("id"): each for each in added if isinstance(each, dict)} if isinstance(added, list) else {}
    tokens = dict[int, str]()
    for number, token in decoder.items():
        text = token.get("content") if isinstance(token, dict) else None
        if not str(number).isdecimal() or len(str(number)) > _MOST_DIGITS or not isinstance(text, str):
            raise CheckpointError(f"{path}: the added token {number!r:.20} ({text!r:.60}) has no id or no text")
        tokens[int(number)] = text
    return tokens


def _is_in_published_order(model: bytes, vocabulary: Vocabulary) -> bool:
    """Return whether the subwords come first, and the tags and `<mask>` right behind them, as in NLLB-200 itself."""
    names, subwords = fairseq_order(vocabulary), _subwords_of(model)
    added = [name for name in names if name in {*vocabulary.tags.values(), _MASK}]
    return names[: len(subwords) + len(added)] == [*subwords, *added]


def _subwords_of(model: bytes) -> list[str]:
    """Return fairseq's special tokens and the subwords of a SentencePiece model."""
    names = (each.piece for each in model_proto(model).pieces)
    return [*FAIRSEQ_SPECIAL, *(name for name in names if name not in FAIRSEQ_SPECIAL)]
