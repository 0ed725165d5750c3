"""Publishing a model: what is uploaded, what never is, and what is refused, against a stub of the Hub's API."""

import builtins
import hashlib
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hub_stub import HubStub, serving

from conftest import Command
from tolka.formats.any_model import load_any, settings_of
from tolka.formats.hub import local_folder
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
    assert f"mt-translate hub:{NAME}" in (folder / "README.md").read_text()


def cached(hub: HubStub, cache: Path) -> Path:
    """Write what was uploaded as a download of it leaves the Hub's cache: links to blobs; return the folder."""
    repository, commit = cache / "models--ann--captions", "0" * 40
    folder, blobs = repository / "snapshots" / commit, repository / "blobs"
    for name, content in hub.files.items():
        blob = blobs / hashlib.sha256(content).hexdigest()
        blobs.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(blob)
    listed = {name: {"size": 1, "blob_id": "0"} for name in [*hub.files, ".gitattributes"]}
    tree = json.dumps({"format_version": 1, "files": listed})
    for name, text in (("refs/main", commit), (f"trees/{commit}.json", tree)):
        (repository / name).parent.mkdir()
        (repository / name).write_text(text, encoding="utf-8")
    return folder


def test_what_was_published_is_a_model_by_its_name(
    command: Command, hub: HubStub, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offline, from the Hub's cache, in every command that takes a model directory."""
    assert command("mt-train", "publish", trained, NAME, "--licence", "cc-by-4.0").code == 0
    folder, name = cached(hub, tmp_path / "cache"), f"hub:{NAME}"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.hf_api.api.endpoint", "http://127.0.0.1:9")
    texts = b"lantern kettle .\nferry .\n"
    (tmp_path / "texts").write_bytes(texts)
    for backend in ("torch", "auto"):
        one, other = (command("mt-translate", m, f"decoding.backend={backend}", stdin=texts) for m in (name, trained))
        assert (one.code, one.out) == (0, other.out), one.err
    scored = command("mt-eval", name, f"source={tmp_path / 'texts'}", f"reference={tmp_path / 'texts'}")
    assert (scored.code, "BLEU" in scored.out) == (0, True), scored.err
    for words in (["quantise"], ["average", str(trained)]):
        outcome = command("mt-train", *words, name, "-o", tmp_path / words[0])
        assert outcome.code == 0, outcome.err
    assert settings_of(name)["run"]["licence"] == "cc-by-4.0"  # as run.init_from reads it
    assert load_any(name).tokenizer.digests == load_model(trained).tokenizer.digests
    imported = command("mt-train", "import", name, "-o", tmp_path / "in")
    assert "is a model directory of tolka already: use it as it is" in imported.error
    weights = folder / "model.safetensors"
    weights.resolve().write_bytes(b"damaged")
    assert "model.safetensors is damaged" in command("mt-translate", name, stdin=texts).error
    (tmp_path / "secret").write_text("of this machine")
    weights.unlink()
    weights.symlink_to(tmp_path / "secret")
    assert "names a file outside its folder" in command("mt-translate", name, stdin=texts).error


def test_a_download_has_the_files_of_the_manifest(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no others, but for those that other programs' models have."""
    asked = list[list[str]]()

    def download(repository: str, allow_patterns: list[str]) -> str:
        asked.append(allow_patterns)
        return str(trained / "best")

    listed = SimpleNamespace(siblings=[SimpleNamespace(rfilename="model.safetensors")])
    monkeypatch.setattr("huggingface_hub.model_info", lambda name, timeout: listed)
    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    assert local_folder(f"hub:{NAME}") == trained / "best"
    files = {path.name for path in (trained / "best").iterdir()}
    assert [{*patterns} >= files - {"manifest.json"} for patterns in asked] == [False, True]
    assert "*" not in asked[-1]


def test_a_dry_run_shows_what_would_go(
    command: Command, hub: HubStub, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a token, and without the package."""
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    outcome = command("mt-train", "publish", trained, NAME, "--dry-run")
    assert (outcome.code, hub.requests) == (0, []), outcome.err
    assert "published without their folders: run.dir" in outcome.err
    first, *lines = outcome.out.splitlines()
    assert first.startswith(f"{NAME} would get 6 files with 0.")
    files = sorted(path.name for path in (trained / "best").iterdir())
    assert [line.split()[-1] for line in lines[:6]] == files
    weights = f"{(trained / 'best' / 'model.safetensors').stat().st_size:,}"
    assert weights in {line.split()[0] for line in lines[:6]}
    assert lines[6] == "licence: none, as neither --licence nor run.licence names one"
    assert lines[7:11] == ["README.md begins:", "", "---", "language:"]
    named = command("mt-train", "publish", trained, NAME, "--dry-run", "--licence", "cc-by-4.0").out
    assert "\nlicence: cc-by-4.0\n" in named
    refused = command("mt-train", "publish", trained, "captions", "--dry-run")
    assert (refused.code, "write OWNER/NAME" in refused.error) == (2, True)


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
