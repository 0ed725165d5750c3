"""Marian's model files, model.npz and model.bin (marian-dev: src/common/binary.cpp, src/common/types.h).

model.bin has its version, the number of items and four 64-bit numbers for each (bytes of its name, type, number of
dimensions, bytes of its data). Then come all names, all dimensions, padding to a multiple of 256 bytes, and the data.
"""

import math
import re
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tolka.errors import CheckpointError

OPTIONS = "special:model.yml"
"""The item that has the model's options as YAML, which ends with NUL."""
Array = NDArray[Any]
_FLOAT32, _INT8, _INT8_MATRIX = 0x0404, 0x0101, 0x4101
_MOST_ITEMS, _MOST_NAME, _MOST_DIMENSIONS = 2**16, 2**10, 8
_DTYPES = ("<f4", "|i1", "|u1", "|b1", "|S1")  # in a model.npz; all but the first are options
_ALIGNMENT = 256
_ZIP = b"PK\x03\x04"  # a .npz begins with it
_MATRIX = re.compile(r".*(_W.?|Wemb)")  # name of an item that is in int8 where matrices are


class Item(NamedTuple):
    """An array in a model file. read: returns it in float32, or the bytes of `OPTIONS`."""

    shape: tuple[int, ...]
    read: Callable[[], Array]


def read_items(path: Path) -> dict[str, Item]:
    """Return the items of a model.npz or model.bin by their names; nothing is read but their sizes.

    CheckpointError for a damaged file, and for an item that claims more than the file has.
    """
    try:
        with path.open("rb") as stream:
            read = _items_of_npz if stream.read(len(_ZIP)) == _ZIP else _items_of_bin
        items = list(read(path))
        if len(names := {name for name, _ in items}) < len(items):
            raise ValueError(f"{len(items)} items have {len(names)} names")
    except Exception as error:  # damaged bytes raise errors of many kinds
        reason = " ".join(f"{error or type(error).__name__}".split())[:200]
        raise CheckpointError(f"{path} is not a model of Marian, or damaged: {reason}") from None
    return dict(items)


def _items_of_bin(path: Path) -> Iterator[tuple[str, Item]]:
    content, position = np.memmap(path, np.uint8, "r"), 0

    def take(count: int, dtype: str) -> Array:
        nonlocal position
        begin, position = position, position + count * np.dtype(dtype).itemsize
        if position > len(content):
            raise ValueError("it ends before its data")
        return content[begin:position].view(dtype)

    version, count = take(2, "<u8").tolist()
    if version != 1 or count > _MOST_ITEMS:
        raise ValueError(f"its version is {version}, of which 1 is known, with {count} items")
    headers = take(4 * count, "<u8").reshape(-1, 4).tolist()
    if any(length > _MOST_NAME or dimensions > _MOST_DIMENSIONS for length, _, dimensions, _ in headers):
        raise ValueError("a name or a number of dimensions is too large")
    names = [take(length, "|u1").tobytes().rstrip(b"\0").decode() for length, *_ in headers]
    shapes = [tuple(take(dimensions, "<i4").tolist()) for _, _, dimensions, _ in headers]
    take(int(take(1, "<u8")[0]), "|u1")
    for name, shape, (_, kind, _, stored) in zip(names, shapes, headers, strict=True):
        size = math.prod(shape)
        sizes = {_FLOAT32: 4 * size, _INT8: size, _INT8_MATRIX: size + 4}
        if kind not in sizes:
            raise ValueError(f"{name} is of type 0x{kind:x}, and float32, int8 and intgemm8 can be read")
        if min(shape, default=0) < 1 or sizes[kind] > stored or (kind == _INT8_MATRIX and len(shape) != 2):
            raise ValueError(f"{name} claims {shape} in {stored} bytes")
        yield name, Item(shape, partial(_of_bin, name, shape, kind, take(stored, "|u1")[: sizes[kind]]))


def _of_bin(name: str, shape: tuple[int, ...], kind: int, data: Array) -> Array:
    if kind != _INT8_MATRIX:
        return data.view("<f4" if kind == _FLOAT32 else np.int8).reshape(shape)
    # The matrix is stored transposed, except embeddings, whose transpose is the output layer.
    with np.errstate(divide="ignore", invalid="ignore"):  # whoever reads it looks for NaN and inf
        values = data[:-4].view(np.int8) / data[-4:].view("<f4")
    matrix: Array = values.reshape(shape) if "Wemb" in name else values.reshape(shape[::-1]).T
    return matrix


def _items_of_npz(path: Path) -> Iterator[tuple[str, Item]]:
    if not zipfile.is_zipfile(path):
        raise ValueError("it is cut short: the list of its arrays, at its end, is missing")
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise ValueError("its arrays are compressed, and Marian writes them without")
        # Of several entries with the same bytes, too.
        if sum(entry.file_size for entry in entries) > path.stat().st_size:
            raise ValueError("its arrays claim more bytes than it has")
        for entry in entries:
            with archive.open(entry) as stream:
                if np.lib.format.read_magic(stream) != (1, 0):
                    raise ValueError(f"{entry.filename} is not an array of NumPy's format 1.0")
                shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(stream)
                begin = stream.tell()
            if dtype.str not in _DTYPES or is_fortran:
                raise ValueError(f"{entry.filename} is {dtype}, and must be float32 or int8")
            if min(shape, default=1) < 0 or math.prod(shape) * dtype.itemsize != entry.file_size - begin:
                raise ValueError(f"{entry.filename} claims {shape} in {entry.file_size - begin} bytes")
            yield entry.filename.removesuffix(".npy"), Item(shape, partial(_of_npz, path, entry, begin, shape, dtype))


def _of_npz(path: Path, entry: zipfile.ZipInfo, begin: int, shape: tuple[int, ...], dtype: Any) -> Array:
    with zipfile.ZipFile(path) as archive:
        values: Array = np.frombuffer(archive.read(entry), dtype, offset=begin)
    return values.reshape(shape)


def write_bin(path: Path, options: bytes, arrays: Mapping[str, Array], int8: bool) -> None:
    """Write a model.bin. arrays: in float32. options: YAML. int8: whether matrices are quantised."""
    text = options + b"\0"
    items = [(OPTIONS, _INT8, (len(text),), text)]
    for name, array in arrays.items():
        if int8 and _MATRIX.fullmatch(name):
            items.append((name, _INT8_MATRIX, array.shape, _quantised(array if "Wemb" in name else array.T)))
        else:
            items.append((name, _FLOAT32, array.shape, np.ascontiguousarray(array, "<f4").tobytes()))
    names = [name.encode() + b"\0" for name, *_ in items]
    padded = [data + bytes(-len(data) % _ALIGNMENT) for *_, data in items]
    with path.open("wb") as stream:
        stream.write(struct.pack("<2Q", 1, len(items)))
        for encoded, (_, kind, shape, _), data in zip(names, items, padded, strict=True):
            stream.write(struct.pack("<4Q", len(encoded), kind, len(shape), len(data)))
        stream.write(b"".join(names))
        stream.writelines(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in items)
        gap = -(stream.tell() + 8) % _ALIGNMENT
        stream.write(struct.pack("<Q", gap) + bytes(gap))
        stream.writelines(padded)


def _quantised(matrix: Array) -> bytes:
    """Return round(127 W / max|W|) as int8, and 127 / max|W| (marian-dev: src/tensors/cpu/integer_common.h)."""
    multiplier = np.float32(127) / max(np.abs(matrix).max(), np.float32(1e-30))
    return bytes(np.rint(matrix * multiplier).astype(np.int8).tobytes() + multiplier.tobytes())
