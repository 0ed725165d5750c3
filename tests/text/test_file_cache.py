"""What is remembered of a file is what the file still is."""

import os
from pathlib import Path

import pytest

from tolka.text import file_cache as known_files
from tolka.text.file_cache import KnownFiles


@pytest.fixture
def old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(known_files, "_LEAST_BYTES", 1)
    path = tmp_path / "text"
    path.write_text("one\n")
    os.utime(path, (1, 1))
    return path


def test_a_file_is_read_once_however_often_the_program_starts(old_file: Path, tmp_path: Path) -> None:
    calls = []

    def find(path: Path) -> int:
        calls.append(path)
        return len(path.read_text())

    store = tmp_path / "cache" / "files.json"
    assert [KnownFiles(store).recall("size", old_file, find) for _ in range(3)] == [4, 4, 4]
    assert len(calls) == 1
    assert KnownFiles(store).recall("lines", old_file, lambda path: 1) == 1  # another fact, another entry


def test_a_changed_file_is_read_anew_even_if_its_time_is_put_back(old_file: Path, tmp_path: Path) -> None:
    store = tmp_path / "files.json"
    assert KnownFiles(store).recall("text", old_file, Path.read_text) == "one\n"
    old_file.write_text("two\n")
    os.utime(old_file, (1, 1))
    assert KnownFiles(store).recall("text", old_file, Path.read_text) == "two\n"


def test_what_was_just_written_is_not_trusted(old_file: Path, tmp_path: Path) -> None:
    old_file.write_text("now\n")
    KnownFiles(tmp_path / "files.json").recall("text", old_file, Path.read_text)
    assert not (tmp_path / "files.json").exists()


@pytest.mark.parametrize("content", ["", "[1, 2]", '{"text": 3}', "no JSON"])
def test_a_spoilt_store_is_no_store(old_file: Path, tmp_path: Path, content: str) -> None:
    store = tmp_path / "files.json"
    store.write_text(content)
    assert KnownFiles(store).recall("text", old_file, Path.read_text) == "one\n"


def test_what_went_wrong_is_not_remembered(old_file: Path, tmp_path: Path) -> None:
    known = KnownFiles(tmp_path / "files.json")

    def fail(path: Path) -> None:
        raise ValueError

    with pytest.raises(ValueError):
        known.recall("text", old_file, fail)
    assert known.recall("text", old_file, Path.read_text) == "one\n"
