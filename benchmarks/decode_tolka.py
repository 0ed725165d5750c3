"""tolka: how fast it decodes.

    python benchmarks/decode_tolka.py MODEL SOURCE OUT BEAM THREADS [key=value ...]

Writes the translations to OUT; prints a JSON line: see `passes.py`.
"""

import sys
from pathlib import Path

from passes import measure
from tolka.config.translate_command import translate_config
from tolka.translation.opening import open_model


def main(model: Path, source: Path, out: Path, beam: int, threads: int, others: list[str]) -> None:
    """Load, translate."""
    search = ["search=greedy"] if beam == 1 else ["search=beam", f"search.beam_size={beam}"]
    config = translate_config([*search, f"decoding.threads={threads}", "decoding.backend=torch", *others])
    translator = open_model(model, config.search, config.decoding)

    def translate(lines: list[str]) -> tuple[list[str], int]:
        found = translator.translate(lines)
        return [each.text for each in found], sum(len(ids) + 1 for each in found for _, ids in each.segments)

    measure(translate, source, out)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]), sys.argv[6:])
