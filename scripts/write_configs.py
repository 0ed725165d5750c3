"""Write the YAML files of configs/ that hold a dataclass's defaults, each key under its help line.

The dataclasses are the truth; run this after changing one. A test compares what it would write with what is there.
"""

import argparse
import ast
import dataclasses
import inspect
import json
import textwrap
from pathlib import Path
from typing import Any

from tolka.config.schemas import REGISTRIES, FilesToScore, RunConfig
from tolka.data.buckets import BatchingConfig
from tolka.engines.options import DecodingConfig
from tolka.jobs.options import InputConfig, OutputConfig
from tolka.metrics.options import MetricsConfig
from tolka.options.settings import LISTED
from tolka.report.page import ReportConfig
from tolka.serve.options import LimitsConfig
from tolka.text.cleaning.steps import CleaningConfig
from tolka.tokenizer.tokenizer import TokenizerConfig
from tolka.tracking.options import TrackingConfig
from tolka.training.finetuning import FinetuningConfig
from tolka.training.options import TrainerConfig

# File -> the config that it holds; those of registered classes stand beside these, as PRESETS.
FILES: dict[str, Any] = {
    **{
        f"{group}/{name}": config
        for group, registry in REGISTRIES.items()
        for name, config in registry.presets().items()
    },
    "run/default": RunConfig(),
    "cleaning/none": CleaningConfig(),
    "cleaning/standard": CleaningConfig(
        unicode="nfc", control="strip", blanks="space", max_ratio=9.0, duplicates="exact", leaks="pair"
    ),
    "cleaning/strict": CleaningConfig(
        unicode="nfc",
        control="strip",
        blanks="space",
        markup="strip",
        max_ratio=4.0,
        copies=True,
        min_letters=0.5,
        numbers=True,
        script=True,
        duplicates="near",
        leaks="source",
    ),
    "tokenizer/bpe": TokenizerConfig(),
    "tokenizer/unigram": TokenizerConfig(type="unigram"),
    "tokenizer/char": TokenizerConfig(type="char"),
    "tokenizer/word": TokenizerConfig(type="word"),
    "batching/tokens": BatchingConfig(),
    "finetuning/default": FinetuningConfig(),
    "trainer/default": TrainerConfig(),
    "metrics/default": MetricsConfig(),
    "report/default": ReportConfig(),
    "tracking/default": TrackingConfig(),
    "decoding/default": DecodingConfig(),
    "input/default": InputConfig(),
    "output/default": OutputConfig(),
    "files/default": FilesToScore(),
    "limits/default": LimitsConfig(),
}


def help_lines(cls: type) -> dict[str, str]:
    """Field -> the docstring beneath it, base classes included."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not dataclasses.is_dataclass(base):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, text in zip(body.body, body.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
            ):
                found[field.target.id] = str(text.value.value)
    return found


def as_yaml(config: Any) -> str:
    """The config's values, each under its help line."""
    helps = help_lines(type(config))
    lines = []
    for field in sorted(dataclasses.fields(config), key=lambda field: field.name != "name"):
        if field.metadata.get(LISTED, True):
            lines += [f"# {helps[field.name]}", f"{field.name}: {scalar(getattr(config, field.name))}"]
    return "\n".join(lines) + "\n"


def scalar(value: Any) -> str:
    """A value as YAML: JSON, but for a float's exponent, which YAML wants with a dot."""
    if isinstance(value, float):
        text = repr(value)
        return text.replace("e", ".0e") if "e" in text and "." not in text else text
    return json.dumps(value, ensure_ascii=False)


def main() -> None:
    """Write every file of FILES under --out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parents[1] / "configs")
    out = parser.parse_args().out
    for name, config in FILES.items():
        path = out / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(as_yaml(config), encoding="utf-8")


if __name__ == "__main__":
    main()
