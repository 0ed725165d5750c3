"""Folders of Hugging Face's M2M-100 and NLLB-200, made with `transformers` and a SentencePiece model trained here.

The layout is that of the published models, as the pages M2M100 and NLLB of the documentation of `transformers` and its
tokenizers describe it. facebook/m2m100_418M: vocab.json, sentencepiece.bpe.model, special_tokens_map.json with the tags
in the order of their ids (additional_special_tokens), 8 rows more than subwords and tags. facebook/nllb-200: no
vocab.json, the tags after the subwords of the SentencePiece model, `<mask>` after them, two more rows; older folders
have the SentencePiece model and the lists of tags, newer ones tokenizer.json with the ids besides.
"""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from marian_folder import Sizes, pieces, settings_of, spm, write_json

from conftest import sentences

SIZES = Sizes(positions=60)
NLLB_TAGS = ("ace_Arab", "deu_Latn", "eng_Latn", "kor_Hang", "zul_Latn")


def _texts() -> list[str]:
    return [side for pair in sentences(300, 11) for side in pair]


def write_m2m100_tokenizer(folder: Path) -> int:
    """Write M2M-100's tokenizer; return the number of embeddings."""
    from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES

    model = spm(_texts(), 120, "bpe")
    subwords = pieces(model)[2:]  # two that the vocabulary lacks
    random.Random(5).shuffle(subwords)
    names = ["<s>", "<pad>", "</s>", "<unk>", *subwords]
    tags = [f"__{code}__" for code in FAIRSEQ_LANGUAGE_CODES["m2m100"]]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    write_json(folder / "vocab.json", {name: number for number, name in enumerate(names)})
    write_json(folder / "special_tokens_map.json", {"additional_special_tokens": tags})
    write_json(
        folder / "tokenizer_config.json", {"tokenizer_class": "M2M100Tokenizer", "additional_special_tokens": tags}
    )
    return len(names) + len(tags) + 8


def write_nllb_tokenizer(folder: Path, with_json: bool = True) -> int:
    """Write NLLB-200's tokenizer; return the number of embeddings. with_json: whether tokenizer.json is there."""
    model = spm(_texts(), 120, "bpe")
    names = ["<s>", "<pad>", "</s>", "<unk>", *pieces(model)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    write_json(folder / "special_tokens_map.json", {"additional_special_tokens": NLLB_TAGS, "mask_token": "<mask>"})
    about: dict[str, Any] = {"tokenizer_class": "NllbTokenizer"}
    if with_json:
        from transformers import NllbTokenizer

        tokenizer = NllbTokenizer.from_pretrained(str(folder), extra_special_tokens=list(NLLB_TAGS))
        tokenizer.save_pretrained(str(folder))
        # Made of the SentencePiece model alone, it has <mask> before the tags, where the published ones have it last.
        path = folder / "tokenizer.json"
        content = json.loads(path.read_text(encoding="utf-8"))
        ids = {name: len(names) + number for number, name in enumerate([*NLLB_TAGS, "<mask>"])}
        content["model"]["vocab"].pop("<mask>", None)
        for token in content["added_tokens"]:
            token["id"] = ids.get(token["content"], token["id"])
        content["added_tokens"].sort(key=lambda token: token["id"])
        for name, told in content["post_processor"]["special_tokens"].items():
            told["ids"] = [ids.get(name, told["ids"][0])]
        write_json(path, content)
        about |= {"extra_special_tokens": NLLB_TAGS}
    write_json(folder / "tokenizer_config.json", about)
    return len(names) + len(NLLB_TAGS) + 3


def write_m2m_folder(folder: Path, kind: str, sizes: Sizes = SIZES, seed: int = 7, **options: Any) -> Path:
    """Write a folder with a model that `transformers` made, of random weights; return the folder.

    kind: m2m100, nllb, nllb_old without tokenizer.json, or nllb_new with nothing else, as transformers 5 saves it.
    """
    transformers = pytest.importorskip("transformers")
    rows = write_m2m100_tokenizer(folder) if kind == "m2m100" else write_nllb_tokenizer(folder, kind != "nllb_old")
    values = {"vocab_size": rows, **settings_of(sizes), "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0}
    if kind == "nllb_new":
        for name in ("sentencepiece.bpe.model", "special_tokens_map.json"):
            (folder / name).unlink()
    torch.manual_seed(seed)
    model = transformers.M2M100ForConditionalGeneration(transformers.M2M100Config(**{**values, **options})).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # norms and biases, which are ones and zeros at first
            if parameter.dim() == 1:
                parameter.add_(torch.randn(parameter.shape) * 0.1)
    model.save_pretrained(folder)
    return folder
