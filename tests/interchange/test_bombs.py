"""Small files that would take much memory or time are refused before they are read."""

import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from damage import complaint
from marian_folder import write_by_hand

from tolka.interchange.import_marian import load_marian

WEIGHTS = "pytorch_model.bin"


def zipped(path: Path, content: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model/data.pkl", content)


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda path: path.write_bytes(b"(" * 3 * 10**8), "pickle exhausted"),
        (lambda path: zipped(path, b"(" * 10**8), "data.pkl, of at most 1048576 bytes"),
        (lambda path: zipped(path, pickle.dumps(bytearray(9), 2).replace(b"K\t", b"J\0\0\0\x7f")), "it calls"),
        (lambda path: zipped(path, pickle.dumps(bytearray(9), 2)), "it calls"),
    ],
    ids=["marks", "zipped marks", "array", "small array"],
)
def test_a_pickle_that_grows_is_refused(tmp_path: Path, write: Callable[[Path], object], words: str) -> None:
    folder = write_by_hand(tmp_path / "folder")
    (folder / "model.safetensors").unlink()
    write(folder / WEIGHTS)
    said = complaint(lambda: load_marian(folder))
    assert "is no file of tensors alone, and nothing in it is run" in said
    assert words in said
