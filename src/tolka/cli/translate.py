"""mt-translate: a translation for each line of text, and documents in their form."""

import sys
from collections.abc import Sequence
from pathlib import Path

from tolka.cli.common import DONE, MODEL_HELP, Parser, separate_files
from tolka.model_directory.names import models_of
from tolka.system.progress import say


def run(arguments: Sequence[str]) -> int:
    """Parse the arguments, and translate or score."""
    parser = Parser("mt-translate", "Translate lines of text and documents: files, folders, or standard input.")
    parser.add_argument("model", metavar="MODEL", help=MODEL_HELP)
    parser.add_argument("inputs", nargs="*", metavar="FILE|key=value", help="lines, documents or folders, and settings")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="OUT", help="write there, all or nothing, not to standard output"
    )
    parser.add_argument(
        "--score",
        action="store_true",
        help="score the second of two files as the translation of the first, line by line: score TAB translation",
    )
    parser.add_argument(
        "--attention", type=Path, metavar="DIR", help="write attention maps there: a page and a JSON file for each line"
    )
    parser.add_argument("--json", type=Path, metavar="REPORT", help="write there what became of a document's texts")
    options = parser.parse_intermixed_args(arguments)

    files, settings = separate_files(options.inputs)
    models = models_of(options.model)

    from tolka.api.translate import translate_files
    from tolka.config.translate_command import translate_config

    translate_files(
        models,
        files,
        translate_config(settings, say),
        output=options.output,
        attention=options.attention,
        report=options.json,
        score=options.score,
        stdin=sys.stdin,
        stdout=sys.stdout,
    )
    return DONE
