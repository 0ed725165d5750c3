"""mt-serve: a model at an address of this machine, for programs and for people."""

import os
from collections.abc import Sequence
from pathlib import Path

from tolka.cli.common import DONE, Parser, separate_files
from tolka.errors import ConfigError
from tolka.model_directory.names import models_of
from tolka.system.progress import say

_TOKEN = "TOLKA_TOKEN"
_MODEL_HELP = "model directories or runs' folders (best/), and settings; those joined by commas translate together"


def run(arguments: Sequence[str]) -> int:
    """Parse the arguments, and answer requests until a signal."""
    parser = Parser("mt-serve", "Translate for programs and people at an address of this machine.")
    parser.add_argument("inputs", nargs="*", metavar="MODEL|key=value", help=_MODEL_HELP)
    parser.add_argument(
        "--host", default="127.0.0.1", help="to listen on; 0.0.0.0 is for other machines too (%(default)s)"
    )
    parser.add_argument("--port", type=int, default=5000, help="0 = any that is free (%(default)s, LibreTranslate's)")
    parser.add_argument("--name", default="", help="by which a proxy in front of it asks, as in translate.example.org")
    parser.add_argument(
        "--suggestions", type=Path, metavar="FILE", help="a .tsv that corrections of translations are appended to"
    )
    options = parser.parse_intermixed_args(arguments)

    names, settings = separate_files(options.inputs)
    if not names:
        raise ConfigError("mt-serve needs a model: mt-serve runs/sample")
    models = [models_of(str(name)) for name in names]

    from tolka.config.translate_command import serve_config

    config, limits = serve_config(settings, say)
    try:
        from tolka.serve.server import serve
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        raise ConfigError(f"mt-serve needs the package {error.name}: pip install 'tolka[serve]'") from None
    token = os.environ.get(_TOKEN, "")
    serve(models, config, limits, options.host, options.port, options.name, token, options.suggestions, say)
    return DONE
