"""`mt-train import` and `mt-train export`: models of other programs in, and models for them out."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tolka.cli.common import DONE, Parser, model_path
from tolka.cli.subcommand import Subcommand, add_output, new_folder
from tolka.errors import ConfigError, DataError

if TYPE_CHECKING:
    from tolka.text.direction import Direction

_LANGUAGES = ("corpus.source", "corpus.target")


def _add_import(parser: Parser) -> None:
    parser.add_argument("model", metavar="FOLDER", help="a folder of Hugging Face's Marian, or hub:OWNER/NAME")
    parser.add_argument(
        "settings", nargs="*", metavar="key=value", help="corpus.source and corpus.target, if the folder lacks them"
    )
    _add_sample(parser)
    add_output(parser)


def _import(options: argparse.Namespace) -> int:
    out = new_folder(options, "import")

    from tolka.interchange.import_marian import import_marian
    from tolka.interchange.load import local_folder
    from tolka.system.progress import say

    import_marian(local_folder(options.model), out, _direction(options.settings), _sample(options), say)
    say(f"written: {out}")
    return DONE


def _direction(settings: Sequence[str]) -> "Direction | None":
    """Return the languages that are typed; None if there are none. ConfigError for anything else, and for only one."""
    found = dict(setting.partition("=")[::2] for setting in settings)
    if unknown := [setting for setting in settings if setting.partition("=")[0] not in _LANGUAGES]:
        raise ConfigError(f"{unknown[0]}: mt-train import takes a folder, {' and '.join(_LANGUAGES)}")
    keys = [setting.partition("=")[0] for setting in settings]
    if repeated := [key for key in found if keys.count(key) > 1]:
        raise ConfigError(f"{repeated[0]} is given {keys.count(repeated[0])} times: give it once")
    if not found:
        return None
    if not all(found.get(key) for key in _LANGUAGES):
        raise ConfigError(f"give both languages: {'=en '.join(_LANGUAGES)}=de")
    from tolka.text.direction import Direction
    from tolka.text.scripts import check_code

    for key, code in found.items():
        check_code(key, code)
    return Direction(*(found[key] for key in _LANGUAGES))


def _add_sample(parser: Parser) -> None:
    parser.add_argument(
        "--sample", type=Path, metavar="FILE", help="source lines that both programs translate, to be compared"
    )


def _sample(options: argparse.Namespace) -> list[str]:
    """Return the lines of --sample; none without it. DataError if it is empty."""
    from tolka.text.lines import read_lines

    lines = list(read_lines(options.sample)) if options.sample else []
    if options.sample and not lines:
        raise DataError(f"--sample {options.sample} is empty: it must have source lines to compare")
    return lines


def _add_export(parser: Parser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a model directory, or a run's folder (its best/)")
    parser.add_argument("--to", required=True, choices=tuple(_TARGETS), help="the program that shall load it")
    parser.add_argument(
        "--dtype", default="float32", help="of the weights: float32, float16, bfloat16; ctranslate2: int8"
    )
    _add_sample(parser)
    add_output(parser)


def _export(options: argparse.Namespace) -> int:
    from tolka.system.progress import say

    model, out = model_path(options.model), new_folder(options, "export")
    _TARGETS[options.to](model, out, options.dtype, _sample(options))
    say(f"written: {out}")
    return DONE


def _to_huggingface(model: Path, out: Path, dtype: str, lines: Sequence[str]) -> None:
    """Write a folder that `transformers` loads."""
    from tolka.interchange.export_marian import export_marian
    from tolka.system.progress import say

    export_marian(model, out, dtype, list(lines), say)


def _to_ctranslate2(model: Path, out: Path, dtype: str, lines: Sequence[str]) -> None:
    """Write a folder that CTranslate2 loads, and mt-translate."""
    from tolka.interchange.export_ctranslate2 import export_checked
    from tolka.system.progress import say

    parity = export_checked(model, out, dtype, lines)
    say(
        f"{parity.other} and tolka translate {parity.identical} of {parity.lines} lines identically; BLEU between both "
        f"is {parity.bleu.value:.2f}, nll grows by {parity.nll:.4f} a token"
    )


_TARGETS = {"huggingface": _to_huggingface, "ctranslate2": _to_ctranslate2}

IMPORT = Subcommand("FOLDER -o OUT", "a model of another program as a model directory", _add_import, _import)
EXPORT = Subcommand(f"MODEL --to {'|'.join(_TARGETS)} -o OUT", "a model for another program", _add_export, _export)
