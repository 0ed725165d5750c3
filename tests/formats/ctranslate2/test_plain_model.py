"""A model directory that is read without torch is checked as torch's is: its options, and every tensor's shape."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from random_model import write_model
from safetensors.torch import load_file, save_file

from conftest import Command
from tolka.errors import CheckpointError, TolkaError
from tolka.formats.ctranslate2.folder import write_folder
from tolka.formats.ctranslate2.plain_model import read_plain_model
from tolka.model_directory.file_names import CONFIG, WEIGHTS
from tolka.model_directory.read import load_model
from tolka.model_directory.verify import MANIFEST, TrainingSources, write_manifest
from tolka.models.transformer.config import TransformerConfig

pytest.importorskip("ctranslate2")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = TransformerConfig(d_model=32, heads=4, layers=1)
    return write_model(tmp_path_factory.mktemp("plain") / "model", config)


def copy_of(model: Path, folder: Path, damage: Callable[[Path], object]) -> Path:
    """A copy whose manifest agrees with its damage."""
    shutil.copytree(model, folder)
    damage(folder)
    (folder / MANIFEST).unlink()
    write_manifest(folder, TrainingSources(40, 0.0))
    return folder


def error_of(action: Callable[[], object]) -> str:
    with pytest.raises(CheckpointError) as caught:
        action()
    return str(caught.value)


OPTIONS: dict[str, Any] = {
    "heads": (0, -8, 7, 64, "4", None, 4.0, True),
    "d_model": (0, "x", [32], 32.5),
    "layers": (0, "a", -1),
    "decoder_layers": (-1,),
    "d_v": ("x", -1),
    "d_ff": (-1,),
    "activation": (["relu"], None),
    "norm": (None,),
    "positions": (1,),
    "decoder_start": ("pad",),
    "max_positions": (0,),
    "scale_embeddings": ("no",),
    "dropout": (1.0,),
    "headz": (4,),
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in OPTIONS.items() for value in values])
def test_an_option_is_refused_as_with_torch(model: Path, tmp_path: Path, key: str, value: object) -> None:
    def damage(folder: Path) -> None:
        config = yaml.safe_load((folder / CONFIG).read_text())
        config["model"][key] = value
        (folder / CONFIG).write_text(yaml.safe_dump(config))

    folder = copy_of(model, tmp_path / "model", damage)
    expected = error_of(lambda: load_model(folder))
    assert error_of(lambda: read_plain_model(folder)) == expected
    assert f"model.{key}" in expected


def test_rotary_positions_need_an_even_width(model: Path, tmp_path: Path) -> None:
    def damage(folder: Path) -> None:
        config = yaml.safe_load((folder / CONFIG).read_text())
        config["model"] |= {"positions": "rotary", "heads": 32}
        (folder / CONFIG).write_text(yaml.safe_dump(config))

    folder = copy_of(model, tmp_path / "model", damage)
    assert error_of(lambda: read_plain_model(folder)) == error_of(lambda: load_model(folder))


OTHER_MODELS: dict[str, object] = {
    "heads": 3,
    "d_model": 10**9,
    "d_ff": 10**9,
    "layers": 10**9,
    "decoder_layers": 2,
    "norm": "post",
    "normalization": "rmsnorm",
    "activation": "swiglu",
    "positions": "learned",
    "share_embeddings": "none",
    "output_bias": True,
}


@pytest.mark.parametrize("key", sorted(OTHER_MODELS))
def test_weights_of_another_model_are_refused(model: Path, tmp_path: Path, key: str) -> None:
    """In an instant, whatever size the configuration claims."""

    def damage(folder: Path) -> None:
        config = yaml.safe_load((folder / CONFIG).read_text())
        config["model"][key] = OTHER_MODELS[key]
        (folder / CONFIG).write_text(yaml.safe_dump(config))

    folder = copy_of(model, tmp_path / "model", damage)
    (tmp_path / "out").mkdir()
    for action in (lambda: load_model(folder), lambda: write_folder(read_plain_model(folder), tmp_path / "out")):
        with pytest.raises(TolkaError):
            action()


Change = Callable[[torch.Tensor], torch.Tensor]
CUTS: dict[str, Change] = {
    "fewer rows": lambda tensor: tensor[:-1],
    "a row more": lambda tensor: torch.cat([tensor, tensor[:1]]),
    "narrower": lambda tensor: tensor[..., :-1],
    "empty": lambda tensor: tensor[:0],
    "a scalar": lambda tensor: tensor.flatten()[0],
    "flat": lambda tensor: tensor.flatten()[None],
    "another dtype": lambda tensor: tensor.half(),
    "bfloat16": lambda tensor: tensor.bfloat16(),
    "float8": lambda tensor: tensor.to(torch.float8_e4m3fn),
}


@pytest.mark.parametrize("cut", sorted(CUTS))
def test_a_tensor_of_another_shape_is_refused(model: Path, tmp_path: Path, cut: str) -> None:
    """Whichever it is: CTranslate2 would read beyond the end of some."""
    whole = load_file(model / WEIGHTS)
    plain = read_plain_model(model)
    for name, tensor in whole.items():
        changed = {**whole, name: CUTS[cut](tensor).clone()}
        out = tmp_path / name
        folder = copy_of(model, out, lambda folder, tensors=changed: save_file(tensors, folder / WEIGHTS))  # type: ignore[misc]
        (tmp_path / "out").mkdir(exist_ok=True)
        error = error_of(lambda folder=folder: write_folder(read_plain_model(folder), tmp_path / "out"))  # type: ignore[misc]
        assert str(folder / WEIGHTS) in error
    assert {*plain.arrays} == {*whole}


@pytest.mark.parametrize("change", ["missing", "extra"])
def test_a_missing_or_unknown_tensor_is_named(model: Path, tmp_path: Path, change: str, command: Command) -> None:
    def damage(folder: Path) -> None:
        tensors = load_file(folder / WEIGHTS)
        if change == "missing":
            del tensors["decoder.0.cross.query.bias"]
        else:
            tensors["junk"] = torch.zeros(3)
        save_file(tensors, folder / WEIGHTS)

    folder = copy_of(model, tmp_path / "model", damage)
    outcome = command("mt-translate", folder, "decoding.backend=ctranslate2", stdin=b"kettle\n")
    assert outcome.code == 1
    words = "it has no tensor decoder.0.cross.query.bias" if change == "missing" else "the model has no tensor junk"
    assert f"{folder / WEIGHTS} does not fit {CONFIG}: {words}" in outcome.error
