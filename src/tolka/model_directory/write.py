"""Snapshots of a model, written as model directories: atomically, and verified.

config.yaml, model.safetensors, tokenizer.model (or source.model and target.model), scores.json, README.md, and
manifest.json with the SHA-256 of each; adapter.safetensors after training with adapters. `last/` of a run also has
state/, to resume training. Nothing is pickled.
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
from tolka.model_directory.file_names import ADAPTER, BASE, CARD, CONFIG, SCORES, STATE_FACTS, STATE_TENSORS, WEIGHTS
from tolka.model_directory.read import ResumeState
from tolka.model_directory.verify import TrainingSources, checked_manifest, write_manifest
from tolka.model_directory.weights import unique_tensors
from tolka.nn.lora import adapter_tensors, base_digest, merged_state
from tolka.system.atomic import whole_folder
from tolka.system.number_format import json_text
from tolka.tokenizer.tokenizer import Tokenizer

Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class Snapshot:
    """A model on the CPU, with all other content of its directory.

    config: the whole training configuration. base: `base_digest` of the weights that the adapter was trained with.
    int8: whether the weights are those of `int8_tensors`. is_copy: whether it shares no memory with the model.
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
    int8: bool = False
    is_copy: bool = True

    def with_state(self, state: ResumeState) -> "Snapshot":
        """Return the snapshot with the state from which training resumes."""
        return replace(self, state=replace(state, tensors=_to_cpu(state.tensors, self.is_copy)))

    def write(self, folder: Path) -> None:
        """Write a model directory, which replaces an existing one only when complete and verified.

        Low-rank adapters are merged into the weights, and also written separately for `load_adapter`. CheckpointError
        or OSError when it cannot be written; an existing directory is then unchanged.
        """
        with whole_folder(folder) as work:
            save_tensors(self.weights, work / WEIGHTS)
            text = yaml.safe_dump(dict(self.config), allow_unicode=True, sort_keys=False)
            (work / CONFIG).write_text(text, encoding="utf-8")
            if self.adapter:
                save_tensors(self.adapter, work / ADAPTER, {BASE: self.base})
            self.tokenizer.save(work)
            if self.state is not None:
                (work / STATE_FACTS).parent.mkdir()
                save_tensors(self.state.tensors, work / STATE_TENSORS)
                (work / STATE_FACTS).write_text(json.dumps(self.state.facts), encoding="utf-8")
            finish(work, self.scores, self.card, self.sources, self.int8)


def snapshot(
    model: torch.nn.Module,
    tokenizer: Tokenizer,
    config: Mapping[str, Any],
    sources: TrainingSources,
    scores: Mapping[str, Any],
    card: str,
    copy: bool = False,
) -> Snapshot:
    """Take a snapshot of a model. copy: independent of further training."""
    # A state_dict names a shared matrix several times; safetensors stores it once, under its first name.
    weights, adapter = _to_cpu(unique_tensors(merged_state(model)), copy), _to_cpu(adapter_tensors(model), copy)
    base = base_digest(model) if adapter else ""
    return Snapshot(weights, adapter, base, tokenizer, config, sources, scores, card, is_copy=copy)


def rescore(folder: Path, scores: Mapping[str, Any], card: str, out: Path | None = None) -> None:
    """Replace the scores and the card of a model directory, or of its copy `out`; it stays complete if that fails."""
    manifest = checked_manifest(folder)
    with whole_folder(out or folder) as work:
        shutil.copytree(folder, work, copy_function=shutil.copyfile, dirs_exist_ok=True)
        finish(work, scores, card, manifest.sources, manifest.int8)


def finish(work: Path, scores: Mapping[str, Any], card: str, sources: TrainingSources, int8: bool) -> None:
    """Write the scores, the card and, last, the manifest; verify all files by reading them again."""
    (work / SCORES).write_text(json_text(scores, ensure_ascii=False, indent=1), encoding="utf-8")
    (work / CARD).write_text(card, encoding="utf-8")
    write_manifest(work, sources, int8)
    checked_manifest(work)


def _to_cpu(tensors: Tensors, copy: bool) -> Tensors:
    return {name: tensor.detach().to("cpu", copy=copy).contiguous() for name, tensor in tensors.items()}


def save_tensors(tensors: Tensors, path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file; CheckpointError if it cannot be written."""
    try:
        save_file(tensors, path, metadata)
    except SafetensorError as error:
        raise CheckpointError(f"{path} could not be written ({error}); is the disk full?") from None
