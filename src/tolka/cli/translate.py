"""mt-translate: one translation per line of text."""

import argparse
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from tolka.cli import common
from tolka.cli.common import (
    DONE,
    MODEL_HELP,
    Parser,
    check_output,
    models_of,
    settings_help,
    sort_out,
    whole_file,
)
from tolka.errors import DataError
from tolka.system.progress import bar, say
from tolka.text.lines import count_and_digest, decode_lines, read_lines, without_compression
from tolka.version import __version__

if TYPE_CHECKING:
    from tolka.evaluation.attention_maps import AttentionMap
    from tolka.translation.options import DecodingConfig
    from tolka.translation.translator import Translation

_EXAMPLES = """examples:
  echo "I love you." | mt-translate runs/sample
  mt-translate runs/sample news.en -o news.ko search.beam_size=10
  mt-translate runs/a,runs/b,runs/c news.en               three models together: the mean of their probabilities
  mt-translate runs/sample news.en --attention maps       where it looked: maps/000001.png and .json, and so on
  mt-translate runs/sample news.en alignments=true        each line with its word alignment: ... TAB 0-0 1-2

settings (key=value):
"""


def main() -> None:
    """Run `mt-translate` as a console script."""
    common.main(run)


def run(arguments: Sequence[str]) -> int:
    """Parse the arguments, translate, and report on stderr what was unusual."""
    options = _parsed(arguments)
    files, settings = sort_out(options.inputs)
    models = models_of(options.model)
    _check(files, options.output, options.attention)

    from tolka.api import translate_and_look, translate_windows
    from tolka.config.command_line import translate_config

    typed = not files and sys.stdin.isatty()
    if typed:
        say("type a line to translate it; end with Ctrl-D")
    config = translate_config(settings)
    total = sum(count_and_digest(path, config.decoding.line_limit)[0] for path in files) if files else None
    _note_documents(files)
    looking = AttentionOutput(options.attention, config.attention.alignments)
    windows = looking.at(_windows(files, options.output, config.decoding))
    tally = Tally()
    shown = not typed and not _on_screen(options.output)
    with _output(options.output) as out, bar("translating", total, " lines", shown=shown) as progress:
        if looking:
            found = translate_and_look(models, windows, config, progress.update)
        else:
            plain = translate_windows(models, windows, config, progress.update)
            found = ([(each, []) for each in window] for window in plain)
        try:
            for window in found:
                for translation, maps in window:
                    out.write(f"{translation.text}{looking.line(translation, maps)}\n".encode())
                    tally.add(translation)
                out.flush()  # whoever wrote these lines may be waiting
        except DataError:  # a line that cannot be read: those before it are translated
            progress.close()
            looking.conclude()
            tally.conclude()
            raise
    looking.conclude()
    tally.conclude()
    if not tally.count:
        say("note: there was no line to translate")
    return DONE


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of mt-translate."""
    parser = Parser(
        prog="mt-translate",
        description="Translate text line by line: files, or standard input when none is named.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL", help=MODEL_HELP)
    parser.add_argument("inputs", nargs="*", metavar="FILE|key=value", help="texts to translate, and settings")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="OUT", help="write there, all or nothing, not to standard output"
    )
    parser.add_argument(
        "--attention",
        type=Path,
        metavar="DIR",
        help="write attention maps there: a picture and a JSON file for each line",
    )
    parser.add_argument("--version", action="version", version=__version__)
    if {"-h", "--help"} & set(arguments):
        parser.epilog = _EXAMPLES + settings_help("translate")
    return parser.parse_intermixed_args(arguments)


def _check(files: Sequence[Path], output: Path | None, attention: Path | None) -> None:
    """Raise DataError for what cannot be read or written; create the folder of the attention maps."""
    for path in files:
        if path.is_dir():
            raise DataError(f"{path} is a folder, not a text; models that translate together are joined by commas")
        if not path.is_file():
            raise DataError(f"{path}: there is no such file")
    if not files and sys.stdin is None:
        raise DataError("standard input is closed; name a file to translate")
    if output:
        check_output(output)
    if attention:
        if attention.exists() and not attention.is_dir():
            raise DataError(f"{attention} is a file; --attention takes a folder to write to")
        attention.mkdir(parents=True, exist_ok=True)


@dataclass
class Tally:
    """Counts of lines that were treated in an unusual way."""

    count: int = 0
    apart: int = 0
    together: int = 0
    long: int = 0
    cut: int = 0

    def add(self, translation: "Translation") -> None:
        """Count a translated line."""
        several = translation.sentences > 1
        self.count += 1
        self.apart += several and translation.split == "sentences"
        self.together += several and translation.split == "unknown"
        self.long += translation.too_long
        self.cut += not translation.complete

    def conclude(self) -> None:
        """Print a note for each count that a user should know of."""
        lines = f"of {self.count} lines"
        if self.apart:
            say(f"note: {self.apart} {lines} have several sentences, translated one by one (decoding.split)")
        if self.together:
            say(
                f"note: {self.together} {lines} have several sentences, translated at once: the model does not say "
                "what it was trained on; try decoding.split=sentences if the translations lack some"
            )
        if self.long:
            say(f"note: {self.long} {lines} were longer than the model was trained for: split, translated, rejoined")
        if self.cut:
            say(
                f"note: {self.cut} of {self.count} translations reached the length limit (search.max_length_factor) "
                "and may be cut"
            )


class AttentionOutput:
    """What is done with attention maps, line by line: pictures and JSON files in a folder, word alignments."""

    def __init__(self, folder: Path | None, alignments: bool) -> None:
        self._folder = None
        if folder is not None:
            from tolka.report.attention import AttentionFolder

            self._folder = AttentionFolder(folder)
        self._alignments = alignments
        self._sources: deque[str] = deque()
        self._count = 0

    def __bool__(self) -> bool:
        """Return whether anything is done with them."""
        return self._folder is not None or self._alignments

    def at(self, windows: Iterable[list[str]]) -> Iterator[list[str]]:
        """Yield the same windows, and keep their lines until the translations come."""
        for window in windows:
            self._sources.extend(window)
            yield window

    def line(self, translation: "Translation", maps: "list[AttentionMap]") -> str:
        """Return what follows the translation in its line; write the picture and the JSON file."""
        if not self:
            return ""
        from tolka.evaluation.attention_maps import word_alignment

        self._count += 1
        source = self._sources.popleft()
        if self._folder is not None:
            self._folder.write(f"{self._count:06d}", source, translation.text, [each.as_dict() for each in maps])
        if not self._alignments:
            return ""
        return "\t" + " ".join(f"{source}-{target}" for source, target in word_alignment(maps))

    def conclude(self) -> None:
        """Report where the maps are, and what could not be drawn."""
        if self._folder is not None:
            say(f"attention maps: {self._folder.path} ({self._count} lines)")
            if self._folder.complaint:
                say(f"note: {self._folder.complaint}")


def _note_documents(files: Sequence[Path]) -> None:
    """Warn once for each file that looks like a document."""
    from tolka.text.file_types import document_kind

    for path in dict.fromkeys(files):
        kind, markup = document_kind(without_compression(path))
        if kind:
            say(f"note: {path} looks like {kind}: every line of it is translated as text, {markup} included")


def _windows(files: Sequence[Path], output: Path | None, decoding: "DecodingConfig") -> Iterator[list[str]]:
    """Yield the lines to translate, in groups that are translated at once."""
    from tolka.text.windows import ArrivingLines, full_windows, is_still_written

    size, limit = decoding.window, decoding.line_limit
    if files:
        return full_windows((line for path in files for line in read_lines(path, limit=limit)), size)
    if output is not None or not is_still_written(sys.stdin):
        return full_windows(decode_lines(sys.stdin.buffer, "stdin", limit=limit), size)
    # A reader of its own: Python ends with a fatal error where a thread still waits inside that of sys.stdin.
    stream = open(sys.stdin.fileno(), "rb", closefd=False)  # noqa: SIM115  (until the command ends)
    return ArrivingLines(decode_lines(stream, "stdin", limit=limit), size).windows()


def _on_screen(output: Path | None) -> bool:
    """Return whether the translations are printed where a progress bar would be."""
    return output is None and sys.stdout is not None and sys.stdout.isatty()


@contextmanager
def _output(path: Path | None) -> Iterator[BinaryIO]:
    """Return standard output, or a file that gets its name once it is complete."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with whole_file(path) as stream:
        yield stream
