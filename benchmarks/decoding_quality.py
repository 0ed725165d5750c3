"""Quality and cost of searches: beam, greedy, an oracle, sampling and minimum Bayes risk, as one Markdown table.

    python benchmarks/decoding_quality.py MODEL SOURCE REFERENCE [--lines N] [--only NAME] [--out FOLDER]

Translates SOURCE with each search, and prints BLEU and chrF with their signatures, the seconds and the sentences a
second. The oracle takes, of a beam's 32 best, the translation with the highest sentence chrF to the reference. With
--out, finished rows are kept there, and a second call goes on after them.
"""

import argparse
import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path

from tolka.engines.options import DecodingConfig
from tolka.metrics.options import MetricsConfig
from tolka.metrics.pairwise import chrf_of
from tolka.metrics.scores import score
from tolka.model_directory.read import load_model
from tolka.model_directory.settings import digest, direction_of
from tolka.search.base import SearchConfig
from tolka.search.beam import BeamConfig
from tolka.search.greedy import GreedyConfig
from tolka.search.mbr import MbrConfig
from tolka.search.sampling import SamplingConfig
from tolka.text.lines import read_lines
from tolka.translation.results import Translation
from tolka.translation.translator import Translator

_SAMPLES = 32
SEARCHES: dict[str, SearchConfig] = {
    "greedy": GreedyConfig(),
    "beam 5": BeamConfig(),
    f"beam {_SAMPLES}": BeamConfig(beam_size=_SAMPLES),
    f"oracle of beam {_SAMPLES}": BeamConfig(beam_size=_SAMPLES, n_best=_SAMPLES),
    "sampling": SamplingConfig(),
    "sampling, top_p 0.9": SamplingConfig(top_p=0.9),
    "sampling, epsilon 0.02": SamplingConfig(epsilon=0.02),
    "MBR, epsilon 0.02": MbrConfig(samples=_SAMPLES),
    "MBR, no epsilon": MbrConfig(samples=_SAMPLES, epsilon=0.0),
    "MBR, beam": MbrConfig(samples=_SAMPLES, candidates="beam"),
}


def oracle(translations: list[Translation], references: list[str]) -> list[str]:
    """Return, of each line's translations, the one with the highest chrF to its reference."""
    return [
        max((each.text for each in found.candidates), key=lambda text: chrf_of(text, reference))
        for found, reference in zip(translations, references, strict=True)
    ]


def measure(name: str, model: Path, decoding: DecodingConfig, sources: list[str], references: list[str]) -> list[str]:
    """Return the cells of a search's row, and the signatures."""
    saved = load_model(model)
    translator = Translator.of(saved, SEARCHES[name], decoding)
    translator(sources[:8])  # kernels are compiled in the first batches
    choose: Callable[[list[Translation], list[str]], list[str]] = oracle if "oracle" in name else _best
    started_at = time.perf_counter()
    found = translator.translate(sources)
    seconds = time.perf_counter() - started_at
    metrics = MetricsConfig(names=["bleu", "chrf"], bootstrap=0)
    bleu, chrf = score(choose(found, references), references, metrics, direction_of(saved.config)[1])
    return [
        f"{bleu.value:.2f}",
        f"{chrf.value:.2f}",
        f"{seconds:.1f}",
        f"{len(sources) / seconds:.1f}",
        f"BLEU: {bleu.signature}, chrF2: {chrf.signature}",
    ]


def _best(translations: list[Translation], references: list[str]) -> list[str]:
    return [each.text for each in translations]


def main() -> None:
    """Measure every search that --out has no row of, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--lines", type=int, default=0, help="only the first N")
    parser.add_argument("--only", action="append", choices=list(SEARCHES), help="searches; all unless named")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, help="folder where finished rows are kept")
    options = parser.parse_args()
    sources, references = ([*read_lines(path)][: options.lines or None] for path in (options.source, options.reference))
    if len(sources) != len(references):
        parser.error(f"{options.source} has {len(sources)} lines, {options.reference} {len(references)}")
    text = json.dumps([digest(options.model), sources, references, options.device])
    job = hashlib.sha256(text.encode()).hexdigest()[:12]
    print(f"{len(sources)} lines of {options.source.name}, {options.model}\n")
    print("| search | BLEU | chrF2 | seconds | sentences/s |\n|---|---|---|---|---|")
    signatures: dict[str, None] = {}
    for name in options.only or SEARCHES:
        kept = options.out / f"{job}-{name.replace(' ', '_')}.json" if options.out else None
        if kept and kept.exists():
            cells = json.loads(kept.read_text("utf-8"))
        else:
            cells = measure(name, options.model, DecodingConfig(device=options.device), sources, references)
            if kept:
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_text(json.dumps(cells), "utf-8")
        signatures[cells.pop()] = None
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print("\n" + "\n".join(signatures))


if __name__ == "__main__":
    main()
