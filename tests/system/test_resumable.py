"""A file that another process can go on writing."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tolka.errors import DataError
from tolka.system.resumable import ResumableFile, record_path, resumable_file


def interrupted(final: Path, identity: Mapping[str, Any]) -> None:
    """Leave what a process leaves that is ended after it recorded b"one"."""
    with suppress(ZeroDivisionError), resumable_file(final, identity) as file:
        file.write(b"one")
        file.record({"done": 1})
        file.write(b"lost" * 10_000)
        raise ZeroDivisionError


def test_only_what_was_recorded_is_kept(tmp_path: Path) -> None:
    interrupted(tmp_path / "out", {"a": (1, 2)})
    with resumable_file(tmp_path / "out", {"a": (1, 2)}) as file:
        assert file.state == {"done": 1}
        file.write(b"two")
    assert (tmp_path / "out").read_bytes() == b"onetwo"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_another_process_is_kept_out(tmp_path: Path) -> None:
    first = ResumableFile(tmp_path / "out", {})
    with pytest.raises(DataError, match="out: another process writes it at this moment"):
        ResumableFile(tmp_path / "out", {})
    first.finish()
    assert (tmp_path / "out").read_bytes() == b""


@pytest.mark.parametrize(
    "change",
    [
        {"bytes": 10**9},
        {"format": 3},
        {"state": None},
        {"identity": 3},
    ],
)
def test_a_record_that_is_damaged(tmp_path: Path, change: dict[str, object]) -> None:
    interrupted(tmp_path / "out", {})
    path = record_path(tmp_path / "out")
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(DataError, match=r"is damaged .* remove it to begin again"):
        ResumableFile(tmp_path / "out", {})


def test_a_record_without_its_file_is_nothing(tmp_path: Path) -> None:
    interrupted(tmp_path / "out", {})
    (tmp_path / ".out.partial").unlink()
    with resumable_file(tmp_path / "out", {"other": 1}) as file:
        assert file.state == {}
