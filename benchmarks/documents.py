"""Documents of several megabytes in each format: seconds and memory to read and write them, and to translate them.

    python benchmarks/documents.py TEXT [--megabytes 10]
    python benchmarks/documents.py TEXT --model MODEL [--megabytes 1] [search=greedy ...]

TEXT has a sentence a line. Of its lines, repeated, a document of each format is made. Without a model, each is read and
written by a translator that changes nothing, in a process of its own: printed are CPU seconds, the peak of resident
memory, and whether the output is the input (of archives: whether it has the same files). With one, mt-translate
translates the document and the same lines as plain text, in turn, three times each: printed are the ratio of the
medians of CPU seconds, and both peaks of memory.
"""

import argparse
import html
import json
import os
import statistics
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, cycle
from pathlib import Path

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Override PartName="/word/document.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
OFFICE, TEXT = (f"urn:oasis:names:tc:opendocument:xmlns:{name}:1.0" for name in ("office", "text"))
REPEATS = 3


def stamp(seconds: int) -> str:
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def element(*names: str) -> Callable[[int, str], str]:
    """Return what puts a line into elements, the outermost first."""
    head, tail = "".join(f"<{name}>" for name in names), "".join(f"</{name.split()[0]}>" for name in reversed(names))
    return lambda number, line: f"{head}{html.escape(line, quote=False)}{tail}\n"


FORMATS: dict[str, tuple[str, Callable[[int, str], str], str]] = {
    "txt": ("", lambda number, line: f"{line}\n", ""),
    "html": ("<html><body>\n", element("p"), "</body></html>\n"),
    "md": ("", lambda number, line: f"{line}\n\n", ""),
    "srt": ("", lambda n, line: f"{n}\n{stamp(4 * n)},000 --> {stamp(4 * n + 3)},500\n{line}\n\n", ""),
    "vtt": (
        "WEBVTT\n\n",
        lambda n, line: f"{stamp(4 * n)}.000 --> {stamp(4 * n + 3)}.500\n{html.escape(line)}\n\n",
        "",
    ),
    "po": (
        'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n',
        lambda number, line: f'msgctxt "{number}"\nmsgid {json.dumps(line, ensure_ascii=False)}\nmsgstr ""\n\n',
        "",
    ),
    "xliff": (
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en"><body>\n',
        lambda number, line: f'<trans-unit id="{number}"><source>{html.escape(line)}</source></trans-unit>\n',
        "</body></file></xliff>\n",
    ),
    "tmx": (
        '<tmx version="1.4"><header srclang="en"/><body>\n',
        element("tu", 'tuv xml:lang="en"', "seg"),
        "</body></tmx>\n",
    ),
    "json": ("{\n", lambda number, line: f' "{number}": {json.dumps(line, ensure_ascii=False)},\n', ' "": ""\n}\n'),
    "yaml": ("en:\n", lambda number, line: f"  k{number}: {json.dumps(line, ensure_ascii=False)}\n", ""),
    "usfm": ("\\id GEN\n\\c 1\n\\p\n", lambda number, line: f"\\v {number} {line}\n", ""),
    "docx": (f'<w:document xmlns:w="{W}"><w:body>', element("w:p", "w:r", "w:t"), "</w:body></w:document>"),
    "odt": (
        f'<office:document-content xmlns:office="{OFFICE}" xmlns:text="{TEXT}"><office:body><office:text>',
        element("text:p"),
        "</office:text></office:body></office:document-content>",
    ),
}


def write(path: Path, lines: Sequence[str], size: int) -> int:
    """Write lines of `size` bytes in all as a document of the format that the path names; return their number."""
    head, made, tail = FORMATS[path.suffix[1:]]
    count = 0

    def parts() -> Iterator[str]:
        nonlocal count
        left = size
        for count, line in enumerate(cycle(lines), 1):
            yield made(count, line)
            left -= len(line.encode()) + 1
            if left <= 0:
                return

    # A line at a time: the memory of this process is where that of a new one begins to be counted.
    if path.suffix not in (".docx", ".odt"):
        with path.open("w", encoding="utf-8", newline="") as stream:
            stream.writelines(chain([head], parts(), [tail]))
        return count
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        if path.suffix == ".docx":
            archive.writestr("[Content_Types].xml", TYPES)
        else:
            archive.writestr("mimetype", "application/vnd.oasis.opendocument.text", zipfile.ZIP_STORED)
            archive.writestr("META-INF/manifest.xml", "<manifest/>")
        with archive.open("word/document.xml" if path.suffix == ".docx" else "content.xml", "w") as content:
            for part in chain([head], parts(), [tail]):
                content.write(part.encode())
    return count


def read_and_write(path: Path) -> None:
    """Write the document beside itself, as a translator does that changes nothing."""
    from tolka.documents.base import Document
    from tolka.jobs.inputs import kind_of_ending

    kind = kind_of_ending(path, has_column=False)
    assert kind
    document = kind(path)
    document = document if isinstance(document, Document) else kind.document(path)  # type: ignore[attr-defined]
    with path.with_name(f"out{path.suffix}").open("wb") as stream:
        for text in document.texts():
            stream.write(document.write(text))
        stream.write(document.end())


def measured(arguments: Sequence[str]) -> tuple[float, int]:
    """Return the CPU seconds and the peak of resident memory, in MiB, of a command."""
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE)
    _, status, used = os.wait4(process.pid, 0)
    assert process.stderr
    assert status == 0, process.stderr.read().decode()
    return used.ru_utime + used.ru_stime, used.ru_maxrss // 1024


def is_same(one: Path, other: Path) -> bool:
    if one.suffix not in (".docx", ".odt"):
        return one.read_bytes() == other.read_bytes()
    first, second = zipfile.ZipFile(one), zipfile.ZipFile(other)
    return first.namelist() == second.namelist() and all(
        first.read(name) == second.read(name) for name in first.namelist()
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("--model", default="")
    parser.add_argument("--megabytes", type=float, default=10)
    parser.add_argument("--formats", default=",".join(FORMATS))
    options, settings = parser.parse_known_args()
    lines = options.text.read_text(encoding="utf-8").splitlines()
    size = int(options.megabytes * 1e6)
    with tempfile.TemporaryDirectory() as folder:
        for name in options.formats.split(","):
            path, plain = Path(folder, f"a.{name}"), Path(folder, "a.txt")
            count = write(path, lines, size)
            if not options.model:
                seconds, peak = measured([sys.executable, __file__, "--read", str(path)])
                same = is_same(path, path.with_name(f"out{path.suffix}"))
                print(
                    f"{name:5} {count} texts {seconds:6.1f} s {peak:5} MiB {'same' if same else 'DIFFERENT'}",
                    flush=True,
                )
                continue
            write(plain, lines, size)
            rows: dict[Path, list[tuple[float, int]]] = {plain: [], path: []}
            for each in [plain, path] * REPEATS:
                command = [sys.executable, "-c", "from tolka.cli import mt_translate; mt_translate()", options.model]
                rows[each].append(
                    measured([*command, str(each), "-o", str(each.with_name(f"out{each.suffix}")), *settings])
                )
            medians = {each: statistics.median(seconds for seconds, _ in found) for each, found in rows.items()}
            peaks = " and ".join(str(max(peak for _, peak in rows[each])) for each in (plain, path))
            print(f"{name:5} {count} texts, ratio {medians[path] / medians[plain]:.3f}, {peaks} MiB", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        read_and_write(Path(sys.argv[2]))
    else:
        main()
