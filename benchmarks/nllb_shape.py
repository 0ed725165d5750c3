"""Make a folder of NLLB-200's full shape with random weights, to measure what importing and fine-tuning it takes.

    python benchmarks/nllb_shape.py OUT [--layers 12] [--width 1024] [--subwords 256000]

The defaults are those of nllb-200-distilled-600M: 12 + 12 layers of width 1024, 16 heads, feed-forward layers of 4096,
256 206 rows of embeddings, 615 million parameters, 2.5 GB in fp32. The SentencePiece model has the subwords of one that
is trained on the embedded corpus, and made-up ones besides. The Python that runs it needs `transformers`.
"""

import argparse
import io
import json
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from sentencepiece import SentencePieceTrainer
from transformers import M2M100Config, M2M100ForConditionalGeneration
from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES

from tolka.system.package_data import sample_dir
from tolka.text.lines import read_lines

TRAINED = 4000  # subwords of the embedded corpus
ROWS_BESIDE = 206  # special tokens, 202 tags, <mask> and two rows that nothing uses, less three of SentencePiece's


def sentencepiece_model(size: int) -> bytes:
    """Return a SentencePiece model of BPE with `size` subwords, special tokens included."""
    texts = [text for side in ("en", "ko") for text in read_lines(sample_dir() / f"train.{side}")]
    trained = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=trained,
        vocab_size=TRAINED,
        hard_vocab_limit=False,
        model_type="bpe",
        minloglevel=2,
    )
    proto: Any = import_module("sentencepiece.sentencepiece_model_pb2").ModelProto.FromString(trained.getvalue())
    # Letters of a script that the corpus does not have, so that its texts are cut as before.
    letters = [chr(code) for code in range(0x4E00, 0x4E00 + 600)]
    made_up = chain(letters, (one + other for one in letters for other in letters))
    lowest = min(piece.score for piece in proto.pieces)
    for number in range(size - len(proto.pieces)):
        proto.pieces.add(piece=next(made_up), score=lowest - 1 - number)
    return bytes(proto.SerializeToString())


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("out", type=Path)
    for name, default in (("layers", 12), ("width", 1024), ("subwords", 256_000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    options.out.mkdir(parents=True)
    (options.out / "sentencepiece.bpe.model").write_bytes(sentencepiece_model(options.subwords))
    for name, values in (
        ("special_tokens_map.json", {"additional_special_tokens": FAIRSEQ_LANGUAGE_CODES, "mask_token": "<mask>"}),
        ("tokenizer_config.json", {"tokenizer_class": "NllbTokenizer"}),
    ):
        (options.out / name).write_text(json.dumps(values), encoding="utf-8")
    sides: dict[str, Any] = {}
    for side in ("encoder", "decoder"):
        sides |= {f"{side}_layers": options.layers, f"{side}_attention_heads": 16, f"{side}_ffn_dim": 4 * options.width}
    torch.manual_seed(1)
    config = M2M100Config(
        vocab_size=options.subwords + ROWS_BESIDE, d_model=options.width, max_position_embeddings=1024, **sides
    )
    model = M2M100ForConditionalGeneration(config)
    print(f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters")
    model.save_pretrained(options.out)


if __name__ == "__main__":
    main()
