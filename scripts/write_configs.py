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

from tolka.config.schemas import FilesToScore, RunConfig
from tolka.data.buckets import BatchingConfig
from tolka.evaluation.attention_maps import AttentionConfig
from tolka.metrics.scores import MetricsConfig
from tolka.models.rnn.config import RnnConfig
from tolka.models.transformer import TransformerConfig
from tolka.report.page import ReportConfig
from tolka.search.beam import BeamConfig
from tolka.search.greedy import GreedyConfig
from tolka.text.cleaning.steps import CleaningConfig
from tolka.text.corpora.files import FilesConfig, SampleConfig
from tolka.text.corpora.hub import HubConfig
from tolka.text.tokenizer.tokenizer import TokenizerConfig
from tolka.training.finetuning import FinetuningConfig
from tolka.training.optimizers.adafactor import AdafactorConfig
from tolka.training.optimizers.adam import AdamConfig, AdamWConfig
from tolka.training.optimizers.muon import MuonConfig
from tolka.training.optimizers.sgd import SGDConfig
from tolka.training.options import TrainerConfig
from tolka.training.schedules.constant import ConstantConfig
from tolka.training.schedules.cosine import CosineConfig
from tolka.training.schedules.inverse_sqrt import InverseSqrtConfig
from tolka.training.schedules.linear import LinearConfig
from tolka.training.schedules.noam import NoamConfig
from tolka.training.schedules.wsd import WarmupStableDecayConfig
from tolka.translation.options import DecodingConfig

# File -> the config that it holds, with what differs from the class's defaults.
FILES: dict[str, Any] = {
    "run/default": RunConfig(),
    "corpus/sample": SampleConfig(),
    "corpus/files": FilesConfig(target="de"),
    "corpus/hub": HubConfig(target="de"),
    "cleaning/none": CleaningConfig(),
    "cleaning/standard": CleaningConfig(
        unicode="nfc", control="strip", max_ratio=9.0, duplicates="exact", leaks="pair"
    ),
    "cleaning/strict": CleaningConfig(
        unicode="nfc",
        control="strip",
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
    "model/transformer_tiny": TransformerConfig(d_model=128),
    "model/transformer_small": TransformerConfig(),
    "model/transformer_base": TransformerConfig(d_model=512, heads=8, layers=6),
    "model/transformer_big": TransformerConfig(d_model=1024, heads=16, layers=6, dropout=0.3),
    "model/rnn": RnnConfig(cell="rnn"),
    "model/lstm": RnnConfig(cell="lstm"),
    "model/gru": RnnConfig(cell="gru"),
    "model/rnn_attention": RnnConfig(cell="rnn", attention="general"),
    "model/lstm_attention": RnnConfig(cell="lstm", attention="general"),
    "model/gru_attention": RnnConfig(cell="gru", attention="general"),
    "model/bilstm_deep": RnnConfig(cell="lstm", layers=2, bidirectional=True),
    "model/bilstm_attention": RnnConfig(cell="lstm", bidirectional=True, attention="additive"),
    "model/bilstm_deep_attention": RnnConfig(
        cell="lstm", layers=2, bidirectional=True, attention="general", input_feeding=True, token_term=True
    ),
    "optimizer/adamw": AdamWConfig(),
    "optimizer/adam": AdamConfig(),
    "optimizer/sgd": SGDConfig(),
    "optimizer/adafactor": AdafactorConfig(),
    "optimizer/muon": MuonConfig(),
    "scheduler/inverse_sqrt": InverseSqrtConfig(),
    "scheduler/linear": LinearConfig(),
    "scheduler/cosine": CosineConfig(),
    "scheduler/wsd": WarmupStableDecayConfig(),
    "scheduler/constant": ConstantConfig(),
    "scheduler/noam": NoamConfig(),
    "finetuning/default": FinetuningConfig(),
    "trainer/default": TrainerConfig(),
    "search/beam": BeamConfig(),
    "search/greedy": GreedyConfig(),
    "metrics/default": MetricsConfig(),
    "report/default": ReportConfig(),
    "decoding/default": DecodingConfig(),
    "attention/default": AttentionConfig(),
    "files/default": FilesToScore(),
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
