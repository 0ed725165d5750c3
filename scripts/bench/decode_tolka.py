"""tolka: how fast it decodes.

    python scripts/bench/decode_tolka.py MODEL SOURCE OUT BEAM THREADS [key=value ...]

Writes the translations to OUT; prints a JSON line: sentences, tokens, seconds from lines to lines.
"""

import json
import sys
import time
from pathlib import Path

from tolka.checkpoint import load_ensemble
from tolka.overrides import translate_config
from tolka.runtime import keep_freed_memory
from tolka.translator import Translator


def main(model: Path, source: Path, out: Path, beam: int, threads: int, others: list[str]) -> None:
    """Load, translate."""
    keep_freed_memory()
    search = ["search=greedy"] if beam == 1 else ["search=beam", f"search.beam_size={beam}"]
    config = translate_config([*search, f"decoding.threads={threads}", *others])
    translator = Translator.of(load_ensemble([model]), config.search, config.decoding)
    lines = source.read_text(encoding="utf-8").split("\n")[:-1]
    translator(lines[:2])
    started_at = time.perf_counter()
    found = translator.translate(lines)
    seconds = time.perf_counter() - started_at
    out.write_text("".join(f"{each.text}\n" for each in found), encoding="utf-8")
    tokens = sum(len(ids) + 1 for each in found for _, ids in each.segments)
    print(json.dumps({"sentences": len(found), "tokens": tokens, "seconds": seconds}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]), sys.argv[6:])
