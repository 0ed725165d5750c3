"""What every command of mt-train beside training has: `mt-train average ...`, `mt-train export ...`."""

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tolka.cli.common import Parser, model_path
from tolka.errors import ConfigError


@dataclass(frozen=True)
class Subcommand:
    """A command with its own options.

    usage: its arguments, as in "MODEL -o OUT". add_options: to its parser. run: does the work; returns the exit code.
    """

    usage: str
    summary: str
    add_options: Callable[[Parser], None]
    run: Callable[[argparse.Namespace], int]


def add_output(parser: Parser) -> None:
    """Add the option -o OUT, the folder to write."""
    parser.add_argument("-o", "--output", metavar="OUT", help="the folder to write, which is not there yet")


def new_folder(options: argparse.Namespace, command: str) -> Path:
    """Return the folder of -o OUT; ConfigError if it is not given, or there already."""
    if options.output is None:
        raise ConfigError(f"mt-train {command} needs -o OUT, the folder to write")
    out = model_path(options.output)
    if os.path.lexists(out):  # a link to nothing, too
        raise ConfigError(f"{out} is there already; name another folder to write")
    return out
