"""mt-translate: lines in, translations out, one for one."""

import argparse
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from tolka import __version__
from tolka.cli.common import (
    DONE,
    MODEL_HELP,
    Parser,
    check_output,
    guarded,
    models_of,
    settings_help,
    sort_out,
    whole_file,
)
from tolka.errors import DataError
from tolka.progress import bar, say
from tolka.text.lines import count_and_digest, decode_lines, read_lines

if TYPE_CHECKING:
    from tolka.evaluation.attention_maps import AttentionMap
    from tolka.translator import Translation

_EXAMPLES = """examples:
  echo "I love you." | mt-translate runs/sample
  mt-translate runs/sample news.en -o news.ko search.beam_size=10
  mt-translate runs/a,runs/b,runs/c news.en               three models together: the mean of their probabilities
  mt-translate runs/sample news.en --attention maps       where it looked: maps/000001.png and .json, and so on
  mt-translate runs/sample news.en alignments=true        each line with its word alignment: ... TAB 0-0 1-2

settings (key=value):
"""


def main() -> None:
    """The console script."""
    sys.exit(guarded(run, sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Parse, translate, say on stderr what was out of the ordinary."""
    parser = Parser(
        prog="mt-translate",
        description="Translate text line by line: files, or standard input when none is named.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL", help=MODEL_HELP)
    parser.add_argument("inputs", nargs="*", metavar="FILE|key=value", help="texts to translate, and settings")
    parser.add_argument("-o", "--output", type=Path, metavar="OUT", help="write there instead of standard output")
    parser.add_argument(
        "--attention", type=Path, metavar="DIR", help="where the model looked: a picture and the numbers of each line"
    )
    parser.add_argument("--version", action="version", version=__version__)
    if {"-h", "--help"} & set(arguments):
        parser.epilog = _EXAMPLES + settings_help("translate")
    options = parser.parse_intermixed_args(arguments)
    files, settings = sort_out(options.inputs)
    models = models_of(options.model)
    for path in files:
        if path.is_dir():
            raise DataError(f"{path} is a folder, not a text; models that translate together are joined by commas")
        if not path.is_file():
            raise DataError(f"{path}: there is no such file")
    if options.output:
        check_output(options.output)
    if options.attention:
        if options.attention.exists() and not options.attention.is_dir():
            raise DataError(f"{options.attention} is a file; --attention takes a folder to write to")
        options.attention.mkdir(parents=True, exist_ok=True)
    total = sum(count_and_digest(path)[0] for path in files) if files else None

    from tolka.api import translate, translate_and_look
    from tolka.overrides import translate_config

    if not files and sys.stdin is None:
        raise DataError("standard input is closed; name a file to translate")
    interactive = not files and sys.stdin.isatty()
    if interactive:
        say("type a line to translate it; end with Ctrl-D")
        settings.append("decoding.window=1")
    config = translate_config([_long(setting) for setting in settings])
    lines = (line for path in files for line in read_lines(path)) if files else decode_lines(sys.stdin.buffer, "stdin")
    looking = Looking(options.attention, config.attention.alignments)
    count = split = cut = 0
    with _output(options.output) as out, bar("translating", total, " lines") as progress:
        if looking:
            found = translate_and_look(models, looking.at(lines), config, progress.update)
        else:
            found = ((each, []) for each in translate(models, lines, config, progress.update))
        for translation, maps in found:
            out.write(f"{translation.text}{looking.line(translation, maps)}\n".encode())
            if interactive:
                out.flush()
            count += 1
            split += translation.parts > 1
            cut += not translation.complete
    looking.conclude()
    if not count:
        say("note: there was no line to translate")
    if split:
        say(f"note: {split} of {count} lines were longer than the model was trained for: split, translated, rejoined")
    if cut:
        say(f"note: {cut} of {count} translations reached the length limit (search.max_length_factor) and may be cut")
    return DONE


class Looking:
    """What is made of the attention maps, line by line: pictures and numbers in a folder, word alignments."""

    def __init__(self, folder: Path | None, alignments: bool) -> None:
        self._folder = None
        if folder is not None:
            from tolka.report.attention import AttentionFolder

            self._folder = AttentionFolder(folder)
        self._alignments = alignments
        self._sources: deque[str] = deque()
        self._count = 0

    def __bool__(self) -> bool:
        """Whether anything is."""
        return self._folder is not None or self._alignments

    def at(self, lines: Iterable[str]) -> Iterator[str]:
        """The same lines, remembered until they come back translated."""
        for line in lines:
            self._sources.append(line)
            yield line

    def line(self, translation: "Translation", maps: "list[AttentionMap]") -> str:
        """What stands behind the translation; writes the pictures and numbers."""
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
        """Say where the maps are, and what could not be drawn."""
        if self._folder is not None:
            say(f"attention maps: {self._folder.path} ({self._count} lines)")
            if self._folder.complaint:
                say(f"note: {self._folder.complaint}")


def _long(setting: str) -> str:
    """alignments=true, short for attention.alignments=true."""
    return f"attention.{setting}" if setting.startswith("alignments=") else setting


@contextmanager
def _output(path: Path | None) -> Iterator[BinaryIO]:
    """Standard output, or a file that takes its name when it is whole."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with whole_file(path) as stream:
        yield stream
