"""`mt-train import` and `mt-train export`: models of other programs in, and models for them out."""

import argparse
from pathlib import Path

from tolka.cli.common import DONE, Parser, model_path
from tolka.cli.subcommand import Subcommand, add_output, new_folder
from tolka.errors import ConfigError


def _add_import(parser: Parser) -> None:
    parser.add_argument("model", metavar="FOLDER", help="a folder of Hugging Face's Marian")
    add_output(parser)


def _import(options: argparse.Namespace) -> int:
    folder, out = model_path(options.model), new_folder(options, "import")
    raise ConfigError(f"{folder} cannot be imported to {out}: this version reads no other format")


def _add_export(parser: Parser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a model directory, or a run's folder (its best/)")
    parser.add_argument("--to", required=True, choices=tuple(_TARGETS), help="the program that shall load it")
    parser.add_argument("--dtype", default="", metavar="DTYPE", help="of the weights; float32 unless given")
    add_output(parser)


def _export(options: argparse.Namespace) -> int:
    from tolka.system.progress import say

    model, out = model_path(options.model), new_folder(options, "export")
    _TARGETS[options.to](model, out, options.dtype)
    say(f"written: {out}")
    return DONE


def _to_huggingface(model: Path, out: Path, dtype: str) -> None:
    """Write a folder that `transformers` loads."""
    raise ConfigError("this version does not export to huggingface")


def _to_ctranslate2(model: Path, out: Path, dtype: str) -> None:
    """Write a folder that CTranslate2 loads, and mt-translate."""
    from tolka.interchange.export_ctranslate2 import export_checked
    from tolka.system.progress import say

    parity = export_checked(model, out, dtype)
    say(
        f"{parity.other} and tolka translate {parity.identical} of {parity.lines} lines identically; BLEU between both "
        f"is {parity.bleu.value:.2f}"
    )


_TARGETS = {"huggingface": _to_huggingface, "ctranslate2": _to_ctranslate2}

IMPORT = Subcommand("FOLDER -o OUT", "a model of another program as a model directory", _add_import, _import)
EXPORT = Subcommand(f"MODEL --to {'|'.join(_TARGETS)} -o OUT", "a model for another program", _add_export, _export)
