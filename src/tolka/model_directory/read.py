"""Verify and load model directories; `write.py` writes them."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor

from tolka.errors import CheckpointError, ConfigError, TolkaError
from tolka.model_directory.file_names import (
    ADAPTER,
    BASE,
    CONFIG,
    SCORES,
    STATE_FACTS,
    STATE_SHARDS,
    STATE_TENSORS,
    WEIGHTS,
    ResumeState,
    unique_tensors,
)
from tolka.model_directory.manifest import MANIFEST, Manifest, TrainingSources, checked_manifest
from tolka.model_directory.upgrade import upgrade_config
from tolka.models.base import MODELS, ModelConfig, Seq2Seq
from tolka.models.ensemble import Ensemble
from tolka.nn.initialization import SkipInitialization
from tolka.options.parsing import build
from tolka.options.registry import plugins_of
from tolka.system.atomic import standing
from tolka.text.cleaning.steps import CleaningConfig
from tolka.text.tokenizer.tokenizer import Tokenizer, TokenizerConfig

_BYTES = 4  # per parameter in fp32
_SLACK = 64 * 2**20  # bytes allowed beyond the file's size, so that a later message names the missing weights

Folders = str | Path | Sequence[str | Path]
"""A model or run directory, or several."""


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


def load_model(folder: Path) -> SavedModel:
    """Verify and load a model directory, or the `best/` of a run directory; CheckpointError if it is damaged."""
    folder = _find_model_folder(folder)
    manifest = _verified_manifest(folder)
    settings, model_config = _read_settings(folder)
    scores = _read_json(folder / SCORES)
    tokenizer = _load_tokenizer(folder, manifest)
    sizes = tokenizer.source_size, tokenizer.target_size, tokenizer.shared
    try:
        _check_size(model_config, sizes, folder / WEIGHTS)
        with SkipInitialization():
            model = model_config.build(*sizes)
    except TolkaError as error:
        raise CheckpointError(f"{folder / CONFIG}: {error}") from None
    _load_weights(model, folder)
    return SavedModel(folder, model.eval(), tokenizer, settings, manifest.sources, scores)


def _check_size(config: ModelConfig, sizes: tuple[int, int, bool], path: Path) -> None:
    """Raise CheckpointError if a configuration describes a larger model than the weights file can hold.

    A directory may come from an untrusted source: no memory is allocated for sizes that it only claims. sizes: as for
    `ModelConfig.build`. path: of the weights.
    """
    tensors, size = len(_tensor_names(path)), path.stat().st_size
    for key, value in asdict(config).items():
        most = tensors if key.endswith("layers") else size
        if isinstance(value, int) and value > most:
            raise CheckpointError(f"model.{key} is {value}, and {path.name} has {tensors} tensors in {size} bytes")
    with torch.device("meta"), SkipInitialization():  # shapes without memory
        needed = _BYTES * config.build(*sizes).parameter_count()
    if needed > size + _SLACK:
        raise CheckpointError(f"the model that it describes has {needed} bytes of weights, and {path.name} has {size}")


def _tensor_names(path: Path) -> list[str]:
    """Return the names of a file's tensors."""
    try:
        with safe_open(path, framework="pt") as opened:
            return list(opened.keys())
    except SafetensorError as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from None


def load_ensemble(folders: Folders, weights: Sequence[float] = ()) -> SavedModel:
    """Load one model directory, or several as an ensemble. weights: of each model's probabilities; equal if none.

    An ensemble has the folder, configuration and scores of the first model, and the smallest of each statistic of the
    sources. CheckpointError if the models are incompatible, ConfigError if there are not as many weights as models.
    """
    listed = _as_list(folders)
    if weights and len(weights) != len(listed):
        raise ConfigError(
            f"decoding.weights has length {len(weights)}, but the number of models is {len(listed)}: give one weight "
            "for each, in their order, or leave it out"
        )
    first, *others = [load_model(Path(folder)) for folder in listed]
    if not others:
        return first
    for other in others:
        reasons = incompatibilities(first, other)
        if reasons:
            raise CheckpointError(f"{first.folder} and {other.folder} cannot translate together: {', '.join(reasons)}")
    ensemble = Ensemble([first.model, *(other.model for other in others)], weights)
    longest = min(saved.sources.longest for saved in (first, *others))
    shares = [saved.sources.several_sentences for saved in (first, *others)]
    share = None if None in shares else min(share for share in shares if share is not None)
    return replace(first, model=ensemble.eval(), sources=TrainingSources(longest, share))


def digests(folders: Folders) -> list[str]:
    """Return a digest of what each model translates with: its weights, tokenizer and settings, from the manifest."""
    checksums = [json.dumps(_checksums(Path(each))) for each in _as_list(folders)]
    return [hashlib.sha256(text.encode()).hexdigest()[:16] for text in checksums]


def _checksums(folder: Path) -> list[str]:
    """Return the checksums of a model directory's files that decide what it translates."""
    files = json.loads((_find_model_folder(folder) / MANIFEST).read_text(encoding="utf-8"))["files"]
    return [f"{name}:{files[name]}" for name in sorted(files) if name in (WEIGHTS, CONFIG) or name.endswith(".model")]


def _as_list(folders: Folders) -> Sequence[str | Path]:
    listed = [folders] if isinstance(folders, str | Path) else folders
    if not listed:
        raise ConfigError("no model directory is named")
    return listed


def incompatibilities(first: SavedModel, other: SavedModel) -> list[str]:
    """Return why two models cannot be combined: other tokenizers, or opposite directions."""
    reasons = []
    if first.tokenizer.digests != other.tokenizer.digests:
        reasons.append("the tokenizers differ (ids mean other subwords)")
    source, target = languages(first.config)
    if source != target and (target, source) == languages(other.config):
        reasons.append(f"one translates from {source} to {target}, the other back")
    return reasons


def languages(settings: Mapping[str, Any]) -> tuple[str, str]:
    """Return source and target language of a training configuration."""
    return str(settings["corpus"]["source"]), str(settings["corpus"]["target"])


def unicode_form(settings: Mapping[str, Any]) -> str:
    """Return the Unicode form of a training configuration, `cleaning.unicode`."""
    return str(settings.get("cleaning", {}).get("unicode", "keep"))


def load_settings(folder: Path) -> dict[str, Any]:
    """Return the training configuration of a model directory, or of a run directory's `best/`.

    Options of model and tokenizer that are newer than the file have their defaults.
    """
    folder = _find_model_folder(folder)
    settings, _ = _read_settings(folder)
    if not isinstance(settings.get("tokenizer"), dict):
        raise CheckpointError(f"{folder / CONFIG} does not describe a tokenizer")
    try:
        tokenizer = build(TokenizerConfig, settings["tokenizer"], "tokenizer")
    except TolkaError as error:
        raise CheckpointError(f"{folder / CONFIG}: {error}") from None
    return {**settings, "tokenizer": asdict(tokenizer)}


def _read_settings(folder: Path) -> tuple[dict[str, Any], ModelConfig]:
    """Read config.yaml and its model options; options newer than the file have their defaults."""
    path = folder / CONFIG
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read ({' '.join(str(error).split())})") from None
    if not isinstance(config, dict) or not isinstance(config.get("model"), dict):
        raise CheckpointError(f"{path} does not describe a model")
    corpus = config.get("corpus")
    if not isinstance(corpus, dict) or not all(isinstance(corpus.get(side), str) for side in ("source", "target")):
        raise CheckpointError(f"{path} does not say its languages (corpus.source, corpus.target)")
    config = upgrade_config(config)
    options = {str(key): value for key, value in config["model"].items()}
    try:
        model = build(MODELS.get(str(options.get("name")), plugins_of(config)), options, "model")
        build(CleaningConfig, config.get("cleaning", {}), "cleaning")  # has the Unicode form of the text
    except TolkaError as error:
        raise CheckpointError(f"{path}: {error}") from None
    return {**{str(key): value for key, value in config.items()}, "model": asdict(model)}, model


def load_state(folder: Path) -> ResumeState:
    """Verify and load the resume state of a run's `last/`."""
    _verified_manifest(folder).require([STATE_FACTS, STATE_TENSORS])
    shards = None
    if (folder / STATE_SHARDS).is_dir():
        from tolka.model_directory.shards import Shards

        shards = Shards(folder / STATE_SHARDS)
    return ResumeState(_read_tensors(folder / STATE_TENSORS), _read_json(folder / STATE_FACTS), shards)


def _read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds an object."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read ({' '.join(str(error).split())})") from None
    if not isinstance(values, dict):
        raise CheckpointError(f"{path} cannot be read (it has no names in it)")
    return values


def load_weights(model: Seq2Seq, folder: Path) -> None:
    """Verify a directory and load its weights into a model of the same configuration."""
    _verified_manifest(folder)
    _load_weights(model, folder)


@dataclass(frozen=True)
class Adapter:
    """A low-rank adapter, with the tokenizer and the base model that it belongs to.

    tensors: name of a weight + ".a" (r, in) or ".b" (out, r); B A is added to the weight. base: `base_digest` of the
    model that it was trained with; None in a directory without it.
    """

    tensors: dict[str, Tensor]
    tokenizer: Tokenizer
    base: str | None


def load_adapter(folder: Path) -> Adapter:
    """Verify and load the low-rank adapter of a model or run directory."""
    folder = _find_model_folder(folder)
    manifest = _verified_manifest(folder)
    if ADAPTER not in manifest.files:
        raise CheckpointError(f"{folder} has no {ADAPTER}: it was not trained with finetuning.lora_rank")
    path = folder / ADAPTER
    tensors = _read_tensors(path)
    with safe_open(path, framework="pt") as opened:
        base = (opened.metadata() or {}).get(BASE)
    return Adapter(tensors, _load_tokenizer(folder, manifest), base)


def average_weights(folders: Sequence[Path], model: Seq2Seq) -> dict[str, Tensor]:
    """Return the mean of several model directories' weights (Vaswani et al. 2017, section 6.1), summed in float64.

    model: one of the same shape. CheckpointError, with what differs, if the shapes differ.
    """
    totals: dict[str, Tensor] = {}
    shapes: dict[str, Tensor] = {}  # of the first, on the meta device
    for folder in folders:
        _verified_manifest(folder)
        weights = _read_weights(folder, model)
        if shapes:
            differing = _differing(weights, shapes)
            if differing:
                raise CheckpointError(
                    f"{folder} cannot be averaged with {folders[0]}; {len(differing)} tensors differ: "
                    f"{', '.join(differing[:4])}"
                )
        shapes = shapes or {name: weight.to("meta") for name, weight in weights.items()}
        for name, weight in weights.items():
            totals[name] = totals[name] + weight.double() if name in totals else weight.double()
    return {name: (total / len(folders)).float() for name, total in totals.items()}


def _read_weights(folder: Path, model: Seq2Seq) -> dict[str, Tensor]:
    """Read a directory's weights, under the model's names for them; CheckpointError if one is NaN or inf."""
    weights, state = _read_tensors(folder / WEIGHTS), model.state_dict()
    if non_finite := [name for name, weight in weights.items() if not bool(weight.isfinite().all())]:
        raise CheckpointError(
            f"{folder / WEIGHTS}: the model's weights are not finite (NaN or inf in {len(non_finite)} of "
            f"{len(weights)} tensors, {non_finite[0]} among them): nothing can be done with it; take another checkpoint"
        )
    first_names = {state[name].data_ptr(): name for name in unique_tensors(state)}
    # A shared matrix may have been saved under another of its names: which is the first depends on the version.
    for name in state.keys() & weights.keys():
        first_name = first_names[state[name].data_ptr()]
        if first_name not in weights:
            weights[first_name] = weights.pop(name)
    return weights


def _load_weights(model: Seq2Seq, folder: Path) -> None:
    weights = _read_weights(folder, model)
    differing = _differing(weights, unique_tensors(model.state_dict()))
    if differing:
        raise CheckpointError(
            f"{folder / WEIGHTS} does not fit {CONFIG}; {len(differing)} tensors differ: {', '.join(differing[:4])}"
        )
    model.load_state_dict(weights, strict=False)


def _read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except SafetensorError as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from None


def _differing(actual: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> list[str]:
    """Return the names that only one side has; if there are none, the tensors whose shapes or dtypes differ."""
    return sorted(actual.keys() ^ expected.keys()) or [
        f"{name} {_shape(actual[name])} instead of {_shape(tensor)}"
        for name, tensor in expected.items()
        if _shape(actual[name]) != _shape(tensor)
    ]


def _shape(tensor: Tensor) -> str:
    """Return the shape as (2, 3), followed by the dtype if it is not fp32."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    return f"{tuple(tensor.shape)}" + (f" {dtype}" if tensor.dtype != torch.float32 else "")


def _find_model_folder(folder: Path) -> Path:
    """Return the folder itself, or `best/` of a run directory."""
    for candidate in (folder, standing(folder / "best")):
        if (candidate / MANIFEST).is_file():
            return candidate
    if not folder.is_dir():
        raise CheckpointError(f"{folder}: there is no such model directory")
    raise CheckpointError(
        f"{folder} is no model directory: it has no {MANIFEST}. Give a run directory with best/ in it, or best/ itself"
    )


def _verified_manifest(folder: Path) -> Manifest:
    manifest = checked_manifest(folder)
    manifest.require([CONFIG, WEIGHTS, SCORES])
    return manifest


def _load_tokenizer(folder: Path, manifest: Manifest) -> Tokenizer:
    tokenizer = Tokenizer.load(folder)
    manifest.require(tokenizer.file_names)
    return tokenizer
