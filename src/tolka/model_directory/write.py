"""A model as it is at one moment, and the model directory that becomes of it: whole or not at all, verified.

config.yaml, model.safetensors, tokenizer.model (or source.model and target.model), scores.json, README.md, and
manifest.json with the SHA-256 of each; adapter.safetensors after training with adapters. `last/` of a run also has
state/, to go on training. Nothing is pickled.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from tolka.errors import CheckpointError
from tolka.model_directory.file_names import (
    ADAPTER,
    BASE,
    CARD,
    CONFIG,
    SCORES,
    STATE_FACTS,
    STATE_TENSORS,
    WEIGHTS,
    ResumeState,
    each_once,
)
from tolka.model_directory.manifest import TrainingSources, checked_manifest, write_manifest
from tolka.nn.lora import adapter_tensors, base_digest, merged_state
from tolka.system.atomic import whole_folder
from tolka.system.number_format import json_text
from tolka.text.tokenizer.tokenizer import Tokenizer

Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class Snapshot:
    """Nothing that training goes on to change: tensors are copies, on the CPU.

    config: the whole training configuration. base: of the weights that the adapter stands beside.
    """

    weights: Tensors
    adapter: Tensors
    base: str
    tokenizer: Tokenizer
    config: Mapping[str, Any]
    sources: TrainingSources
    scores: Mapping[str, Any]
    card: str
    state: ResumeState | None = None

    def with_state(self, state: ResumeState) -> "Snapshot":
        """The same, to be resumed from."""
        return replace(self, state=ResumeState(_copied(state.tensors), state.facts))

    def write(self, folder: Path) -> None:
        """Make it a model directory, which takes the place of another one once it is whole and its checksums are right.

        Low-rank adapters are merged into the weights, and written apart for `load_adapter`. CheckpointError or OSError
        when it cannot be written; what stood there before still stands.
        """
        with whole_folder(folder) as work:
            _save(self.weights, work / WEIGHTS)
            text = yaml.safe_dump(dict(self.config), allow_unicode=True, sort_keys=False)
            (work / CONFIG).write_text(text, encoding="utf-8")
            if self.adapter:
                _save(self.adapter, work / ADAPTER, {BASE: self.base})
            self.tokenizer.save(work)
            if self.state is not None:
                (work / STATE_FACTS).parent.mkdir()
                _save(self.state.tensors, work / STATE_TENSORS)
                (work / STATE_FACTS).write_text(json.dumps(self.state.facts), encoding="utf-8")
            _finish(work, self.scores, self.card, self.sources)


def snapshot(
    model: torch.nn.Module,
    tokenizer: Tokenizer,
    config: Mapping[str, Any],
    sources: TrainingSources,
    scores: Mapping[str, Any],
    card: str,
) -> Snapshot:
    """Of a model as it is now."""
    # A state names a shared matrix several times; safetensors stores each storage once, under its first name.
    weights, adapter = _copied(each_once(merged_state(model))), _copied(adapter_tensors(model))
    base = base_digest(model) if adapter else ""
    return Snapshot(weights, adapter, base, tokenizer, config, sources, scores, card)


def rescore(folder: Path, scores: Mapping[str, Any], card: str) -> None:
    """Give a model directory other scores and another card; all else stays as it is."""
    sources = checked_manifest(folder).sources
    with whole_folder(folder) as work:
        for path in sorted(folder.rglob("*")):  # folders before what is in them
            if path.is_dir():
                (work / path.relative_to(folder)).mkdir()
            else:
                shutil.copyfile(path, work / path.relative_to(folder))
        _finish(work, scores, card, sources)


def _finish(work: Path, scores: Mapping[str, Any], card: str, sources: TrainingSources) -> None:
    """Write the scores, the card and, last, the manifest of all that is there; read it all once more."""
    (work / SCORES).write_text(json_text(scores, ensure_ascii=False, indent=1), encoding="utf-8")
    (work / CARD).write_text(card, encoding="utf-8")
    write_manifest(work, sources)
    checked_manifest(work)


def _copied(tensors: Tensors) -> Tensors:
    return {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()}


def _save(tensors: Tensors, path: Path, metadata: dict[str, str] | None = None) -> None:
    try:
        save_file(tensors, path, metadata)
    except SafetensorError as error:
        raise CheckpointError(f"{path} could not be written ({error}); is the disk full?") from None
