"""A run's folder on a disk that is full, read-only, or gone."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tolka.errors import ConfigError, TolkaError
from tolka.system import atomic
from tolka.system.progress import say
from tolka.training.run_folder import RunFolder


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[RunFolder]:
    folder = RunFolder(tmp_path / "run", say=say)
    folder.claim({"run": {"seed": 1}})
    yield folder
    folder.release()


def full_disk(path: Path, mode: str = "r", *rest: object, **others: object) -> None:
    raise OSError(28, "No space left on device", str(path))


def test_a_claim_that_was_cut_short_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a full disk, or in the middle of writing the settings."""
    folder = RunFolder(tmp_path / "run")

    def full(path: Path, content: bytes) -> int:
        path.open("wb").close()
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="No space"):
            folder.claim({"run": {"seed": 1}})
    folder.release()
    assert [path.name for path in folder.path.iterdir()] == [".lock"]
    (folder.path / ".config.yaml.partial").write_text("run:", encoding="utf-8")
    assert folder.claim({"run": {"seed": 1}}) is False
    folder.release()
    assert (folder.path / "config.yaml").is_file()


def test_a_first_save_that_was_cut_short_is_made_again(tmp_path: Path) -> None:
    """best/ is written before last/. Where last/ was there once, it was deleted by hand, and best/ is not touched."""
    folder = RunFolder(tmp_path / "run")
    assert folder.claim({"run": {"seed": 1}}) is False
    folder.mark_begin()
    folder.best.mkdir()
    folder.release()
    assert folder.claim({"run": {"seed": 1}}) is False
    folder.mark_saved()
    folder.release()
    with pytest.raises(ConfigError, match="has best/ but no last/"):
        folder.claim({"run": {"seed": 1}})
    folder.release()
    folder.last.mkdir()
    (folder.path / ".unsaved").touch()
    with pytest.raises(ConfigError, match=r"last has no manifest.json, so that it is not whole"):
        folder.claim({"run": {"seed": 1}})
    folder.release()
    (folder.last / "manifest.json").touch()
    (folder.path / ".unsaved").touch()  # a crash right after the first save
    assert folder.claim({"run": {"seed": 1}}) is True
    folder.release()
    assert not (folder.path / ".unsaved").exists()


def test_what_does_not_fit_ends_the_training(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line of the log is said all the same."""
    folder.record({"update": 1})
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full_disk)
        patch.setattr(Path, "write_bytes", full_disk)
        for write, name in (
            (lambda: folder.record({"update": 2}), "metrics.jsonl"),
            (lambda: folder.log("one"), "train.log"),
            (lambda: folder.leave("samples/1.txt", "a\n"), "samples/1.txt"),
        ):
            why = rf"{name} could not be written \(No space left on device\): free some space, and run the same command"
            with pytest.raises(TolkaError, match=why):
                write()
    assert capsys.readouterr().err == "one\n"
    assert folder.history() == [{"update": 1}]
    assert folder.leave("samples/1.txt", "a\n").read_text() == "a\n"


def test_half_a_line_is_not_read_and_not_kept(folder: RunFolder) -> None:
    """As a full disk leaves it."""
    folder.record({"update": 1})
    with folder.metrics.open("a") as stream:
        stream.write('{"upda')
    assert folder.history() == [{"update": 1}]
    folder.forget_after(1)
    folder.record({"update": 2})
    assert folder.history() == [{"update": 1}, {"update": 2}]


def test_a_folder_that_was_deleted_is_not_made_again(folder: RunFolder) -> None:
    """Half of its lines would look like all of them."""
    folder.record({"update": 1})
    shutil.rmtree(folder.path)
    for write in (
        lambda: folder.record({"update": 2}),
        lambda: folder.log("still here"),
        lambda: folder.leave("samples/1.txt", "a"),
    ):
        with pytest.raises(TolkaError, match=r"was deleted or moved during the training, which ends"):
            write()
    assert not folder.path.exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="locks as on Unix")
def test_locks_where_a_file_system_knows_only_one_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def unknown(*_: Any) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", unknown)
    with (tmp_path / "lock").open("w") as stream:
        assert atomic.try_lock(stream)
        child = os.fork()
        if child == 0:
            with (tmp_path / "lock").open("w") as other:
                os._exit(0 if not atomic.try_lock(other) else 1)
        assert os.waitpid(child, 0)[1] == 0
        monkeypatch.setattr(fcntl, "lockf", unknown)
        assert atomic.try_lock(stream)
