"""How fast models translate, measured side by side; in a process of its own."""

import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from tolka.config.translate_command import translate_config
from tolka.engines.options import DecodingConfig
from tolka.errors import ConfigError, TolkaError
from tolka.formats.any_model import load_any
from tolka.model_directory.read import SavedModel
from tolka.models.options import MODELS, ModelConfig
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

_ROUNDS = 3
_LINE, _LINES, _TOKENS = "a b c d e f g h i j k l", 64, 24  # translated by weights that end no translation
_WIDTHS = (1.0, 0.75, 0.5, 0.375, 0.25)  # of the teacher's
_MULTIPLE = 32  # of which a student's width is


def translated(models: Mapping[str, str], source: Path, out: Path, direction: Direction) -> dict[str, float]:
    """Translate a file with each model into OUT/NAME.txt; return lines a second, the median of rounds in turn."""
    asked = json.dumps({"models": models, "source": str(source), "out": str(out), "direction": direction})
    rates: dict[str, float] = json.loads(run_tolka(["speed", asked], answers=True))
    return rates


def chosen_student(teacher: Sequence[str], size: float, speed: float) -> dict[str, Any]:
    """Return the settings of the largest Transformer of at most a share of the teacher's parameters and of its time.

    speed: how many times as fast it shall be, with an encoder as deep as the teacher's and a decoder of fewer layers.
    """
    asked = json.dumps({"teacher": [*teacher], "size": size, "speed": speed})
    student: dict[str, Any] = json.loads(run_tolka(["speed", asked], answers=True))
    return student


def _translate(models: Mapping[str, str], source: str, out: str, direction: Sequence[str]) -> dict[str, float]:
    codes = [f"decoding.{side}={code}" for side, code in zip(("source", "target"), direction, strict=True)]
    config, lines = translate_config(codes), [*read_lines(Path(source))]
    translators = {
        name: open_model(path.split(","), config.search, config.decoding, say=say) for name, path in models.items()
    }
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(_ROUNDS):
        for name, translator in translators.items():
            started_at = time.perf_counter()
            found = translator(lines)
            seconds[name].append(time.perf_counter() - started_at)
            Path(out, f"{name}.txt").write_text("".join(f"{line}\n" for line in found), encoding="utf-8")
    return {name: len(lines) / statistics.median(each) for name, each in seconds.items()}


def _choose(teacher: Sequence[str], size: float, speed: float) -> dict[str, Any]:
    saved = [load_any(each) for each in teacher]
    options = [build(MODELS.get(each.config["model"]["name"]), each.config["model"], "model") for each in saved]
    parameters, seconds = (sum(each) for each in zip(*(_measured(saved[0], each) for each in options), strict=True))
    layers = max(3, *(getattr(each, "layers", 1) for each in options))
    best = 0.0
    for width, few in product(_WIDTHS, dict.fromkeys((max(1, layers // 3), 1))):
        d_model = max(1, round(options[0].d_model * width / _MULTIPLE)) * _MULTIPLE
        student = TransformerConfig(d_model=d_model, layers=layers, decoder_layers=few)
        own_parameters, own_seconds = _measured(saved[0], student)
        best = max(best, seconds / own_seconds if own_parameters <= size * parameters else 0.0)
        if best >= speed:
            return {"model.d_model": d_model, "model.layers": layers, "model.decoder_layers": few}
    raise ConfigError(
        f"no student of at most {size:.0%} of the teacher's parameters is {speed:g} times as fast; the fastest one "
        f"tried is {best:.1f} times: lower recipe.speed, or raise recipe.size"
    )


def _measured(saved: SavedModel, options: ModelConfig) -> tuple[int, float]:
    """Return a model's parameters, and the seconds in which one of random weights writes as much as it may."""
    tokenizer = saved.tokenizer
    model = options.build(tokenizer.source_size, tokenizer.target_size, tokenizer.shared).eval()
    search = GreedyConfig(max_length_factor=0.0, max_length_extra=_TOKENS)
    translator, times = Translator.of(replace(saved, model=model), search, DecodingConfig(split="never")), []
    for _ in range(_ROUNDS):
        started_at = time.perf_counter()
        translator([_LINE] * _LINES)
        times.append(time.perf_counter() - started_at)
    return model.parameter_count(), statistics.median(times)


if __name__ == "__main__":
    asked = json.loads(sys.argv[-1])
    try:
        answer = _choose(**asked) if "teacher" in asked else _translate(**asked)
    except TolkaError as error:
        say(f"error: {error}")
        sys.exit(error.exit_code)
    print(json_text(answer))
