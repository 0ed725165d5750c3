"""A folder is whole or absent, whatever interrupts its writing."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from tolka.system.atomic import one_at_a_time, readable_folder, recover, replace_text, replaced_files, whole_folder


def write(folder: Path, text: str) -> None:
    with whole_folder(folder) as work:
        (work / "sub").mkdir()
        (work / "sub" / "file").write_text(text)


def test_it_appears_whole_and_is_exchanged(tmp_path: Path) -> None:
    final = tmp_path / "made" / "model"
    write(final, "one")
    write(final, "two")
    assert (final / "sub" / "file").read_text() == "two"
    assert [path.name for path in final.parent.iterdir()] == ["model"]


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    final = tmp_path / "model"
    write(final, "one")

    def fail_half_way() -> None:
        with whole_folder(final) as work:
            (work / "file").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert (final / "sub" / "file").read_text() == "one"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_crash_between_the_two_renames_loses_nothing(tmp_path: Path) -> None:
    final = tmp_path / "model"
    write(final, "one")
    final.rename(tmp_path / ".model.abc.old")
    (tmp_path / ".model.abc.partial").mkdir()
    assert (readable_folder(final) / "sub" / "file").read_text() == "one"
    assert not final.exists()  # a reader changes nothing
    recover(final)
    assert (final / "sub" / "file").read_text() == "one"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_reader_leaves_a_writer_alone(tmp_path: Path) -> None:
    final = tmp_path / "model"
    write(final, "one")
    with whole_folder(final) as work:
        assert readable_folder(final) == final
        assert work.exists()
    assert readable_folder(final) == final


def test_files_are_moved_when_all_are_written_and_the_last_one_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text("old")
    moved, replace = [], os.replace

    def moving(old: Path, new: Path) -> None:
        moved.append(
            (new.name, old.read_text(), sorted(path.read_text() for path in tmp_path.iterdir() if path.is_file()))
        )
        replace(old, new)

    monkeypatch.setattr("tolka.system.atomic.os.replace", moving)
    with replaced_files(tmp_path, last="b") as new:
        for name in ("b", "c", "a"):
            (new / name).write_text(f"new {name}")
    assert moved[-1] == ("b", "new b", ["new a", "new c", "old"])
    with suppress(KeyError), replaced_files(tmp_path, last="b") as new:
        (new / "a").write_text("half")
        raise KeyError
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {n: f"new {n}" for n in ("a", "b", "c")}


def test_one_at_a_time_and_no_file_left(tmp_path: Path) -> None:
    inside, most, waits = [], [], []

    def enter(number: int) -> None:
        for _ in range(20):
            with one_at_a_time(tmp_path / "lock", lambda: waits.append(number)):
                inside.append(number)
                most.append(len(inside))
                time.sleep(0.001)
                inside.remove(number)

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(4) as threads:
        patch.setattr("tolka.system.atomic._POLL_SECONDS", 0.001)
        list(threads.map(enter, range(4)))
    assert len(most) == 80
    assert set(most) == {1}
    assert waits
    assert not list(tmp_path.iterdir())


def test_content_reaches_the_disk_before_its_name_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file and folder is synced under its temporary name, and the folder above after the rename."""
    events: list[str] = []
    real_sync, real_rename, real_replace = os.fsync, Path.rename, os.replace

    def sync(handle: int) -> None:
        events.append(f"sync {Path(os.readlink(f'/proc/self/fd/{handle}')).name}")
        real_sync(handle)

    def rename(path: Path, target: Path) -> Path:
        events.append("rename")
        return real_rename(path, target)

    def replace(source: Path, target: Path) -> None:
        events.append("rename")
        real_replace(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(Path, "rename", rename)
    monkeypatch.setattr(os, "replace", replace)
    write(tmp_path / "model", "one")
    before, after = events[: events.index("rename")], events[events.index("rename") :]
    assert {"sync file", "sync sub"} <= {*before}
    assert sum(event.endswith(".partial") for event in before) == 1
    assert after == ["rename", f"sync {tmp_path.name}"]
    events.clear()
    replace_text(tmp_path / "text", "one")
    assert [event.split()[0] for event in events] == ["sync", "rename"]
