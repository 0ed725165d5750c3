"""mt-translate: one translation per line of text."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tolka.cli.common import DONE, MODEL_HELP, Parser, models_of, separate_files, settings_help
from tolka.system.progress import say
from tolka.version import __version__

_EXAMPLES = """examples:
  echo "I love you." | mt-translate runs/sample
  mt-translate runs/sample news.en -o news.ko search.beam_size=10
  mt-translate runs/sample book.en -o book.ko resume=true    continue where the same command was interrupted
  mt-translate runs/sample news.en output.format=html -o news.html   a page with the lines that a person should check
  mt-translate runs/sample news.en output.format=jsonl       with scores of the tokens, and word alignments
  mt-translate runs/sample news.tsv input.column=2           one column of a table
  mt-translate runs/sample --score news.en news.ko           log-probabilities of given translations
  mt-translate nllb-200-distilled-600M news.en source=eng_Latn target=deu_Latn
                                                             a model of many languages (of Hugging Face)
  mt-translate runs/a,runs/b,runs/c news.en                  three models together: the mean of their probabilities
  mt-translate runs/sample news.en --attention maps          what it attends to: maps/000001.png and .json, ...
  mt-translate runs/sample news.en alignments=true           each line with its word alignment: ... TAB 0-0 1-2

settings (key=value):
"""


def run(arguments: Sequence[str]) -> int:
    """Parse the arguments, and translate or score."""
    options = _parse_arguments(arguments)
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
        score=options.score,
        stdin=sys.stdin,
        stdout=sys.stdout,
    )
    return DONE


def _parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
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
        "--score",
        action="store_true",
        help="score the second of two files as the translation of the first, line by line: score TAB translation",
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
