"""Where the time of tolka's decoding goes, by torch's profiler.

    python benchmarks/profile_decoding.py MODEL SOURCE [search=greedy] [decoding.precision=int8] [key=value ...]

Prints the operations of translating SOURCE by their own time, with their share, calls, and milliseconds a sentence;
one batch after the other.
"""

import sys
import time
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from profiles import show
from tolka.config.command_line import translate_config
from tolka.model_directory.read import load_model
from tolka.system.memory import keep_freed_memory
from tolka.translation.translator import Translator

WARM_UP = 2  # passes, after which nothing is prepared any more
IN_TURN = "decoding.threads=1"  # the profiler sees what this thread starts


def main(model: Path, source: Path, settings: list[str]) -> None:
    """Translate: to warm up, by the clock, and under the profiler."""
    keep_freed_memory()
    config = translate_config([IN_TURN, *settings])
    translator = Translator.of(load_model(model), config.search, config.decoding)
    lines = source.read_text(encoding="utf-8").split("\n")[:-1]
    for _ in range(WARM_UP):
        translator(lines)
    started_at = time.perf_counter()
    translator(lines)
    seconds = time.perf_counter() - started_at
    print(f"{len(lines)} sentences in {seconds:.2f} s, {torch.get_num_threads()} threads; ", end="")
    with profile(activities=[ProfilerActivity.CPU]) as found:
        translator(lines)
    show(found, len(lines), "a sentence")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
