"""How fast models translate, measured side by side; in a process of its own."""

import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from tolka.config.translate_command import translate_config
from tolka.engines.options import DecodingConfig
from tolka.errors import ConfigError, TolkaError
from tolka.formats.any_model import load_any
from tolka.model_directory.names import models_of
from tolka.models.options import MODELS
from tolka.models.transformer.config import TransformerConfig
from tolka.options.parsing import build
from tolka.recipes.processes import run_tolka
from tolka.search.greedy import GreedyConfig
from tolka.system.number_format import json_text
from tolka.system.progress import say
from tolka.text.direction import Direction
from tolka.text.lines import read_lines
from tolka.translation.opening import open_model
from tolka.translation.translator import Translator

_ROUNDS = 5
K = TypeVar("K")
_LINE, _LINES, _TOKENS = "a b c d e f g h i j k l", 64, 24  # translated by weights that end no translation
_WIDTHS = (1.0, 0.75, 0.5, 0.375, 0.25)  # of the teacher's
_MULTIPLE = 32  # of which a student's width is


def translated(models: Mapping[str, str], source: Path, out: Path, direction: Direction) -> dict[str, float]:
    """Translate a file with each model into OUT/NAME.txt; return lines a second, the median of rounds in turn."""
    asked = json.dumps({"models": models, "source": str(source), "out": str(out), "direction": direction})
    rates: dict[str, float] = json.loads(run_tolka(["speed", asked], answers=True))
    return rates


def chosen_student(teacher: str, size: float, speed: float) -> dict[str, Any]:
    """Return the settings of the largest Transformer of at most a share of the teacher's parameters and of its time.

    speed: how many times as fast it shall be, with an encoder as deep as the teacher's and a decoder of fewer layers.
    """
    asked = json.dumps({"teacher": teacher, "size": size, "speed": speed})
    student: dict[str, Any] = json.loads(run_tolka(["speed", asked], answers=True))
    return student


def _translate(models: Mapping[str, str], source: str, out: str, direction: Sequence[str]) -> dict[str, float]:
    codes = [f"decoding.{side}={code}" for side, code in zip(("source", "target"), direction, strict=True)]
    config, lines = translate_config(codes), [*read_lines(Path(source))]
    translators = {
        name: open_model(models_of(path), config.search, config.decoding, say=say) for name, path in models.items()
    }
    for name, translator in translators.items():
        Path(out, f"{name}.txt").write_text("".join(f"{line}\n" for line in translator(lines)), encoding="utf-8")
    return {name: len(lines) / seconds for name, seconds in _timed(translators, lines).items()}


def _timed(translators: Mapping[K, Translator[Any]], lines: Sequence[str]) -> dict[K, float]:
    """Return the seconds in which each translates the lines: the median of rounds in turn, for a busy machine."""
    seconds: dict[K, list[float]] = {each: [] for each in translators}
    for _ in range(_ROUNDS):
        for each, translator in translators.items():
            started_at = time.perf_counter()
            translator(lines)
            seconds[each].append(time.perf_counter() - started_at)
    return {each: statistics.median(times) for each, times in seconds.items()}


def _choose(teacher: str, size: float, speed: float) -> dict[str, Any]:
    saved = [load_any(each) for each in models_of(teacher)]
    of_teacher = [build(MODELS.get(each.config["model"]["name"]), each.config["model"], "model") for each in saved]
    layers, tokenizer = max(3, *(getattr(each, "layers", 1) for each in of_teacher)), saved[0].tokenizer
    students = [
        TransformerConfig(d_model=_multiple(of_teacher[0].d_model * width), layers=layers, decoder_layers=few)
        for width, few in product(_WIDTHS, dict.fromkeys((max(1, layers // 3), 1)))
    ]
    models = [
        each.build(tokenizer.source_size, tokenizer.target_size, tokenizer.shared).eval()
        for each in (*of_teacher, *students)
    ]
    # Of random weights, which say as much as they may: so all write equally many tokens.
    search = GreedyConfig(max_length_factor=0.0, max_length_extra=_TOKENS)
    decoding = DecodingConfig(split="never")
    translators = {n: Translator.of(replace(saved[0], model=each), search, decoding) for n, each in enumerate(models)}
    count, seconds = len(of_teacher), _timed(translators, [_LINE] * _LINES)
    of_all, best = sum(seconds[number] for number in range(count)), 0.0
    most = size * sum(each.parameter_count() for each in models[:count])
    for number, student in enumerate(students, count):
        if models[number].parameter_count() <= most:
            best = max(best, of_all / seconds[number])
            if best >= speed:
                few = student.decoder_layers
                return {"model.d_model": student.d_model, "model.layers": layers, "model.decoder_layers": few}
    raise ConfigError(
        f"no student of at most {size:.0%} of the teacher's parameters is {speed:g} times as fast; the fastest one "
        f"tried is {best:.1f} times: lower recipe.speed, or raise recipe.size"
    )


def _multiple(width: float) -> int:
    return max(1, round(width / _MULTIPLE)) * _MULTIPLE


if __name__ == "__main__":
    asked = json.loads(sys.argv[-1])
    try:
        answer = _choose(**asked) if "teacher" in asked else _translate(**asked)
    except TolkaError as error:
        say(f"error: {error}")
        sys.exit(error.exit_code)
    print(json_text(answer))
