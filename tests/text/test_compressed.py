"""Compressed files: several streams, padding, and what is truncated or damaged."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
from rows import each_row

from tolka.errors import DataError
from tolka.text.encodings import BlockStream
from tolka.text.lines import open_bytes, read_blocks

CONTENT = b"".join(b"%d %d\n" % (n, n * n) for n in range(30_000))  # more than is unpacked at a time


def zstandard(content: bytes) -> bytes:
    import pyarrow

    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return bytes(sink.getvalue())


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "zst": zstandard,
}


def written(folder: Path, kind: str, content: bytes) -> Path:
    path = folder / f"text.{kind}"
    path.write_bytes(content)
    return path


@each_row("kind", PACK)
def test_the_content_comes_back(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, kind, PACK[kind](CONTENT))
    assert b"".join(read_blocks(path)) == CONTENT
    with open_bytes(path) as stream:
        assert stream.read(7) == CONTENT[:7]
        assert stream.readline() == CONTENT[7 : CONTENT.index(b"\n", 7) + 1]


@each_row("kind", PACK)
def test_two_streams_one_after_the_other(tmp_path: Path, kind: str) -> None:
    """As `cat a.xz b.xz` makes."""
    path = written(tmp_path, kind, PACK[kind](b"one\n") + PACK[kind](CONTENT) + PACK[kind](b""))
    assert b"".join(read_blocks(path)) == b"one\n" + CONTENT


@each_row("kind", PACK)
def test_a_truncated_file_is_an_error(tmp_path: Path, kind: str) -> None:
    whole = PACK[kind](CONTENT)
    for size in (len(whole) // 2, len(whole) - 1):
        path = written(tmp_path, kind, whole[:size])
        with pytest.raises(DataError, match=rf"text\.{kind}.*: cannot be read .*is the file complete\?"):
            list(read_blocks(path))


@each_row("kind", ["gz", "xz", "bz2"])
def test_an_empty_file_and_one_that_holds_nothing(tmp_path: Path, kind: str) -> None:
    assert list(read_blocks(written(tmp_path, kind, PACK[kind](b"")))) == []


@each_row("kind", ["gz", "bz2"])
def test_zeros_after_a_stream_are_padding(tmp_path: Path, kind: str) -> None:
    """More of them than are read at a time."""
    path = written(tmp_path, kind, PACK[kind](b"one\n") + bytes(200_000))
    assert b"".join(read_blocks(path)) == b"one\n"


def test_a_damaged_checksum_is_an_error(tmp_path: Path) -> None:
    damaged = bytearray(lzma.compress(CONTENT))
    damaged[len(damaged) // 2] ^= 1
    with pytest.raises(DataError, match="Corrupt input data"):
        list(read_blocks(written(tmp_path, "xz", bytes(damaged))))


def test_a_stream_of_blocks_goes_over_empty_ones_and_is_closed_once_it_is_not_needed() -> None:
    closed: list[str] = []
    stream = BlockStream(iter([b"", b"ab", b"", b"", b"cde"]), lambda: closed.append("closed"))
    assert [stream.read(2), stream.read(2), stream.read(2), stream.read(2)] == [b"ab", b"cd", b"e", b""]
    assert closed == []
    stream.close()
    assert closed[:1] == ["closed"]
