"""A folder is whole or absent, whatever interrupts its writing."""

from pathlib import Path

import pytest

from tolka.system.atomic import recover, standing, whole_folder


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
    assert (standing(final) / "sub" / "file").read_text() == "one"
    assert not final.exists()  # a reader changes nothing
    recover(final)
    assert (final / "sub" / "file").read_text() == "one"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_reader_leaves_a_writer_alone(tmp_path: Path) -> None:
    final = tmp_path / "model"
    write(final, "one")
    with whole_folder(final) as work:
        assert standing(final) == final
        assert work.exists()
    assert standing(final) == final
