"""Make models from finished ones: average several, merge an adapter into one, store one in int8."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from tolka.errors import CheckpointError, ConfigError
from tolka.model_directory.card import MADE_OF, MEASURED, facts_of, model_card, parity_section
from tolka.model_directory.read import SavedModel, incompatibilities, load_adapter, load_model, load_tokenizer
from tolka.model_directory.verify import TrainingSources, as_written
from tolka.model_directory.weights import average_weights, int8_tensors
from tolka.model_directory.write import snapshot
from tolka.models.options import TRAINING_ONLY, resolved_options
from tolka.nn.lora import base_digest


def average_models(folders: Sequence[Path], out: Path) -> None:
    """Write the mean of models of one shape, one tokenizer and one direction as a model directory.

    ConfigError for fewer than two, or for one twice; CheckpointError, with the settings or tensors that differ, when
    they do not fit.
    """
    if len(folders) < 2:
        raise ConfigError("a mean takes at least two models: mt-train average MODEL MODEL ... -o OUT")
    first = load_model(folders[0])
    loaded, sources = [first.folder], [first.sources]
    for folder in folders[1:]:
        other = load_model(folder)
        _check_compatible(first, other)
        if any(other.folder.samefile(each) for each in loaded):
            raise ConfigError(f"{folder} is named twice, so that the mean would be nearer to it: name each model once")
        loaded.append(other.folder)
        sources.append(other.sources)
        del other  # at most two models are in memory
    first.model.load_state_dict(average_weights(loaded), strict=False)
    _write(first, out, f"the mean of {', '.join(map(_public_name, folders))}", TrainingSources.combine(sources, max))


def merge_adapter(model: Path, adapter: Path, out: Path) -> None:
    """Write the model with a run's low-rank adapter merged into its weights, as a model directory.

    adapter: a directory with adapter.safetensors, such as the `best/` of a run with finetuning.lora_rank.
    CheckpointError when the adapter is missing or was trained with other weights.
    """
    base, (tensors, trained_with) = load_model(model), load_adapter(adapter)
    if base.tokenizer.digests != load_tokenizer(adapter).digests:
        raise CheckpointError(f"{adapter} was made for another tokenizer than that of {model}: ids mean other subwords")
    if trained_with != base_digest(base.model):
        raise CheckpointError(
            f"{adapter} was trained beside other weights than those of {model}, and would only disturb these: give the "
            "model that was its run.init_from"
        )
    weights = base.model.state_dict()  # which shares its memory with the model
    with as_written(str(adapter)):
        for name in sorted({key.rsplit(".", 1)[0] for key in tensors}):
            weights[name] += tensors[f"{name}.b"] @ tensors[f"{name}.a"]
    _write(base, out, f"{_public_name(model)} with the adapter of {_public_name(adapter)} merged into it", base.sources)


def quantise_model(folder: Path, out: Path) -> None:
    """Write a model directory that translates as the model does with decoding.precision=int8, to the last bit.

    It keeps the model's scores, and says when they were measured. CheckpointError if the model is in int8 already.
    """
    saved = load_model(folder)
    before = "in fp32, before the weights were quantised to int8"
    facts = {**facts_of(saved.folder, saved.scores), "weights": "int8, for translating on a CPU"}
    scores = {**saved.scores, MEASURED: before, "facts": facts}
    parity = parity_section(saved.folder)
    card = model_card(saved.config, facts, scores, parity=f"Compared {before}. {parity}" if parity else "")
    quantised = snapshot(saved.model, saved.tokenizer, saved.config, saved.sources, scores, card)
    replace(quantised, weights=int8_tensors(saved.model), int8=True).write(out)


def _check_compatible(first: SavedModel, other: SavedModel) -> None:
    """Raise CheckpointError, with what differs, if two models cannot be averaged."""
    one, two = (asdict(resolved_options(saved.config["model"], saved.tokenizer.shared)) for saved in (first, other))
    # Options that act only in training, as dropout, do not change what the weights compute.
    keys = sorted(key for key in one.keys() | two.keys() if not key.endswith(TRAINING_ONLY))
    differing = [f"model.{key} is {one.get(key)} and {two.get(key)}" for key in keys if one.get(key) != two.get(key)]
    reasons = differing + incompatibilities(first, other)
    if reasons:
        raise CheckpointError(f"{first.folder} and {other.folder} cannot be averaged: {', '.join(reasons)}")


def _public_name(folder: Path) -> str:
    """Return the name of a model or its run."""
    # Without the folders of this machine: the facts of a model may be published.
    path = folder.resolve()
    return path.parent.name if path.name == "best" else path.name


def _write(saved: SavedModel, out: Path, origin: str, sources: TrainingSources) -> None:
    """Write a model without scores, since those of `saved` are of another model."""
    facts = {**facts_of(saved.folder, saved.scores), MADE_OF: origin}
    scores = {"facts": facts}
    card = model_card(saved.config, facts, scores)
    snapshot(saved.model, saved.tokenizer, saved.config, sources, scores, card).write(out)
