"""Publishing a model: what is uploaded, what never is, and what is refused, against a stub of the Hub's API."""

import builtins
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hub_stub import HubStub, serving

from conftest import Command
from tolka.model_directory.read import load_model
from tolka.translation.opening import open_model

NAME = "ann/captions"
# Of huggingface_hub's own call of its HTTP library.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubStub]:
    constants = pytest.importorskip("huggingface_hub.constants")
    with serving() as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.address)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no token here"))
        monkeypatch.setenv("HF_TOKEN", "hf_of_ann")
        monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        yield server


def written(hub: HubStub, folder: Path) -> Path:
    """Write what was uploaded as a folder."""
    for name, content in hub.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def test_what_is_uploaded_is_the_model(command: Command, hub: HubStub, trained: Path, tmp_path: Path) -> None:
    outcome = command("mt-train", "publish", trained, NAME)
    assert (outcome.code, outcome.out.strip()) == (0, f"{hub.address}/{NAME}"), outcome.err
    assert hub.private == {NAME: False}
    assert hub.tokens == {"Bearer hf_of_ann"}
    assert sorted(hub.files) == sorted(path.name for path in (trained / "best").iterdir())
    folder = written(hub, tmp_path / "copy")
    texts = ["lantern kettle .", "ferry ."]
    assert open_model(folder)(texts) == open_model(trained)(texts)
    assert f"hf download {NAME} --local-dir captions" in (folder / "README.md").read_text()


def test_no_folder_of_this_machine_is_uploaded(command: Command, hub: HubStub, trained: Path, tmp_path: Path) -> None:
    """Neither in the settings nor in the facts, also of a model made of others."""
    assert command("mt-train", "average", trained, trained / "last", "-o", tmp_path / "mean").code == 0
    outcome = command("mt-train", "publish", tmp_path / "mean", NAME)
    assert outcome.code == 0, outcome.err
    for shortened in ("run.dir", "corpus.train", "run.prepared"):
        assert shortened in outcome.err
    for name, content in hub.files.items():
        assert str(tmp_path.parent).encode() not in content, name
        assert str(trained.parent).encode() not in content, name
    config = yaml.safe_load(hub.files["config.yaml"])
    assert (config["corpus"]["train"], config["run"]["dir"]) == (["train"], "run")
    assert json.loads(hub.files["scores.json"])["facts"]["made of"] == "the mean of run, last"
    assert config["model"] == load_model(trained).config["model"]


def test_the_state_of_a_training_is_not_uploaded(command: Command, hub: HubStub, trained: Path, tmp_path: Path) -> None:
    outcome = command("mt-train", "publish", trained / "last", NAME)
    assert outcome.code == 0, outcome.err
    assert "not published: state/" in outcome.err
    assert not [name for name in hub.files if name.startswith("state")]
    assert load_model(written(hub, tmp_path / "copy")).scores


def test_only_files_of_the_manifest_are(command: Command, hub: HubStub, trained: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(trained / "best", folder)
    (folder / "passwords.txt").write_text("secret")
    assert command("mt-train", "publish", folder, NAME).code == 0
    assert "passwords.txt" not in hub.files
    (folder / "model.safetensors").write_bytes(b"damaged")
    hub.files.clear()
    damaged = command("mt-train", "publish", folder, NAME)
    assert (damaged.code, "is damaged: its checksum" in damaged.error, hub.files) == (1, True, {})


def test_a_quantised_model_stays_one(command: Command, hub: HubStub, trained: Path, tmp_path: Path) -> None:
    assert command("mt-train", "quantise", trained, "-o", tmp_path / "int8").code == 0
    assert command("mt-train", "publish", tmp_path / "int8", NAME).code == 0
    saved = load_model(written(hub, tmp_path / "copy"), or_int8=True)
    assert saved.scores["measured"].startswith("in fp32")


def test_private_and_with_a_licence(command: Command, hub: HubStub, trained: Path) -> None:
    assert command("mt-train", "publish", trained, NAME, "--private", "--licence", "cc-by-4.0").code == 0
    assert hub.private == {NAME: True}
    assert "\nlicense: cc-by-4.0\n" in hub.files["README.md"].decode()
    assert yaml.safe_load(hub.files["config.yaml"])["run"]["licence"] == "cc-by-4.0"
    wrong = command("mt-train", "publish", trained, NAME, "--licence", "CC BY")
    assert (wrong.code, "--licence ('CC BY') is not a licence" in wrong.error) == (2, True)


def test_a_second_time_it_is_a_new_version(command: Command, hub: HubStub, trained: Path) -> None:
    outcomes = [command("mt-train", "publish", trained, NAME) for _ in range(2)]
    assert [outcome.code for outcome in outcomes] == [0, 0], outcomes[0].err
    assert len(hub.messages) == 2


def test_what_shall_be_private_does_not_go_where_everybody_sees_it(
    command: Command, hub: HubStub, trained: Path
) -> None:
    hub.private[NAME] = False
    outcome = command("mt-train", "publish", trained, NAME, "--private")
    assert (outcome.code, "is there already, and public: nothing was uploaded" in outcome.error) == (2, True)
    assert hub.files == {}


@pytest.mark.parametrize("name", ["captions", "ann/cap/tions", "ann/", "ann/cap tions", ""])
def test_a_wrong_name(command: Command, hub: HubStub, trained: Path, name: str) -> None:
    outcome = command("mt-train", "publish", trained, name)
    assert (outcome.code, f"'{name}' is not a name on the Hub" in outcome.error, hub.private) == (2, True, {})


@pytest.mark.parametrize("status", [400, 401, 403])
def test_what_the_hub_refuses(command: Command, hub: HubStub, trained: Path, status: int) -> None:
    hub.refuses = status
    outcome = command("mt-train", "publish", trained, NAME)
    assert (outcome.code, f"{NAME} is not published (" in outcome.error, str(status) in outcome.error) == (
        1,
        True,
        True,
    )
    assert "by a token that may write there (`hf auth login`)" in outcome.error


def test_a_name_that_the_hub_does_not_have(command: Command, hub: HubStub, trained: Path) -> None:
    outcome = command("mt-train", "publish", trained, "ann/cap--tions")
    assert (outcome.code, "ann/cap--tions is not published (" in outcome.error, hub.private) == (1, True, {})


def test_without_a_token(command: Command, hub: HubStub, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN")
    outcome = command("mt-train", "publish", trained, NAME)
    assert (outcome.code, "run `hf auth login`, or set HF_TOKEN" in outcome.error) == (2, True)
    assert hub.requests == []


def test_offline(command: Command, hub: HubStub, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")  # where nobody answers
    outcome = command("mt-train", "publish", trained, NAME)
    assert (outcome.code, "the Hub must be reached" in outcome.error) == (1, True)


def test_without_the_package(command: Command, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("huggingface_hub"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    outcome = command("mt-train", "publish", trained, NAME)
    assert (outcome.code, "pip install 'tolka[hub]'" in outcome.error) == (2, True)
