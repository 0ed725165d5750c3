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
from tolka.training import run_folder as run_module
from tolka.training.run_folder import RunFolder


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[RunFolder]:
    folder = RunFolder(tmp_path / "run", say=say)
    folder.claim({"run": {"seed": 1}})
    yield folder
    folder.release()


class Disk:
    """Takes so many bytes more, then half of what comes, as a full disk does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
        self.room = room
        real = Path.open
        disk = self

        class Stream:
            def __init__(self, stream: Any) -> None:
                self._stream = stream

            def __enter__(self) -> "Stream":
                return self

            def __exit__(self, *error: object) -> None:
                self._stream.close()

            def __getattr__(self, name: str) -> Any:
                return getattr(self._stream, name)

            def write(self, content: bytes) -> int:
                taken = min(len(content), disk.room)
                disk.room -= taken
                self._stream.write(content[:taken])
                return taken

        def opened(path: Path, mode: str = "r", *rest: Any, **others: Any) -> Any:
            stream = real(path, mode, *rest, **others)
            return Stream(stream) if mode == "ab" else stream

        monkeypatch.setattr(Path, "open", opened)


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
    folder.begun()
    folder.best.mkdir()
    folder.release()
    assert folder.claim({"run": {"seed": 1}}) is False
    folder.saved()
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


def test_lines_that_do_not_fit_come_later_and_whole(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.record({"update": 1})
    disk = Disk(monkeypatch, room=5)
    folder.record({"update": 2})
    folder.record({"update": 3})
    assert folder.metrics.read_text() == '{"update": 1}\n'
    assert capsys.readouterr().err.count("metrics.jsonl cannot be written (No space left on device)") == 1
    disk.room = 10_000
    folder.record({"update": 4})
    assert [line["update"] for line in folder.history()] == [1, 2, 3, 4]


def test_at_the_end_missing_lines_are_written_or_complained_of(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch, room=0)
    folder.record({"update": 1})
    folder.record({"update": 2})
    assert folder.unrecorded() == [{"update": 1}, {"update": 2}]
    with pytest.raises(TolkaError, match=r"metrics.jsonl lacks 2 lines that could not be written: free some space"):
        folder.finish()
    disk.room = 10_000
    folder.finish()
    assert folder.history() == [{"update": 1}, {"update": 2}]
    assert folder.unrecorded() == []


def test_a_log_that_cannot_be_written_is_still_said(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    disk = Disk(monkeypatch, room=0)
    folder.log("one")
    disk.room = 10_000
    folder.log("two")
    said = capsys.readouterr().err
    assert said.index("one") < said.index("train.log cannot be written") < said.index("two")
    assert [line[20:] for line in (folder.path / "train.log").read_text().splitlines()] == ["one", "two"]


def test_what_is_left_for_people_is_not_worth_ending_for(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert folder.leave("samples/1.txt", "a\n").read_text() == "a\n"
    (folder.path / "shown").write_text("a file where a folder should be")
    folder.leave("shown/1.txt", "a\n")
    assert "shown/1.txt is not written" in capsys.readouterr().err


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


def test_half_a_line_is_never_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"one\n")
    Disk(monkeypatch, room=2)
    with pytest.raises(OSError, match="No space"):
        run_module._append(path, b"two\n")
    assert path.read_bytes() == b"one\n"


def test_going_back_takes_back_what_waits_to_be_written(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.record({"update": 1})
    disk = Disk(monkeypatch, room=0)
    for update in (2, 3):
        folder.record({"update": update})
    saved = folder.written(), folder.unrecorded()
    for update in (4, 5):
        folder.record({"update": update})
    disk.room = 10_000
    folder.forget_after(3, *saved)
    folder.record({"update": 4, "again": True})
    assert folder.history() == [{"update": 1}, {"update": 2}, {"update": 3}, {"update": 4, "again": True}]
