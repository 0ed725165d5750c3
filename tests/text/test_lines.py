"""Lines end at line feeds and nowhere else; every file that is no text is refused with its name and line."""

import codecs
import gzip
import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tolka.errors import DataError
from tolka.text.lines import count_and_digest, decode_lines, read_lines, user_path


def written(folder: Path, content: bytes, name: str = "text") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
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


def test_gzip_reads_like_plain(tmp_path: Path) -> None:
    path = written(tmp_path, gzip.compress("één\n\nzwei\n".encode()), "text.gz")
    assert list(read_lines(path)) == ["één", "", "zwei"]
    assert count_and_digest(path)[0] == 3


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"one\ntw\xe4\n", ":2: not UTF-8 (byte 0xe4 at column 3)"),
        (b"one\n\xed\xa0\x80\n", ":2: not UTF-8"),  # half of a surrogate pair
        (b"one\ntwo\nth\0ree\n", ":3: a NUL byte"),
        ("one\n".encode("utf-16"), ":1: this is UTF-16"),
        (codecs.BOM_UTF16_BE + "one\n".encode("utf-16-be"), ":1: this is UTF-16"),
        ("one\n".encode("utf-16-le"), ":1: a NUL byte"),
    ],
)
def test_what_is_no_text(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(DataError) as caught:
        list(read_lines(path))
    assert f"{path}{complaint}" in str(caught.value)


@pytest.mark.parametrize("content", ["one\n".encode("utf-16"), b"one\ntwo\0\n"])
def test_counting_refuses_what_has_no_lines(tmp_path: Path, content: bytes) -> None:
    # Otherwise a corpus with one UTF-16 side would be told that its line counts differ.
    with pytest.raises(DataError, match=r":1: this is UTF-16|:2: a NUL byte"):
        count_and_digest(written(tmp_path, content))


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
    with pytest.raises(DataError, match=r"text.xb: there is no such file; its folder holds: test.xb"):
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


def reference_reader(content: bytes) -> list[str]:
    """Lines by hand: split at line feeds, the empty rest after the last one left out."""
    rows = content.removeprefix(codecs.BOM_UTF8).split(b"\n")
    if content == b"" or content.endswith(b"\n"):
        rows.pop()
    return [row.removesuffix(b"\r").decode() for row in rows]


@given(st.binary(max_size=60) | st.text(max_size=40).map(str.encode) | st.text("ab \r\n\u2028\ufeff").map(str.encode))
def test_any_bytes(content: bytes) -> None:
    stream = [row + b"\n" for row in content.split(b"\n")]
    stream[-1] = stream[-1][:-1]
    try:
        lines = list(decode_lines([row for row in stream if row], "any"))
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
