"""Marian's model files and folders: bytes by hand, files from strangers, and what comes back of what was written."""

import io
import struct
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from damage import complaint
from marian_files import write_zip_of_opus_mt
from marian_folder import load_marian, mixed_lines
from rows import each_row

from tolka.errors import CheckpointError
from tolka.formats.any_model import load_any, read_folder
from tolka.formats.marian.model_file import OPTIONS, read_items, write_bin
from tolka.model_directory.settings import is_foreign


def packed(*items: tuple[str, int, tuple[int, ...], bytes], version: int = 1, count: int | None = None) -> bytes:
    """A model.bin, written by hand: name, type, shape and data of each item."""
    names = [name.encode() + b"\0" for name, *_ in items]
    content = struct.pack("<QQ", version, len(items) if count is None else count)
    for name, (_, kind, shape, data) in zip(names, items, strict=True):
        content += struct.pack("<4Q", len(name), kind, len(shape), len(data))
    content += b"".join(names) + b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in items)
    gap = -(len(content) + 8) % 256
    return content + struct.pack("<Q", gap) + bytes(gap) + b"".join(data for *_, data in items)


def test_a_file_by_hand(tmp_path: Path) -> None:
    matrix = struct.pack("<6b", 1, 2, 3, 4, 5, 6) + struct.pack("<f", 2.0)  # transposed, and twice as large
    (tmp_path / "model.bin").write_bytes(
        packed(
            ("b", 0x0404, (1, 2), struct.pack("<2f", 0.5, -1.0)),
            ("x_W", 0x4101, (2, 3), matrix),
            ("Wemb", 0x4101, (2, 3), matrix),
            (OPTIONS, 0x0101, (3,), b"a\n\0"),
        )
    )
    items = read_items(tmp_path / "model.bin")
    assert items["b"].read().tolist() == [[0.5, -1.0]]
    assert items["x_W"].read().tolist() == [[0.5, 1.5, 2.5], [1.0, 2.0, 3.0]]
    assert items["Wemb"].read().tolist() == [[0.5, 1.0, 1.5], [2.0, 2.5, 3.0]]
    assert items[OPTIONS].read().tobytes() == b"a\n\0"


def test_what_is_written(tmp_path: Path) -> None:
    arrays = {"a_b1": np.array([[1.0, -2.0]], "f4"), "a_W1": np.array([[0.0, 1.0, 12.7], [-12.7, 0.04, 0.06]], "f4")}
    write_bin(tmp_path / "model.bin", b"a: 1\n", arrays, int8=True)
    content = (tmp_path / "model.bin").read_bytes()
    assert len(content) % 256 == 0
    first = content.index(b"a: 1\n\0")
    assert first % 256 == 0
    assert struct.unpack("<2f", content[first + 256 : first + 264]) == (1.0, -2.0)
    assert struct.unpack("<6bf", content[first + 512 : first + 522]) == (0, -127, 10, 0, 127, 1, 10.0)
    items = read_items(tmp_path / "model.bin")
    np.testing.assert_allclose(items["a_W1"].read(), [[0, 1, 12.7], [-12.7, 0, 0.1]], rtol=1e-6)


def with_header(shape: str, data: bytes = bytes(8), dtype: str = "<f4") -> bytes:
    """A .npy file with a shape of one's own."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def zipped(path: Path, *entries: tuple[str, bytes], compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in entries:
            archive.writestr(name, content)


def saved(array: np.ndarray[Any, Any]) -> bytes:
    """A model.npz with one array."""
    content = io.BytesIO()
    np.savez(content, a=array)
    return content.getvalue()


BIN: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "damaged"),
    "cut": (packed(("b", 0x0404, (1, 2), bytes(8)))[:-1], "it ends before its data"),
    "version": (packed(version=2), "its version is 2, of which 1 is known"),
    "count": (packed(count=2**60), "with 1152921504606846976 items"),
    "many": (packed(count=9000), "it ends before its data"),
    "dimensions": (struct.pack("<6Q", 1, 1, 2, 0x0404, 2**60, 8) + bytes(999), "number of dimensions is too large"),
    "name": (struct.pack("<6Q", 1, 1, 2**60, 0x0404, 1, 8) + bytes(999), "a name or a number of dimensions is too"),
    "stored": (struct.pack("<6Q", 1, 1, 2, 0x0404, 1, 2**63) + bytes(999), "claims"),
    "shape": (packed(("b", 0x0404, (2**31 - 1,) * 8, bytes(8))), "b claims (2147483647, 2147483647"),
    "negative": (packed(("b", 0x0404, (-1, -2), bytes(8))), "b claims (-1, -2) in 8 bytes"),
    "int8": (packed(("b", 0x4101, (2, 4), bytes(8))), "b claims (2, 4) in 8 bytes"),
    "type": (packed(("b", 0x1404, (2,), bytes(8))), "b is of type 0x1404, and float32, int8"),
    "twice": (packed(*[("b", 0x0404, (2,), bytes(8))] * 2), "2 items have 1 names"),
    "not UTF-8": (packed(("b", 0x0404, (2,), bytes(8))).replace(b"b\0", b"\xff\0"), "decode"),
}
NPZ: dict[str, tuple[Callable[[Path], object], str]] = {
    "npz, pickle": (lambda path: np.savez(path, a=np.array([print], object)), "a.npy is object, and must be float32"),
    "npz, bomb": (
        lambda path: zipped(path, ("a.npy", with_header("(2,)") + bytes(10**7)), compression=zipfile.ZIP_DEFLATED),
        "its arrays are compressed",
    ),
    "npz, shape": (
        lambda path: zipped(path, ("a.npy", with_header("(1152921504606846976,)"))),
        "claims (1152921504606846",
    ),
    "npz, header": (lambda path: zipped(path, ("a.npy", with_header("(" * 60 + ")" * 60))), "damaged"),
    "npz, code": (lambda path: zipped(path, ("a.npy", with_header("print(1)"))), "damaged"),
    "npz, negative": (lambda path: zipped(path, ("a.npy", with_header("(-1, -2)"))), "claims (-1, -2)"),
    "npz, float64": (lambda path: np.savez(path, a=np.zeros(2)), "a.npy is float64, and must be float32 or int8"),
    "npz, none": (lambda path: zipped(path, ("a.txt", b"hello")), "damaged"),
    "npz, cut": (lambda path: path.write_bytes(saved(np.zeros(2))[:-9]), "or damaged: it is cut short"),
    "npz, cut early": (lambda path: path.write_bytes(saved(np.zeros(2))[:99]), "or damaged: it is cut short"),
}


def refused(read: Callable[[], object]) -> str:
    """The one line that is said."""
    with pytest.raises(CheckpointError) as caught:
        read()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def hostile_file(name: str, folder: Path) -> tuple[Path, str]:
    """A file of one of the tables, and what is to be said of it."""
    folder.mkdir()
    if name in BIN:
        content, said = BIN[name]
        (folder / "model.bin").write_bytes(content)
        return folder / "model.bin", said
    write, said = NPZ[name]
    write(folder / "model.npz")
    return folder / "model.npz", said


@pytest.mark.parametrize("say", [refused, pytest.param(complaint, marks=pytest.mark.slow)], ids=["line", "memory"])
def test_a_hostile_file_takes_one_line_and_no_memory(say: Callable[..., str], tmp_path: Path) -> None:
    for name in (*BIN, *NPZ):
        path, said = hostile_file(name, tmp_path / name)
        message = say(partial(read_items, path))
        assert said in message, (name, message)
        assert str(path) in message


@pytest.fixture(scope="module")
def opus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder as of OPUS-MT's zips, and one of Hugging Face with the same weights."""
    place = tmp_path_factory.mktemp("opus")
    return write_zip_of_opus_mt(place / "zip", place / "hf"), place / "hf"


def test_a_zip_of_opus_mt_has_the_weights_of_the_converted_folder(opus: tuple[Path, Path]) -> None:
    found, converted = load_any(opus[0]), load_marian(opus[1])
    assert found.tokenizer.vocabularies == converted.tokenizer.vocabularies
    lines = mixed_lines(50)
    assert found.tokenizer.encode_source(lines) == converted.tokenizer.encode_source(lines)
    weights = converted.model.state_dict()
    last = weights["output_bias"].clone()
    for name, tensor in found.model.state_dict().items():
        if name == "output_bias":  # theirs for <pad> and <s> are never read
            assert torch.equal(tensor[2:], last[2:])
        elif name.endswith("embedding.weight"):  # Marian's decoder starts from zeros: its converter adds a row of them
            assert torch.equal(tensor[2:], weights[name][2:])
            assert not tensor[:2].any()
        else:
            assert torch.equal(tensor, weights[name]), name
    options = found.config["model"]
    assert (options["positions"], options["decoder_start"], options["norm"]) == ("sinusoidal_marian", "zero", "post")


def spoilt(folder: Path, opus: Path, change: Callable[[Path], object]) -> str:
    """What is said about a copy of a folder that was changed."""
    folder.mkdir()
    for path in opus.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    change(folder)
    message = refused(lambda: load_any(folder))
    assert str(folder) in message
    return message


# A list of a thousand million texts.
BOMB = "[&a0 [x,x,x,x,x,x,x,x,x,x]," + ",".join(f"&a{n + 1} [{','.join([f'*a{n}'] * 10)}]" for n in range(8)) + "]"


def rewrite(name: str, change: Callable[[str], str]) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(change((folder / name).read_text("utf-8")), "utf-8")


def with_options(**options: Any) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        arrays = dict(np.load(folder / "opus.npz"))
        text = yaml.safe_dump({**yaml.safe_load(arrays[OPTIONS].tobytes().rstrip(b"\0")), **options})
        np.savez(folder / "opus.npz", **{**arrays, OPTIONS: np.frombuffer(text.encode() + b"\0", np.int8)})

    return change


def with_arrays(**given: Any) -> Callable[[Path], object]:
    return lambda folder: np.savez(folder / "opus.npz", **{**dict(np.load(folder / "opus.npz")), **given})


def without(name: str) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        np.savez(folder / "opus.npz", **{k: v for k, v in np.load(folder / "opus.npz").items() if k != name})

    return change


@each_row(
    ("change", "said"),
    [
        (with_options(**{"transformer-preprocess": "n"}), "transformer-preprocess ('n') must be ''"),
        (with_options(type="s2s"), "type ('s2s') must be 'transformer'"),
        (with_options(**{"transformer-ffn-activation": "gelu"}), "transformer-ffn-activation ('gelu') must be"),
        (with_options(**{"transformer-decoder-autoreg": "rnn", "dec-cell": "gru"}), "dec-cell ('gru') must be 'ssru'"),
        (with_options(**{"transformer-decoder-autoreg": "average-attention"}), "must be 'self-attention' or 'rnn'"),
        (with_options(**{"dim-emb": True}), "dim-emb (True) must be a whole number"),
        (
            with_options(**{"dim-emb": 2**18}),
            "and by its options and the vocabulary it must be (1, 262144)",
        ),
        (with_options(**{"enc-depth": 2}), "16 tensors differ from its options: encoder_l2_ffn_W1 is missing"),
        (with_options(**{"enc-depth": 10**9}), "model.layers"),
        (with_options(**{"dec-depth": 9}), "tensors differ from its options: decoder_l2_"),
        (with_options(**{"right-left": True}), "right-left (True) must be False"),
        (with_options(**{"transformer-heads": 2**31}), "must be a whole number below 2^31"),
        (rewrite("decoder.yml", lambda text: "models: " + "[" * 20_000), "decoder.yml is damaged"),
        (rewrite("decoder.yml", lambda text: f"{text}\ndim-emb: 0x{'f' * 20_000}"), "decoder.yml is damaged"),
        (rewrite("decoder.yml", lambda text: text + "# too long\n" * 8000), "decoder.yml is damaged"),
        (with_options(**{"transformer-heads": 3}), "must be a multiple of model.heads (3)"),
        (with_options(**{"tied-embeddings-all": False}), "decoder_Wemb is missing"),
        (with_arrays(encoder_l1_self_bq=np.full((1, 16), np.nan, "f4")), "not finite (NaN or inf in encoder_l1"),
        (with_arrays(Wpos=np.zeros((2, 16), "f4")), "Wpos is unknown"),
        (without(OPTIONS), f"lacks its options ({OPTIONS})"),
        (with_arrays(**{OPTIONS: np.frombuffer(b"- a\0", np.int8)}), f"{OPTIONS}, is damaged, or is no list of set"),
        (rewrite("decoder.yml", lambda text: text.replace("opus.npz", "other.npz")), "lacks its file other.npz"),
        (rewrite("decoder.yml", lambda text: text.replace("opus.npz", "..")), "is a link to a file outside its folder"),
        (rewrite("decoder.yml", lambda text: "models: [a.npz, b.npz]"), "has several models, a.npz and b.npz"),
        (
            rewrite("decoder.yml", lambda text: "{models: {a: b}, vocabs: [source.spm, target.spm]}"),
            "each side has its own vocabulary",
        ),
        (rewrite("decoder.yml", lambda text: "models: ["), "decoder.yml is damaged"),
        (rewrite("decoder.yml", lambda text: "beam-size: 6"), "decoder.yml does not name its vocabs"),
        (lambda folder: (folder / "decoder.yml").unlink(), "there is no decoder.yml, which must name its vocabs"),
        (rewrite("decoder.yml", lambda text: f"models: {BOMB}"), "decoder.yml is damaged"),
        (with_arrays(**{OPTIONS: np.frombuffer(f"type: {BOMB}".encode(), np.int8)}), f"{OPTIONS}, is damaged"),
        (
            rewrite("opus.vocab.yml", lambda text: text + f'"x": {BOMB}: 99\n'),
            "opus.vocab.yml must have a line 'subword: id'",
        ),
        (rewrite("opus.vocab.yml", lambda text: text.replace(": 5\n", ": 4\n")), "subwords from 0 to 32, each once"),
        (rewrite("opus.vocab.yml", lambda text: text.replace(": 5\n", ": 5x\n")), "must have a line 'subword: id'"),
        (rewrite("opus.vocab.yml", lambda text: text.replace("</s>", "</t>")), "lacks </s> or <unk>"),
        (rewrite("opus.vocab.yml", lambda text: text + "x: 999999999999\n"), "subwords from 0 to 33, each once"),
        (rewrite("opus.vocab.yml", lambda text: text + "</s>: 33\n"), "opus.vocab.yml has a subword twice"),
        (lambda folder: (folder / "source.spm").write_bytes(b"x"), "source.spm is not a SentencePiece model"),
        (lambda folder: (folder / "target.spm").unlink(), "lacks its file target.spm"),
    ],
)
def test_a_folder_that_cannot_be_read(
    change: Callable[[Path], object], said: str, opus: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    message = spoilt(tmp_path_factory.mktemp("spoilt") / "copy", opus[0], change)
    assert said in message, message


def test_what_is_not_of_marian(tmp_path: Path) -> None:
    """Files of names that many programs write; import needs one line that says what would be a model."""
    for name in ("config.yml", "data.npz", "model.bin", "model.npz.yml"):
        (tmp_path / name).touch()
        assert not is_foreign(tmp_path)
        said = "lacks its file config.json, as Hugging Face's models have it, and is not of Marian: it has neither deco"
        assert said in refused(lambda: read_folder(tmp_path))
    for name in ("vocab.yml", "source.spm", "decoder.yml"):
        (tmp_path / name).touch()
        assert is_foreign(tmp_path), name
        (tmp_path / name).unlink()
