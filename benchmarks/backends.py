"""decoding.backend: torch, CTranslate2 through tolka, and CTranslate2 by hand; one process, in turn.

    python benchmarks/backends.py MODEL SOURCE [REFERENCE LANGUAGE] [--lines 500] [--rounds 7] [--threads 1]

Prints, for greedy search and a beam of 5 in float32 and int8, the CPU seconds and the wall time of each side (medians),
and their ratios to CTranslate2 by hand. CPU seconds count where other programs run on the machine. With REFERENCE:
BLEU of each side, how many lines differ from torch's in fp32, and by how much torch's log-probability of the first
token that differs is higher than that of the token in its place.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import ctranslate2
import sentencepiece

from tolka.engines.options import DecodingConfig
from tolka.formats.ctranslate2.folder import write_folder
from tolka.formats.ctranslate2.plain_model import read_plain_model
from tolka.metrics.options import MetricsConfig
from tolka.metrics.scores import score
from tolka.search.options import BeamConfig, GreedyConfig, SearchConfig
from tolka.tokenizer.special_tokens import EOS
from tolka.translation.opening import open_model
from tolka.translation.results import Translation
from tolka.translation.translator import Translator

BATCH = 64  # sentences of CTranslate2 by hand
PRECISIONS = {"float32": "fp32", "int8": "int8"}
Side = Callable[[list[str]], list[str]]


def by_hand(model: Path, folder: str, kind: str, search: SearchConfig, threads: int) -> Side:
    """CTranslate2 as its documentation uses it."""
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(model / "tokenizer.model"))
    translator = ctranslate2.Translator(folder, "cpu", compute_type=kind, inter_threads=threads, intra_threads=1)

    def translate(lines: list[str]) -> list[str]:
        rows = pieces.encode(lines, out_type=str)
        found = translator.translate_batch(rows, beam_size=search.width, max_batch_size=BATCH)
        texts: list[str] = pieces.decode([each.hypotheses[0] for each in found])
        return texts

    return translate


def compare_speed(sides: dict[str, Side], lines: list[str], rounds: int) -> None:
    """Print the medians of each side, and the ratios to the first."""
    cpu: dict[str, list[float]] = {name: [] for name in sides}
    wall: dict[str, list[float]] = {name: [] for name in sides}
    for translate in sides.values():
        translate(lines)
    for _ in range(rounds):
        for name, translate in sides.items():
            cpu_before, before = time.process_time(), time.perf_counter()
            translate(lines)
            cpu[name].append(time.process_time() - cpu_before)
            wall[name].append(time.perf_counter() - before)
    first = next(iter(sides))
    for name in sides:
        one, other = (statistics.median(times[name]) for times in (cpu, wall))
        ratios = (one / statistics.median(cpu[first]), other / statistics.median(wall[first]))
        print(f"  {name:24s} CPU {one:.2f} s ({ratios[0]:.2f})  wall {other:.2f} s ({ratios[1]:.2f})", flush=True)


def first_gaps(reference: Translator[Any], ours: list[Translation], theirs: list[Translation]) -> list[float]:
    """Return, of each segment that differs, the difference of log p at its first token that differs."""
    gaps = []
    for one, other in zip(ours, theirs, strict=True):
        for (source, a), (_, b) in zip(one.segments, other.segments, strict=False):
            place = next((i for i, (p, q) in enumerate(zip([*a, EOS], [*b, EOS], strict=False)) if p != q), None)
            if place is not None:
                scores = reference.token_scores([(source, a), (source, b)])
                gaps.append(scores[0][place] - scores[1][place])
    return gaps


def compare_texts(sides: dict[str, Translator[Any]], lines: list[str], references: list[str], language: str) -> None:
    """Print each side's BLEU, and its differences to the first one."""
    reference = next(iter(sides.values()))
    ours = reference.translate(lines)
    for name, translator in sides.items():
        theirs = ours if translator is reference else translator.translate(lines)
        (bleu,) = score(
            [each.text for each in theirs], references, MetricsConfig(names=["bleu"], bootstrap=0), language
        )
        differing = sum(a.text != b.text for a, b in zip(ours, theirs, strict=True))
        gaps = sorted(first_gaps(reference, ours, theirs)) or [0.0]
        print(
            f"  {name:24s} BLEU {bleu.value:.2f}, {differing} of {len(lines)} lines differ; gap at the first token: "
            f"median {statistics.median(gaps):.3f}, most {gaps[-1]:.3f}",
            flush=True,
        )


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("texts", nargs="+", metavar="SOURCE [REFERENCE LANGUAGE]")
    parser.add_argument("--lines", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    lines = Path(options.texts[0]).read_text(encoding="utf-8").splitlines()[: options.lines]
    decoding = DecodingConfig(device="cpu", threads=options.threads)
    with tempfile.TemporaryDirectory() as folder:
        write_folder(read_plain_model(options.model), Path(folder))
        for search in (GreedyConfig(), BeamConfig()):
            translators = {
                f"{backend} {kind}": open_model(
                    options.model, search, replace(decoding, backend=backend, precision=precision)
                )
                for backend in ("torch", "ctranslate2")
                for kind, precision in PRECISIONS.items()
            }
            print(search)
            for kind in PRECISIONS:
                sides = {f"by hand {kind}": by_hand(options.model, folder, kind, search, options.threads)}
                sides |= {name: each.__call__ for name, each in translators.items() if name.endswith(kind)}
                compare_speed(sides, lines, options.rounds)
            if options.texts[1:]:
                path, language = options.texts[1:]
                references = Path(path).read_text(encoding="utf-8").splitlines()[: options.lines]
                compare_texts(translators, lines, references, language)


if __name__ == "__main__":
    main()
