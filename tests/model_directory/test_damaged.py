"""An untrusted model directory, damaged in any way but with valid checksums, is refused or loads."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from tolka.engines.options import DecodingConfig
from tolka.errors import CheckpointError, TolkaError
from tolka.model_directory.read import load_model, load_state
from tolka.model_directory.settings import load_settings
from tolka.model_directory.verify import TrainingSources, write_manifest
from tolka.translation.opening import open_model


@pytest.fixture
def model(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained / "last", tmp_path / "model"))


@pytest.fixture(scope="module")
def spoilt(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model directory to be damaged by each test."""
    return Path(shutil.copytree(trained / "last", tmp_path_factory.mktemp("fuzz") / "model"))


def vouched(folder: Path) -> Path:
    """Write the manifest of the current files, as an attacker would."""
    write_manifest(folder, TrainingSources(16))
    return folder


def changed(model: Path, **options: Any) -> Path:
    """Replace options of the model in config.yaml."""
    config = yaml.safe_load((model / "config.yaml").read_text("utf-8"))
    config["model"].update(options)
    (model / "config.yaml").write_text(yaml.safe_dump(config))
    return vouched(model)


FILES = ["config.yaml", "scores.json", "model.safetensors", "manifest.json", "state/state.json"]
FILES += ["state/tensors.safetensors"]


@pytest.mark.slow
@given(st.sampled_from(FILES), st.data())
@settings(max_examples=150)
def test_any_byte_may_be_another_one(trained: Path, spoilt: Path, name: str, data: st.DataObject) -> None:
    original = (trained / "last" / name).read_bytes()
    content = bytearray(original)
    for _ in range(data.draw(st.integers(1, 4))):
        # The beginning is where headers are.
        place = data.draw(st.integers(0, min(len(content) - 1, data.draw(st.sampled_from([16, 400, 10**9])))))
        content[place] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content))) :]
    (spoilt / name).write_bytes(bytes(content))
    try:
        if name != "manifest.json":
            vouched(spoilt)
        said = ""
        try:
            load_model(spoilt)
            load_state(spoilt)
        except TolkaError as error:
            said = str(error)
        assert len(said.splitlines()) <= 1
    finally:
        (spoilt / name).write_bytes(original)
        shutil.copy(trained / "last" / "manifest.json", spoilt / "manifest.json")


@pytest.mark.parametrize(
    "options",
    [{"d_model": 2**20, "heads": 1}, {"d_ff": 2**23}, {"d_model": 4096}],
    ids=str,
)
def test_what_a_configuration_claims_gets_no_memory(model: Path, options: dict[str, int]) -> None:
    with pytest.raises(CheckpointError, match=r"and model\.safetensors has \d+"):
        load_model(changed(model, **options))


@pytest.mark.parametrize("options", [{"d_model": 10**9}, {"d_ff": 10**28}, {"layers": 10**8}], ids=str)
def test_what_no_machine_could_hold_is_refused(model: Path, options: dict[str, int]) -> None:
    with pytest.raises(CheckpointError, match=r"config\.yaml: model\.\w+ \(\d+\) must be .*at most"):
        load_model(changed(model, **options))


@pytest.mark.parametrize("kind", [torch.float64, torch.int32, torch.bfloat16], ids=str)
def test_weights_of_another_kind_are_not_taken_for_good(model: Path, kind: torch.dtype) -> None:
    weights = {name: tensor.to(kind) for name, tensor in load_file(model / "model.safetensors").items()}
    save_file(weights, model / "model.safetensors")
    with pytest.raises(CheckpointError):
        load_model(vouched(model))


@pytest.mark.parametrize("name", ["scores.json", "state/state.json"])
@pytest.mark.parametrize(
    "text", ["[" * 100_000, "[]", "3", "null", '{"a": ' * 5000, "\ud800".encode("utf-8", "surrogatepass")]
)
def test_json_bombs(model: Path, name: str, text: str | bytes) -> None:
    (model / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    vouched(model)
    with pytest.raises(CheckpointError):
        (load_model if name == "scores.json" else load_state)(model)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "[" * 20_000,
        "model: !!python/object/apply:os.system ['echo no']\n",
        "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)),
        "model: &m {name: *m}\n",
    ],
    ids=["deep", "python", "laughs", "circle"],
)
def test_yaml_bombs(model: Path, text: str) -> None:
    (model / "config.yaml").write_text(text)
    with pytest.raises(CheckpointError):
        load_model(vouched(model))


def test_a_state_that_is_not_vouched_for_is_not_read(model: Path) -> None:
    manifest = json.loads((model / "manifest.json").read_text())
    del manifest["files"]["state/state.json"]
    (model / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match=r"does not list state/state\.json"):
        load_state(model)


@pytest.mark.parametrize("value", [None, "x", [1], {"unicode": 7}, {"unicode": "nfd"}, {1: 2}], ids=str)
def test_how_text_is_spelt_must_be_told(model: Path, value: Any) -> None:
    config = yaml.safe_load((model / "config.yaml").read_text("utf-8"))
    (model / "config.yaml").write_text(yaml.safe_dump({**config, "cleaning": value}))
    for load in (load_model, load_settings):
        with pytest.raises(CheckpointError, match=r"config\.yaml: .*cleaning"):
            load(vouched(model))


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(model: Path, number: float) -> None:
    weights = load_file(model / "model.safetensors")
    name = sorted(weights)[3]
    weights[name].view(-1)[0] = number
    save_file(weights, model / "model.safetensors")
    with pytest.raises(CheckpointError, match=rf"not finite \(NaN or inf in 1 of {len(weights)} tensors, {name} among"):
        load_model(vouched(model))


def test_weights_in_float8_are_refused(model: Path) -> None:
    weights = load_file(model / "model.safetensors")
    name = sorted(weights)[3]
    save_file({**weights, name: weights[name].to(torch.float8_e4m3fn)}, model / "model.safetensors")
    with pytest.raises(CheckpointError, match=rf"{name} \(.*\) float8_e4m3fn instead of"):
        load_model(vouched(model))


def test_weights_too_large_to_compute_with_are_one_line(model: Path) -> None:
    weights = {name: weight * 1e30 for name, weight in load_file(model / "model.safetensors").items()}
    save_file(weights, model / "model.safetensors")
    translator = open_model(vouched(model), None, DecodingConfig(device="cpu", precision="fp32"))
    with pytest.raises(CheckpointError, match=r"scores are not finite"):
        translator(["ferry"])
