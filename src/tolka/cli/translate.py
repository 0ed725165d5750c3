"""mt-translate: lines in, translations out, one for one."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

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

_EXAMPLES = """examples:
  echo "I love you." | mt-translate runs/sample
  mt-translate runs/sample news.en -o news.ko search.beam_size=10
  mt-translate runs/a,runs/b,runs/c news.en               three models together: the mean of their probabilities

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
    total = sum(count_and_digest(path)[0] for path in files) if files else None

    from tolka.api import translate
    from tolka.overrides import translate_config

    if not files and sys.stdin is None:
        raise DataError("standard input is closed; name a file to translate")
    interactive = not files and sys.stdin.isatty()
    if interactive:
        say("type a line to translate it; end with Ctrl-D")
        settings.append("decoding.window=1")
    config = translate_config(settings)
    lines = (line for path in files for line in read_lines(path)) if files else decode_lines(sys.stdin.buffer, "stdin")
    count = split = cut = 0
    with _output(options.output) as out, bar("translating", total, " lines") as progress:
        for translation in translate(models, lines, config, progress.update):
            out.write(f"{translation.text}\n".encode())
            if interactive:
                out.flush()
            count += 1
            split += translation.parts > 1
            cut += not translation.complete
    if not count:
        say("note: there was no line to translate")
    if split:
        say(f"note: {split} of {count} lines were longer than the model was trained for: split, translated, rejoined")
    if cut:
        say(f"note: {cut} of {count} translations reached the length limit (search.max_length_factor) and may be cut")
    return DONE


@contextmanager
def _output(path: Path | None) -> Iterator[BinaryIO]:
    """Standard output, or a file that takes its name when it is whole."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with whole_file(path) as stream:
        yield stream
