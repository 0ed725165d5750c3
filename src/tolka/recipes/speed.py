"""How fast models translate, measured side by side; in a process of its own."""

import statistics
import time
from collections.abc import Mapping
from pathlib import Path

from tolka.config.translate_command import translate_config
from tolka.model_directory.names import models_of
from tolka.system.progress import say
from tolka.system.workers import call
from tolka.text.direction import Direction
from tolka.text.lines import read_lines
from tolka.translation.opening import open_model

_ROUNDS = 5


def translated(models: Mapping[str, str], source: Path, out: Path, direction: Direction) -> dict[str, float]:
    """Translate a file with each model into OUT/NAME.txt; return lines a second, the median of rounds in turn."""
    return call(_translate, models, source, out, direction, is_command=True)


def _translate(models: Mapping[str, str], source: Path, out: Path, direction: Direction) -> dict[str, float]:
    codes = [f"decoding.{side}={code}" for side, code in zip(("source", "target"), direction, strict=True)]
    config, lines = translate_config(codes), [*read_lines(source)]
    translators = {
        name: open_model(models_of(path), config.search, config.decoding, say=say) for name, path in models.items()
    }
    for name, translator in translators.items():
        (out / f"{name}.txt").write_text("".join(f"{line}\n" for line in translator(lines)), encoding="utf-8")
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(_ROUNDS):  # in turn, for a busy machine
        for name, translator in translators.items():
            started_at = time.perf_counter()
            translator(lines)
            seconds[name].append(time.perf_counter() - started_at)
    return {name: len(lines) / statistics.median(times) for name, times in seconds.items()}
