"""Lines end at line feeds and nowhere else; every file that is not text is refused with its name and line."""

import bz2
import codecs
import gzip
import hashlib
import io
import itertools
import lzma
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows import each_row

from tolka.errors import DataError
from tolka.text.encodings import conversion
from tolka.text.lines import (
    LineLimit,
    count_ahead,
    count_and_digest,
    decode_lines,
    open_bytes,
    read_lines,
    user_path,
)


def written(folder: Path, content: bytes, name: str = "text") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@each_row(
    ("content", "lines"),
    [
        (b"", []),
        (b"one", ["one"]),
        (b"one\n", ["one"]),
        (b"one\n\n", ["one", ""]),
        (b"\n\none", ["", "", "one"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"one\rtwo\n", ["one\rtwo"]),
        (b"one\r\r\n", ["one\r"]),
        ("one\u2028two\u2029three\u0085four\x0bfive\x0csix\x1cseven\n".encode(), None),
        (codecs.BOM_UTF8 + b"one\n", ["one"]),
        (b"one\n" + codecs.BOM_UTF8 + b"two\n", ["one", "\ufefftwo"]),
        ("pebble 조약돌\n".encode(), ["pebble 조약돌"]),
    ],
)
def test_lines(tmp_path: Path, content: bytes, lines: list[str] | None) -> None:
    path = written(tmp_path, content)
    expected = [content.decode()[:-1]] if lines is None else lines
    assert list(read_lines(path)) == expected
    assert count_and_digest(path) == (len(expected), hashlib.sha256(content).hexdigest())


@each_row(
    ("content", "complaint"),
    [
        (b"one\ntw\xe4\n", ":2: not UTF-8 (byte 0xe4 at column 3)"),
        (
            b"5 \x80\n",
            ":1: not UTF-8 (byte 0x80 at column 3); convert the file first, for example: iconv -f WINDOWS-1252",
        ),
        ("één tw\xe9".encode()[:-1], ":1: not UTF-8 (byte 0xc3 at column 9); the line ends inside a character"),
        ("één\ntw\xe9".encode()[:-1], ":2: not UTF-8 (byte 0xc3 at column 3); the line ends inside a character"),
        ("안녕\n".encode()[:-2], ":1: not UTF-8 (byte 0xeb at column 4); the line ends inside a character"),
        ("één tw\xe9".encode()[:-1] + b"\n", ":1: not UTF-8 (byte 0xc3 at column 9); the line ends inside a character"),
        (b"caf\xe9", ":1: not UTF-8 (byte 0xe9 at column 4); convert the file first"),  # in Windows-1252, too
        ("één".encode("utf-16")[:-1], ":1: cannot be read further (not UTF-16: truncated data)"),
        (b"one\n\xed\xa0\x80\n", ":2: not UTF-8"),  # half of a surrogate pair
        (b"one\ntwo\nth\0ree\n", ":3: a NUL byte"),
        ("one\n".encode("utf-16-le"), ":1: a NUL byte"),
    ],
)
def test_what_is_no_text(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(DataError) as caught:
        list(read_lines(path))
    assert f"{path}{complaint}" in str(caught.value)


def zstandard(content: bytes) -> bytes:
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return bytes(sink.getvalue().to_pybytes())


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "zst": zstandard,
}


@each_row("kind", COMPRESS)
def test_two_compressed_streams_are_one_text(tmp_path: Path, kind: str) -> None:
    lines = [f"line {number * number}" for number in range(50_000)]  # more than a block is read
    content = "".join(f"{line}\n" for line in lines).encode()
    path = written(tmp_path, COMPRESS[kind](content[:99_999]) + COMPRESS[kind](content[99_999:]), f"text.{kind}")
    assert list(read_lines(path)) == lines
    assert count_and_digest(path) == (50_000, hashlib.sha256(content).hexdigest())


# Python's own readers of xz and bz2 ignore junk.
@each_row(
    ("kind", "tail"),
    [*itertools.product(["gz", "zst"], [b"junk", b"\0\0junk\n" * 20_000]), *itertools.product(COMPRESS, [None])],
)
def test_what_follows_compressed_text_is_an_error(tmp_path: Path, kind: str, tail: bytes | None) -> None:
    whole = COMPRESS[kind](b"one\ntwo\n")
    path = written(tmp_path, whole[:-5] if tail is None else whole + tail, f"text.{kind}")
    with pytest.raises(DataError, match=rf"text.{kind}:\d: cannot be read further"):
        list(read_lines(path))
    with pytest.raises(DataError, match=rf"text.{kind}(:1)?: cannot be read (to its end|further)"):
        count_and_digest(path)


@pytest.mark.parametrize("order", ["le", "be"])
@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_byte_order_mark_says_the_encoding(
    tmp_path: Path, bits: int, order: str, pack: Callable[[bytes], bytes]
) -> None:
    lines = ["één\u2028a", "", "ਅਆ", "😀\r", *map(str, range(40_000))]  # a byte of ਅ and of ਆ is that of a line feed
    content = "\ufeff" + "".join(f"{line}\n" for line in lines)
    path = written(tmp_path, pack(content.encode(f"utf-{bits}-{order}")), "text.gz" if pack is not bytes else "text")
    expected = [line.removesuffix("\r") for line in lines]
    assert list(read_lines(path)) == expected
    assert count_and_digest(path) == (len(lines), hashlib.sha256(content[1:].encode()).hexdigest())
    with open_bytes(path) as stream, path.open("rb") as raw:
        assert list(decode_lines(stream, "a")) == expected
        if pack is bytes:
            assert count_ahead(raw) == len(lines)
            assert list(read_lines(Path("stdin"), stream=raw)) == expected
            assert not raw.closed


def test_counting_refuses_what_has_no_lines(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r":2: a NUL byte"):
        count_and_digest(written(tmp_path, b"one\ntwo\0\n"))


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("a.de", "iconv -f X -t UTF-8 a.de > a-utf8.de"),
        ("text", "iconv -f X -t UTF-8 text > text-utf8"),
        ("the text.tsv.gz", "gzip -dc 'the text.tsv.gz' | iconv -f X -t UTF-8 > 'the text-utf8.tsv'"),
        ("standard input", "iconv -f X -t UTF-8 FILE > NEW"),
    ],
)
def test_the_conversion_names_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if "input" not in name:
        Path(name).touch()
    assert conversion(name, "X") == command


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"PK\x03\x04\x14\0\0\0", "a ZIP archive, as Word, OpenDocument and EPUB files are"),
        (b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", "a PDF"),
        (gzip.compress(b"one\n", mtime=0), "compressed by gzip"),
    ],
)
def test_a_binary_file_is_called_what_it_is(tmp_path: Path, content: bytes, kind: str) -> None:
    for read in (lambda path: list(read_lines(path)), count_and_digest):
        with pytest.raises(DataError, match=f": this is {kind}, not plain text; "):
            read(written(tmp_path, content))


def test_text_that_begins_like_a_binary_file_is_text(tmp_path: Path) -> None:
    path = written(tmp_path, "%PDF-1.4 is a mark.\nBZh, é\n".encode())
    assert list(read_lines(path)) == ["%PDF-1.4 is a mark.", "BZh, é"]
    assert count_and_digest(path)[0] == 2


def test_a_nul_byte_far_into_a_file_is_found_with_its_line(tmp_path: Path) -> None:
    content = b"0123456789\n" * 200_000 + b"a\0\n"  # more than one block of a MiB
    with pytest.raises(DataError, match=r":200001: a NUL byte"):
        count_and_digest(written(tmp_path, content))


def spoilt_gzips() -> dict[str, bytes]:
    whole = gzip.compress(b"".join(b"line %d\n" % (n * n) for n in range(500)), mtime=0)
    flipped = bytearray(whole)
    flipped[40] ^= 255
    return {"not gzip": b"plain text\n", "cut": whole[: len(whole) // 2], "flipped": bytes(flipped)}


@pytest.mark.parametrize("kind", ["not gzip", "cut", "flipped"])
def test_a_spoilt_gzip_file(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, spoilt_gzips()[kind], "text.gz")
    with pytest.raises(DataError, match="is the file complete"):
        list(read_lines(path))
    with pytest.raises(DataError, match="is the file complete"):
        count_and_digest(path)


def test_a_missing_file_shows_its_neighbours(tmp_path: Path) -> None:
    written(tmp_path, b"", "test.xb")
    with pytest.raises(DataError, match=r"news.en: there is no such file; the folder holds: test.xb"):
        list(read_lines(tmp_path / "news.en"))
    with pytest.raises(DataError, match=r"there is no such file. Did you mean '.*test.xb'"):
        list(read_lines(tmp_path / "text.xb"))
    with pytest.raises(DataError, match=r"no such file \(and no folder"):
        list(read_lines(tmp_path / "nowhere" / "text.xb"))


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        list(read_lines(tmp_path))


def test_a_tilde_is_home_only_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somewhere")
    assert user_path("~/a") == Path("/somewhere/a")
    assert user_path("~nobody-has-this-name/a") == Path("~nobody-has-this-name/a")
    assert user_path("a~b") == Path("a~b")


FOUR = LineLimit(4, "some.key")


@each_row("content", [b"four\nab\n", b"four\r\nab", codecs.BOM_UTF8 + b"four\r\nab", "é누\n".encode()])
def test_a_line_may_be_as_long_as_the_limit(tmp_path: Path, content: bytes) -> None:
    path = written(tmp_path, content)
    limit = LineLimit(5) if "é".encode() in content else FOUR
    assert list(read_lines(path, limit=limit)) == content.decode("utf-8-sig").split()
    assert count_and_digest(path, limit)[0] == len(content.split())


@each_row("content", [b"five5\n", b"five5", codecs.BOM_UTF8 + b"five5\r\n", "누누\n".encode(), b"five5" * 99])
def test_a_line_beyond_the_limit(tmp_path: Path, content: bytes) -> None:
    path = written(tmp_path, b"four\n" + content.removeprefix(codecs.BOM_UTF8))
    with pytest.raises(DataError, match=r":2: the line is longer than 4 bytes \(some.key\)"):
        list(read_lines(path, limit=FOUR))
    with pytest.raises(DataError, match=r":1: the line is longer than 4 bytes \(some.key\)"):
        list(read_lines(written(tmp_path, content), limit=FOUR))


@pytest.mark.parametrize("ending", ["", ".gz", ".xz", ".bz2", ".zst"])
def test_a_line_without_an_end_is_not_read_to_its_end(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"text{ending}"
    packed(path, b"one\n" + b"a" * 50_000_000)
    for read in (lambda: list(read_lines(path)), lambda: count_and_digest(path)):
        tracemalloc.start()
        with pytest.raises(DataError, match=r":2: the line is longer than 1000000 bytes; is this text"):
            read()
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < 20_000_000


def packed(path: Path, content: bytes) -> None:
    if path.suffix == ".zst":
        import pyarrow

        with pyarrow.CompressedOutputStream(str(path), "zstd") as stream:
            stream.write(content)
        return
    openers: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
    with openers[path.suffix](path, "wb") if path.suffix else path.open("wb") as stream:
        stream.write(content)


def reference_reader(content: bytes) -> list[str]:
    """Lines by hand: split at line feeds, the empty rest after the last one left out."""
    rows = content.removeprefix(codecs.BOM_UTF8).split(b"\n")
    if content == b"" or content.endswith(b"\n"):
        rows.pop()
    return [row.removesuffix(b"\r").decode() for row in rows]


@pytest.mark.slow
@given(st.binary(max_size=60) | st.text(max_size=40).map(str.encode) | st.text("ab \r\n\u2028\ufeff").map(str.encode))
def test_any_bytes(content: bytes) -> None:
    try:
        lines = list(decode_lines(io.BytesIO(content), "any"))
    except DataError:
        lines = None
    refused = b"\0" in content or content.startswith((b"\xff\xfe", b"\xfe\xff")) or not is_utf8(content)
    assert lines == (None if refused else reference_reader(content))


def is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_the_encoding_is_recognised_by_the_lines_that_follow_too(tmp_path: Path) -> None:
    (tmp_path / "a.cs").write_bytes("Dobře.\nPříliš žluťoučký kůň.\n".encode("cp1250"))
    with pytest.raises(DataError, match=r"a.cs:1: not UTF-8 .* iconv -f WINDOWS-1250"):
        list(read_lines(tmp_path / "a.cs"))
