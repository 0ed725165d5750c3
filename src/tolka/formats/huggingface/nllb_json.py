"""tokenizer.json of NLLB-200, which does what a SentencePiece model of BPE does: written, and made a model again.

transformers 5 saves nothing else of a tokenizer; and of the SentencePiece model alone it makes one with `<mask>` before
the tags, where the published models have it last.
"""

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tolka.errors import CheckpointError, ConfigError
from tolka.formats.huggingface.folder import check_subwords
from tolka.tokenizer.sentencepiece_model import model_proto, processor_of
from tolka.tokenizer.special_tokens import BLANK
from tolka.tokenizer.vocabulary import Vocabulary

SPM, TOKENIZER_JSON = "sentencepiece.bpe.model", "tokenizer.json"
FAIRSEQ_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
FAIRSEQ_PLACES = (2, 3, 1, 0)
"""The ids of `</s>`, `<unk>`, `<pad>` and `<s>`, as a `Vocabulary` has its places."""
MASK = "<mask>"
_MOST_DIGITS = 9  # of an id
_BLANKS = {"type": "Metaspace", "replacement": BLANK, "prepend_scheme": "always", "split": True}
_BPE = {
    "type": "BPE",
    "dropout": None,
    "unk_token": "<unk>",
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
    "fuse_unk": True,
    "byte_fallback": False,
    "ignore_merges": False,
}


def tokenizer_json(model: bytes, vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the tokenizer.json of NLLB-200 that does what a SentencePiece model of BPE does, with tags and `<mask>`.

    ConfigError for a vocabulary of another form.
    """
    names, subwords = in_fairseq_order(vocabulary), subwords_in_fairseq_order(model)
    ids = {name: number for number, name in enumerate(names)}
    special = {*vocabulary.tags.values(), MASK}
    if not {*subwords} <= {*names} or special & {*subwords}:
        raise ConfigError("its SentencePiece model has other subwords than its vocabulary: export it for CTranslate2")
    added = {number: name for number, name in enumerate(names) if name in special}
    tokens = {**dict(enumerate(FAIRSEQ_SPECIAL)), **added}
    # Without numbers, what is added follows the subwords in its order.
    numbered = subwords if is_in_published_order(model, vocabulary) else [*subwords, *added.values()]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added_token(number, token) for number, token in tokens.items()],
        "normalizer": _normalizer(model_proto(model).normalizer_spec.precompiled_charsmap),
        "pre_tokenizer": _BLANKS,
        "post_processor": _post_processor(tokens, next(iter(vocabulary.tags.values()))),
        "decoder": _BLANKS,
        "model": {
            **_BPE,
            "vocab": {name: ids[name] for name in numbered},
            "merges": _merges(subwords),
        },
    }


def _added_token(number: int, token: str) -> dict[str, Any]:
    flags = {"single_word": False, "lstrip": token == MASK, "rstrip": False, "normalized": token == MASK}
    return {"id": number, "content": token, **flags, "special": True}


def _normalizer(charsmap: bytes) -> dict[str, Any]:
    """Return the steps that a text goes through first. charsmap: the SentencePiece model's rules, if any."""
    rules = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()}
    one_blank = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
    return {"type": "Sequence", "normalizers": [*([rules] if charsmap else []), one_blank]}


def _post_processor(tokens: Mapping[int, str], tag: str) -> dict[str, Any]:
    """Return what puts a tag before the subwords of a text, and `</s>` after them."""
    first, last = ({"SpecialToken": {"id": token, "type_id": 0}} for token in (tag, "</s>"))
    one, other = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    ids = {token: number for number, token in tokens.items() if token in (tag, "</s>")}
    return {
        "type": "TemplateProcessing",
        "single": [first, one, last],
        "pair": [first, one, other, last],
        "special_tokens": {token: {"id": token, "ids": [ids[token]], "tokens": [token]} for token in ids},
    }


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


def sentencepiece_of(content: Mapping[str, Any], where: Path) -> bytes:
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
    added = {*FAIRSEQ_SPECIAL, *added_tokens({}, content, where.parent).values()}
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
                proto.normalizer_spec.precompiled_charsmap = base64.b64decode(
                    step["precompiled_charsmap"], validate=True
                )
        model = bytes(proto.SerializeToString())
        processor_of(model)  # which reads the rules
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError):
        raise CheckpointError(f"{where}: its normalizer cannot be read") from None
    return model


def numbered_subwords(content: Mapping[str, Any], where: Path, size: int) -> dict[int, str]:
    """Return id -> subword of tokenizer.json, of which `sentencepiece_of` has made a model; CheckpointError for no ids.

    size: of the vocabulary.
    """
    subwords: Mapping[str, int] = content["model"]["vocab"]
    numbered = {number: name for name, number in subwords.items()}
    if len(numbered) < len(subwords) or not all(0 <= number < size for number in numbered):
        raise CheckpointError(f"{where}: its subwords must be numbered below vocab_size ({size}), each another number")
    return dict(enumerate(FAIRSEQ_SPECIAL)) | numbered


def added_tokens(about: Mapping[str, Any], content: Mapping[str, Any], path: Path) -> dict[int, str]:
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


def in_fairseq_order(vocabulary: Vocabulary) -> list[str]:
    """Return the subwords in fairseq's order; ConfigError if they are of another program."""
    if vocabulary.places != FAIRSEQ_PLACES:
        raise ConfigError("its vocabulary does not begin as fairseq's, with <s>, <pad>, </s> and <unk>")
    return [vocabulary.subwords[number] for number in vocabulary.ids_in_original_order()]


def is_in_published_order(model: bytes, vocabulary: Vocabulary) -> bool:
    """Return whether the subwords come first, and the tags and `<mask>` right behind them, as in NLLB-200 itself."""
    names, subwords = in_fairseq_order(vocabulary), subwords_in_fairseq_order(model)
    added = [name for name in names if name in {*vocabulary.tags.values(), MASK}]
    return names[: len(subwords) + len(added)] == [*subwords, *added]


def subwords_in_fairseq_order(model: bytes) -> list[str]:
    """Return fairseq's special tokens and the subwords of a SentencePiece model."""
    names = (each.piece for each in model_proto(model).pieces)
    return [*FAIRSEQ_SPECIAL, *(name for name in names if name not in FAIRSEQ_SPECIAL)]
