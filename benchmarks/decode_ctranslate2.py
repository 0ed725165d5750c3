"""CTranslate2 with a tolka model's weights: how fast it decodes.

    python benchmarks/decode_ctranslate2.py MODEL CONVERTED SOURCE OUT BEAM THREADS float32|int8|... [SIDE_BY_SIDE]

CONVERTED keeps the model as CTranslate2 has it, from the first call on. SIDE_BY_SIDE: batches at once, which share the
threads; 1 unless given. Writes the translations to OUT; prints a JSON line: see `passes.py`.
"""

import sys
from pathlib import Path

import ctranslate2
import sentencepiece

from passes import measure
from tolka.formats.ctranslate2.folder import write_folder
from tolka.formats.ctranslate2.plain_model import read_plain_model
from tolka.system.atomic import whole_folder

BATCH = 64  # sentences


def main(model: Path, folder: Path, source: Path, out: Path, beam: int, threads: int, kind: str, workers: int) -> None:
    """Convert, load, translate."""
    if not folder.exists():
        with whole_folder(folder) as work:
            write_folder(read_plain_model(model), work)
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
