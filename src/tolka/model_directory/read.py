"""Verify and load model directories; `write.py` writes them."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from safetensors import safe_open
from torch import Tensor

from tolka.errors import CheckpointError, TolkaError
from tolka.model_directory.facts import ModelFacts, readable_verdict
from tolka.model_directory.file_names import ADAPTER, BASE, CONFIG, SCORES, STATE_FACTS, STATE_TENSORS, WEIGHTS
from tolka.model_directory.settings import character_form, direction_of, find_model_folder, read_settings
from tolka.model_directory.verify import QUALITY, Manifest, TrainingSources, as_written, read_json, verified_manifest
from tolka.model_directory.weights import check_size, fill, fill_int8, read_tensors
from tolka.models.base import Seq2Seq
from tolka.models.ensemble import Ensemble
from tolka.nn.initialization import SkipInitialization
from tolka.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class SavedModel:
    """The content of a model directory.

    config: the whole training configuration; model options newer than the directory have their defaults.
    """

    folder: Path
    model: Seq2Seq
    tokenizer: Tokenizer
    config: dict[str, Any]
    sources: TrainingSources
    scores: dict[str, Any]

    @property
    def facts(self) -> ModelFacts:
        """Facts of the model that translating needs."""
        # Models of other programs name no directions of their texts: theirs is in config.yaml.
        directions = self.sources.directions or (direction_of(self.config),)
        form, quality, verdict = character_form(self.config), self.scores.get(QUALITY), readable_verdict(self.scores)
        return ModelFacts(self.tokenizer, self.sources, form, directions, quality, verdict)


def load_model(folder: Path, or_int8: bool = False) -> SavedModel:
    """Verify and load a model directory, or the `best/` of a run directory; CheckpointError if it is damaged.

    or_int8: whether the weights may be stored in int8, which is for translating only.
    """
    folder = find_model_folder(folder)
    manifest = verified_manifest(folder)
    if manifest.int8 and not or_int8:
        raise CheckpointError(
            f"{folder} has its weights in int8, for translating only: give the model that it was made from"
        )
    settings, model_config = read_settings(folder)
    scores = read_json(folder / SCORES)
    tokenizer = _load_tokenizer(folder, manifest)
    sizes = tokenizer.source_size, tokenizer.target_size, tokenizer.shared
    try:
        check_size(model_config, sizes, folder / WEIGHTS, manifest.int8)
        with SkipInitialization():
            model = model_config.build(*sizes)
    except CheckpointError:  # which names the file of the weights
        raise
    except TolkaError as error:
        raise CheckpointError(f"{folder / CONFIG}: {error}") from None
    (fill_int8 if manifest.int8 else fill)(model, folder)
    return SavedModel(folder, model.eval(), tokenizer, settings, manifest.sources, scores)


def as_ensemble(models: Sequence[SavedModel]) -> SavedModel:
    """Return several models as one; a single model as it is. CheckpointError if the models are incompatible.

    An ensemble has the folder, configuration and scores of the first model.
    """
    first, *others = models
    if not others:
        return first
    for other in others:
        reasons = incompatibilities(first, other)
        if reasons:
            raise CheckpointError(f"{first.folder} and {other.folder} cannot translate together: {', '.join(reasons)}")
    ensemble = Ensemble([first.model, *(other.model for other in others)])
    # A calibration fits the probabilities of one model. An ensemble can do what all of its models have learnt: min.
    scores = {name: value for name, value in first.scores.items() if name != QUALITY}
    sources = TrainingSources.combine([saved.sources for saved in models], min)
    return replace(first, model=ensemble.eval(), sources=sources, scores=scores)


def incompatibilities(first: SavedModel, other: SavedModel) -> list[str]:
    """Return why two models cannot be combined: other tokenizers, or opposite directions."""
    reasons = []
    if first.tokenizer.digests != other.tokenizer.digests:
        reasons.append("the tokenizers differ (ids mean other subwords)")
    direction = direction_of(first.config)
    if direction != direction.swapped == direction_of(other.config):
        reasons.append(f"one translates from {direction}, the other back")
    return reasons


def load_adapter(folder: Path) -> tuple[dict[str, Tensor], str]:
    """Verify and load the low-rank adapter of a model or run directory, and `base_digest` of what it was trained with.

    Its tensors are named after a weight + ".a" (r, in) or ".b" (out, r); B A is added to the weight.
    """
    folder = find_model_folder(folder)
    if ADAPTER not in verified_manifest(folder).files:
        raise CheckpointError(f"{folder} has no {ADAPTER}: it was not trained with finetuning.lora_rank")
    tensors = read_tensors(folder / ADAPTER)
    with safe_open(folder / ADAPTER, framework="pt") as opened:
        return tensors, (opened.metadata() or {}).get(BASE, "")


def load_tokenizer(folder: Path) -> Tokenizer:
    """Return the tokenizer of a model directory, or of the `best/` of a run; CheckpointError if it is damaged."""
    folder = find_model_folder(folder)
    return _load_tokenizer(folder, verified_manifest(folder))


def _load_tokenizer(folder: Path, manifest: Manifest) -> Tokenizer:
    tokenizer = Tokenizer.load(folder)
    manifest.require(tokenizer.file_names)
    return tokenizer


@dataclass(frozen=True)
class ResumeState:
    """State of a training besides the weights, in `last/` of its run: named tensors, and values for JSON."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]


def restoring(folder: Path) -> AbstractContextManager[None]:
    """Raise CheckpointError if the values of a state are not those that a training writes. folder: `last/`."""
    return as_written(f"{folder / STATE_FACTS} or {STATE_TENSORS}")


def load_state(folder: Path) -> ResumeState:
    """Verify and load the resume state of a run's `last/`."""
    verified_manifest(folder).require([STATE_FACTS, STATE_TENSORS])
    return ResumeState(read_tensors(folder / STATE_TENSORS), read_json(folder / STATE_FACTS))
