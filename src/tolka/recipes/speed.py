"""How fast models translate, measured side by side; in a process of its own."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from tolka.config.translate_command import translate_config
from tolka.engines.options import DecodingConfig
from tolka.engines.torch_engine import TorchEngine
from tolka.errors import ConfigError
from tolka.formats.any_model import load_any
from tolka.model_directory.names import models_of
from tolka.models.options import MODELS
from tolka.models.rnn.config import PRESETS
from tolka.models.seq2seq import Seq2Seq
from tolka.models.transformer.config import TransformerConfig
from tolka.options.parsing import build
from tolka.search.greedy import GreedyConfig
from tolka.system.progress import say
from tolka.system.workers import call
from tolka.text.direction import Direction
from tolka.text.lines import read_lines
from tolka.translation.opening import open_model

_ROUNDS = 5
K = TypeVar("K")
_SOURCE, _LINES, _TOKENS = [*range(4, 16)], 64, 24  # of ids, translated by weights that end no translation
_WIDTHS = (1.0, 0.75, 0.5, 0.375, 0.25)  # of the teacher's
_MULTIPLE = 32  # of which a student's width is


def translated(models: Mapping[str, str], source: Path, out: Path, direction: Direction) -> dict[str, float]:
    """Translate a file with each model into OUT/NAME.txt; return lines a second, the median of rounds in turn."""
    return call(_translate, models, source, out, direction, is_command=True)


def chosen_student(teacher: str, size: float, speed: float, family: str = "any", halves: bool = True) -> dict[str, Any]:
    """Return the settings of the widest student of at most a share of the teacher's parameters and of its time.

    speed: how many times as fast it shall be. family: rnn, transformer (with an encoder as deep as the teacher's and a
    decoder of fewer layers), or any = the teacher's. halves: whether it may have half of the teacher's subwords.
    """
    return call(_choose, teacher, size, speed, family, halves, is_command=True)


def _translate(models: Mapping[str, str], source: Path, out: Path, direction: Direction) -> dict[str, float]:
    codes = [f"decoding.{side}={code}" for side, code in zip(("source", "target"), direction, strict=True)]
    config, lines = translate_config(codes), [*read_lines(source)]
    translators = {
        name: open_model(models_of(path), config.search, config.decoding, say=say) for name, path in models.items()
    }
    for name, translator in translators.items():
        (out / f"{name}.txt").write_text("".join(f"{line}\n" for line in translator(lines)), encoding="utf-8")
    works = {name: partial(translator, lines) for name, translator in translators.items()}
    return {name: len(lines) / seconds for name, seconds in _timed(works).items()}


def _timed(works: Mapping[K, Callable[[], object]]) -> dict[K, float]:
    """Return the seconds that each takes: the median of rounds in turn, for a busy machine."""
    seconds: dict[K, list[float]] = {each: [] for each in works}
    for _ in range(_ROUNDS):
        for each, work in works.items():
            started_at = time.perf_counter()
            work()
            seconds[each].append(time.perf_counter() - started_at)
    return {each: statistics.median(times) for each, times in seconds.items()}


def _choose(teacher: str, size: float, speed: float, family: str, halves: bool) -> dict[str, Any]:
    saved = [load_any(each) for each in models_of(teacher)]
    of_teacher = [build(MODELS.get(each.config["model"]["name"]), each.config["model"], "model") for each in saved]
    layers, tokenizer = max(3, *(getattr(each, "layers", 1) for each in of_teacher)), saved[0].tokenizer
    # Where a recurrent model was the better teacher, it is the better student.
    if family == "any":
        family = "transformer" if isinstance(of_teacher[0], TransformerConfig) else "rnn"
    kinds: list[Any] = [PRESETS["bilstm_attention"]]
    if family == "transformer":
        kinds = [
            TransformerConfig(layers=layers, decoder_layers=few) for few in dict.fromkeys((max(1, layers // 3), 1))
        ]
    widths = [_multiple(of_teacher[0].d_model * width) for width in _WIDTHS]
    whole = tokenizer.target_size
    vocabularies = [whole, whole // 2] if halves else [whole]
    teachers = [each.build(tokenizer.source_size, whole, tokenizer.shared) for each in of_teacher]
    most, best = size * sum(each.parameter_count() for each in teachers), 0.0
    for width, kind, rows in product(widths, kinds, vocabularies):
        student = replace(kind, d_model=width)
        model = student.build(rows, rows, True)
        if model.parameter_count() <= most:
            times = _timed({n: _writing(each) for n, each in enumerate([model, *teachers])})
            best = max(best, (sum(times.values()) - times[0]) / times[0])
            if best >= speed:
                few = {"model.decoder_layers": student.decoder_layers} if family == "transformer" else {}
                size_of = {"model.d_model": width, "model.layers": student.layers, **few}
                return {"model.family": family, **size_of, **({"tokenizer.vocab_size": rows} if halves else {})}
    if not best:
        raise ConfigError(
            f"no student has at most {size:.0%} of the teacher's {round(most / size):,} parameters: raise recipe.size"
        )
    raise ConfigError(
        f"no student of at most {size:.0%} of the teacher's parameters is {speed:g} times as fast; the fastest one "
        f"tried is {best:.1f} times: lower recipe.speed, or raise recipe.size"
    )


def _writing(model: Seq2Seq) -> Callable[[], object]:
    """Return a function that translates with a model of random weights, which writes as much as it may."""
    search = GreedyConfig(max_length_factor=0.0, max_length_extra=_TOKENS)
    return partial(TorchEngine.of(model.eval(), DecodingConfig()).translate, search, [_SOURCE] * _LINES)


def _multiple(width: float) -> int:
    return max(1, round(width / _MULTIPLE)) * _MULTIPLE
