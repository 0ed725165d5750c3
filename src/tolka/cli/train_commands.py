"""The commands of mt-train beside training, in one table: `mt-train average A B -o OUT` and so on."""

import argparse
import difflib
from collections.abc import Sequence

from tolka.cli.common import DONE, Parser, Subcommand, add_output, new_folder
from tolka.cli.interchange_commands import EXPORT, IMPORT
from tolka.errors import ConfigError
from tolka.model_directory.names import model_path
from tolka.system.progress import say


def _add_average(parser: Parser) -> None:
    # "*", not "+": argparse's complaint about none would not say what they are for.
    parser.add_argument("models", nargs="*", metavar="MODEL", help="model directories or runs' folders, at least two")
    add_output(parser)


def _average(options: argparse.Namespace) -> None:
    # What was typed is checked before torch is imported, which takes more than a second; so below.
    models = [model_path(name) for name in options.models]
    out = new_folder(options, "average", models)

    from tolka.model_directory.combine import average_models

    average_models(models, out)
    say(f"written: {out}")


def _add_merge(parser: Parser) -> None:
    parser.add_argument("models", nargs="*", metavar="MODEL ADAPTER", help="the model, and the run with an adapter")
    add_output(parser)


def _merge(options: argparse.Namespace) -> None:
    models = [model_path(name) for name in options.models]
    out = new_folder(options, "merge", models)
    if len(models) != 2:
        raise ConfigError("merge takes a model and a run with an adapter: mt-train merge MODEL ADAPTER -o OUT")

    from tolka.model_directory.combine import merge_adapter

    merge_adapter(models[0], models[1], out)
    say(f"written: {out}")


def _add_quantise(parser: Parser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a model directory, or a run's folder (its best/)")
    add_output(parser)


def _quantise(options: argparse.Namespace) -> None:
    model = model_path(options.model)
    out = new_folder(options, "quantise", [model])

    from tolka.model_directory.combine import quantise_model

    quantise_model(model, out)
    say(f"written: {out}")


def _add_publish(parser: Parser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a model directory, or a run's folder (its best/)")
    parser.add_argument("repository", metavar="OWNER/NAME", help="on the Hugging Face Hub; made if it is not there")
    parser.add_argument("--private", action="store_true", help="so that only you see it")
    parser.add_argument("--licence", default="", metavar="NAME", help="in place of run.licence, as in cc-by-4.0")


def _publish(options: argparse.Namespace) -> None:
    from tolka.interchange.publish import publish
    from tolka.options.checks import check_licence

    check_licence(options.licence, "--licence")
    print(publish(model_path(options.model), options.repository, options.private, options.licence, say))


SUBCOMMANDS = {
    "average": Subcommand("MODEL MODEL ... -o OUT", "the mean of finished models of one shape", _add_average, _average),
    "merge": Subcommand(
        "MODEL ADAPTER -o OUT", "a model with the adapter of a run with finetuning.lora_rank", _add_merge, _merge
    ),
    "import": IMPORT,
    "export": EXPORT,
    "quantise": Subcommand(
        "MODEL -o OUT", "a model with its weights in int8, to translate on a CPU", _add_quantise, _quantise
    ),
    "publish": Subcommand("MODEL OWNER/NAME", "upload a model to the Hugging Face Hub", _add_publish, _publish),
}


def subcommand_of(arguments: Sequence[str]) -> str | None:
    """Return the command that the arguments begin with; None if they are those of a training.

    ConfigError for a word that is nearly one. A setting (key=value) and an option never are.
    """
    word = arguments[0] if arguments else ""
    if word in SUBCOMMANDS:
        return word
    if word and "=" not in word and not word.startswith("-"):
        # Other words are left to the parser, which may know them as settings of another program.
        near = difflib.get_close_matches(word, SUBCOMMANDS, n=1, cutoff=0.6)
        if near:
            raise ConfigError(f"'{word}' is not a command of mt-train. Did you mean '{near[0]}'?")
    return None


def run_subcommand(name: str, arguments: Sequence[str]) -> int:
    """Parse the arguments after the command's name, do its work, and return the exit code."""
    command = SUBCOMMANDS[name]
    parser = Parser(
        prog=f"mt-train {name}",
        usage=f"mt-train {name} {command.usage}",
        description=f"{command.summary[:1].upper()}{command.summary[1:]}.",
    )
    command.add_options(parser)
    command.run(parser.parse_intermixed_args(arguments))
    return DONE


def subcommands_help() -> str:
    """Return one line for each command: its arguments and what it does."""
    lines = []
    for name, command in SUBCOMMANDS.items():
        typed = f"  mt-train {name} {command.usage}"
        # A long one has its summary on the next line, so that all summaries are one column.
        lines.append(f"{typed:<48}{command.summary}" if len(typed) < 47 else f"{typed}\n{'':<48}{command.summary}")
    return "\n".join(["commands (each has its own --help):", *lines, ""])
