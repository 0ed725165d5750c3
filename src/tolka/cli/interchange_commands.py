"""`mt-train import` and `mt-train export`: models of other programs in, and models for them out."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tolka.cli.common import Parser, Subcommand, add_output, new_folder
from tolka.errors import ConfigError, DataError
from tolka.model_directory.names import model_path
from tolka.system.progress import say

if TYPE_CHECKING:
    from tolka.text.direction import Direction

_LANGUAGES = ("corpus.source", "corpus.target")
_TRIMMED = ("languages", "text")
_TARGETS = ("huggingface", "ctranslate2")


def _add_import(parser: Parser) -> None:
    parser.add_argument("model", metavar="FOLDER", help="a folder of a Hugging Face model (Marian), or hub:OWNER/NAME")
    parser.add_argument(
        "settings",
        nargs="*",
        metavar="key=value",
        help="corpus.source and corpus.target, if the folder lacks them; 'languages=[en,de]' to trim it, 'text=[FILE]'",
    )
    _add_sample(parser)
    add_output(parser)


def _import(options: argparse.Namespace) -> None:
    out = new_folder(options, "import", [model_path(options.model)])

    from tolka.config.plugins import load_plugins
    from tolka.formats.hub import local_folder
    from tolka.interchange.import_huggingface import import_huggingface
    from tolka.text.lines import user_path

    # A plugin may register the family of the model.
    settings = load_plugins(options.settings, say)
    direction = _direction([each for each in settings if each.partition("=")[0] not in _TRIMMED])
    languages, texts = (_list(settings, key) for key in _TRIMMED)
    if texts and not languages:
        raise ConfigError(
            "text=... are files in the languages that a model is trimmed to: name these, 'languages=[en,de]'"
        )
    paths = [user_path(text) for text in texts]
    import_huggingface(local_folder(options.model), out, direction, _sample(options), say, languages, paths)
    say(f"written: {out}")


def _list(settings: Sequence[str], key: str) -> list[str]:
    """Return the items typed for a key; none where it is not typed."""
    from tolka.config.typed import value_of

    values = [value_of(key, text.partition("=")[2]) for text in settings if text.startswith(f"{key}=")]
    return [str(item) for value in values for item in (value if isinstance(value, list) else [value])]


def _direction(settings: Sequence[str]) -> "Direction | None":
    """Return the languages that are typed; None if there are none. ConfigError for anything else, and for only one."""
    from tolka.text.direction import Direction
    from tolka.text.scripts import check_code

    typed = [setting.partition("=")[::2] for setting in settings]
    keys = [key for key, _ in typed]
    for key, code in typed:
        if key not in _LANGUAGES:
            raise ConfigError(f"{key}={code}: mt-train import takes {', '.join((*_LANGUAGES, *_TRIMMED))}")
        if keys.count(key) > 1:
            raise ConfigError(f"{key} is given {keys.count(key)} times: give it once")
        if len(keys) == 1 or not code:
            raise ConfigError(f"give both languages: {'=en '.join(_LANGUAGES)}=de")
        check_code(key, code)
    return Direction(*(dict(typed)[key] for key in _LANGUAGES)) if typed else None


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
    parser.add_argument("--to", required=True, choices=_TARGETS, help="the program that shall load it")
    parser.add_argument(
        "--dtype", default="float32", help="of the weights: float32, float16, bfloat16; ctranslate2: int8"
    )
    parser.add_argument("plugins", nargs="*", metavar="'plugins=[MODULE]'", help="modules of families of your own")
    _add_sample(parser)
    add_output(parser)


def _export(options: argparse.Namespace) -> None:
    from tolka.config.plugins import load_plugins

    if others := load_plugins(options.plugins, say):
        raise ConfigError(f"{others[0]}: mt-train export takes a model, and no settings but plugins")
    model = model_path(options.model)
    out = new_folder(options, "export", [model])
    if options.to == "huggingface":
        from tolka.interchange.export_huggingface import export_huggingface

        export_huggingface(model, out, options.dtype, _sample(options), say)
    else:
        from tolka.interchange.export_ctranslate2 import export_checked

        export_checked(model, out, options.dtype, _sample(options), say)
    say(f"written: {out}")


IMPORT = Subcommand("FOLDER -o OUT", "a model of another program as a model directory", _add_import, _import)
EXPORT = Subcommand(f"MODEL --to {'|'.join(_TARGETS)} -o OUT", "a model for another program", _add_export, _export)
