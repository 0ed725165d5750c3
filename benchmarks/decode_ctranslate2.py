"""CTranslate2 with a tolka model's weights: how fast it decodes.

    python benchmarks/decode_ctranslate2.py MODEL CONVERTED SOURCE OUT BEAM THREADS float32|int8|... [SIDE_BY_SIDE]

CONVERTED keeps the model as CTranslate2 has it, from the first call on. SIDE_BY_SIDE: batches at once, which share the
threads; 1 unless given. Writes the translations to OUT; prints a JSON line: see `passes.py`.
"""

import sys
from pathlib import Path
from typing import Any

import ctranslate2
import sentencepiece
from ctranslate2.specs.transformer_spec import TransformerSpec

from passes import measure
from weights import Weights

BATCH = 64  # sentences


def convert(model: Path, folder: Path) -> None:
    """As CTranslate2 keeps a model."""
    weights = Weights(model)
    spec = TransformerSpec.from_config(weights.layers, weights.heads, pre_norm=True)

    def take(layer: Any, pair: tuple[Any, Any]) -> None:
        layer.weight, layer.bias = pair

    def norm(layer: Any, name: str) -> None:
        layer.gamma, layer.beta = weights.pair(name)

    for side, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        embeddings = stack.embeddings[0] if side == "encoder" else stack.embeddings
        embeddings.weight = weights.embedding
        stack.scale_embeddings = True
        stack.position_encodings.encodings = weights.positions()
        norm(stack.layer_norm, f"{side}_norm")
        for number, layer in enumerate(stack.layer):
            here = f"{side}.{number}"
            norm(layer.self_attention.layer_norm, f"{here}.around_attention.norm")
            take(layer.self_attention.linear[0], weights.pair(f"{here}.attention.query_key_value"))
            take(layer.self_attention.linear[1], weights.pair(f"{here}.attention.output"))
            if side == "decoder":
                norm(layer.attention.layer_norm, f"{here}.around_cross.norm")
                for place, name in enumerate(("query", "key_value", "output")):
                    take(layer.attention.linear[place], weights.pair(f"{here}.cross.{name}"))
            norm(layer.ffn.layer_norm, f"{here}.around_feedforward.norm")
            take(layer.ffn.linear_0, weights.pair(f"{here}.feedforward.inner"))
            take(layer.ffn.linear_1, weights.pair(f"{here}.feedforward.outer"))
    spec.decoder.projection.weight = weights.embedding
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(model / "tokenizer.model"))
    vocabulary = [pieces.id_to_piece(i) for i in range(len(pieces))]
    spec.register_source_vocabulary(vocabulary)
    spec.register_target_vocabulary(vocabulary)
    spec.config.add_source_bos = False
    spec.config.add_source_eos = True
    spec.validate()
    spec.save(str(folder))


def main(model: Path, folder: Path, source: Path, out: Path, beam: int, threads: int, kind: str, workers: int) -> None:
    """Convert, load, translate."""
    if not folder.exists():
        part = folder.with_suffix(".part")
        part.mkdir(parents=True, exist_ok=True)
        convert(model, part)
        part.rename(folder)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(model / "tokenizer.model"))
    each = max(1, threads // workers)
    translator = ctranslate2.Translator(
        str(folder), "cpu", compute_type=kind, inter_threads=workers, intra_threads=each
    )

    def translate(lines: list[str]) -> tuple[list[str], int]:
        rows = pieces.encode(lines, out_type=str)
        best = [found.hypotheses[0] for found in translator.translate_batch(rows, beam_size=beam, max_batch_size=BATCH)]
        return pieces.decode(best), sum(len(row) + 1 for row in best)

    measure(translate, source, out)


if __name__ == "__main__":
    side_by_side = int(sys.argv[8]) if len(sys.argv) > 8 else 1
    model, folder, source, out = map(Path, sys.argv[1:5])
    main(model, folder, source, out, int(sys.argv[5]), int(sys.argv[6]), sys.argv[7], side_by_side)
