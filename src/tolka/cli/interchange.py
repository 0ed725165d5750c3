"""mt-train import and mt-train export: models of other programs, in and out."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from tolka.cli.common import DONE, Parser, model_path
from tolka.errors import ConfigError

COMMANDS = ("import", "export")
_LANGUAGES = ("corpus.source", "corpus.target")


def run(arguments: Sequence[str]) -> int:
    """Import or export a model. arguments: the command's name first."""
    options = _parsed(arguments)
    model_path(str(options.output))
    if options.output.exists():
        raise ConfigError(f"{options.output} is there already; name another folder to write")

    from tolka.system.progress import say
    from tolka.text.lines import read_lines

    lines = list(read_lines(options.sample)) if options.sample else []
    if options.command == "import":
        from tolka.interchange.import_marian import import_marian
        from tolka.interchange.load import local_folder

        import_marian(local_folder(options.model), options.output, _languages(options.settings), lines, say)
    else:
        from tolka.interchange.export_marian import export_marian

        export_marian(model_path(options.model), options.output, options.dtype, lines, say)
    say(f"written: {options.output}")
    return DONE


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of one of the two commands."""
    command, *others = arguments
    parser = Parser(prog=f"mt-train {command}", description=_DESCRIPTIONS[command])
    kind = "a folder of Hugging Face's Marian, or hub:OWNER/NAME" if command == "import" else "a model directory"
    parser.add_argument("model", metavar="FOLDER" if command == "import" else "MODEL", help=kind)
    if command == "import":
        parser.add_argument(
            "settings", nargs="*", metavar="key=value", help="corpus.source and corpus.target, if the folder lacks them"
        )
    else:
        parser.add_argument("--to", required=True, choices=("huggingface",), help="the program to write it for")
        parser.add_argument("--dtype", default="float32", help="of the weights: float32, float16 or bfloat16")
    parser.add_argument("-o", "--output", required=True, type=Path, metavar="OUT", help="the folder to write")
    parser.add_argument(
        "--sample", type=Path, metavar="FILE", help="source lines that both programs translate, to be compared"
    )
    options = parser.parse_intermixed_args(others)
    options.command = command
    return options


_DESCRIPTIONS = {
    "import": "Make a model directory of a folder of another program.",
    "export": "Write a model as another program's folder.",
}


def _languages(settings: Sequence[str]) -> tuple[str, str] | None:
    """Return the languages that are typed; None if there are none. ConfigError for anything else, and for only one."""
    found = dict(setting.partition("=")[::2] for setting in settings)
    if unknown := [setting for setting in settings if setting.partition("=")[0] not in _LANGUAGES]:
        raise ConfigError(f"{unknown[0]}: mt-train import takes a folder, {' and '.join(_LANGUAGES)}")
    if not found:
        return None
    if not all(found.get(key) for key in _LANGUAGES):
        raise ConfigError(f"give both languages: {'=en '.join(_LANGUAGES)}=de")
    return found["corpus.source"], found["corpus.target"]
