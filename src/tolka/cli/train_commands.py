"""The commands of mt-train beside training, in one table: `mt-train average A B -o OUT` and so on."""

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tolka.cli.common import DONE, Parser
from tolka.errors import ConfigError, DataError
from tolka.model_directory.names import check_outside, model_path
from tolka.system.progress import say

_LANGUAGES = ("corpus.source", "corpus.target")
_TRIMMED = ("languages", "text")
_OF_ARGOS = ("source", "target")
# Each imports its own program and formats.
_EXPORTS = {
    "huggingface": "tolka.interchange.huggingface:export_huggingface",
    "ctranslate2": "tolka.interchange.export_ctranslate2:export_checked",
    "marian": "tolka.interchange.marian:export_marian",
    "argos": "tolka.interchange.export_argos:export_argos",
    "html": "tolka.interchange.export_html:export_html",
}
_FILES = ("argos", "html")  # which are written as a file


@dataclass(frozen=True)
class Subcommand:
    """A command of mt-train beside training, with its own options.

    usage: its arguments, as in "MODEL -o OUT". arguments: name -> what argparse's `add_argument` takes; -o is added
    where `usage` has it. run: does the work; its `models` and its `output`, which is not there yet, are checked paths.
    """

    usage: str
    summary: str
    arguments: Mapping[str, Mapping[str, Any]]
    run: Callable[[argparse.Namespace], None]


# What was typed is checked before torch is imported, which takes more than a second.
def _average(options: argparse.Namespace) -> None:
    from tolka.model_directory.combine import average_models

    average_models(options.models, options.output)


def _merge(options: argparse.Namespace) -> None:
    if len(options.models) != 2:
        raise ConfigError("merge takes a model and a run with an adapter: mt-train merge MODEL ADAPTER -o OUT")

    from tolka.model_directory.combine import merge_adapter

    model, adapter = options.models
    merge_adapter(model, adapter, options.output)


def _quantise(options: argparse.Namespace) -> None:
    from tolka.model_directory.combine import quantise_model

    (model,) = options.models
    quantise_model(model, options.output)


def _publish(options: argparse.Namespace) -> None:
    from tolka.interchange.publish import preview, publish
    from tolka.options.checks import check_licence

    check_licence(options.licence, "--licence")
    (model,), repository, licence = options.models, options.repository, options.licence
    if options.dry_run:
        print(preview(model, repository, licence, say))
    else:
        print(publish(model, repository, options.private, licence, say))


def _import(options: argparse.Namespace) -> None:
    from tolka.config.plugins import load_plugins
    from tolka.config.typed import value_of
    from tolka.interchange.huggingface import import_huggingface
    from tolka.text.direction import Direction
    from tolka.text.lines import user_path
    from tolka.text.scripts import check_code

    # A plugin may register the family of the model.
    settings = load_plugins(options.settings, say)
    typed = {key: value_of(key, value) for key, _, value in (each.partition("=") for each in settings)}
    if unknown := [each for each in settings if each.partition("=")[0] not in (*_LANGUAGES, *_TRIMMED)]:
        raise ConfigError(f"{unknown[0]}: mt-train import takes {', '.join((*_LANGUAGES, *_TRIMMED))}")
    if len(typed) < len(settings):
        raise ConfigError(f"{' '.join(settings)}: give each setting once")
    codes = [str(typed.get(key) or "") for key in _LANGUAGES]
    if not all(codes) and typed.keys() & {*_LANGUAGES}:
        raise ConfigError(f"give both languages: {'=en '.join(_LANGUAGES)}=de")
    for key, code in zip(_LANGUAGES, codes, strict=True) if any(codes) else ():
        check_code(key, code)
    given = [each if isinstance(each := typed.get(key, []), list) else [each] for key in _TRIMMED]
    languages, texts = (list(map(str, each)) for each in given)
    if texts and not languages:
        raise ConfigError(
            "text=... are files in the languages that a model is trimmed to: name these, 'languages=[en,de]'"
        )
    direction = Direction(*codes) if any(codes) else None
    (model,), paths = options.models, [user_path(text) for text in texts]
    import_huggingface(model, options.output, direction, _sample(options), say, languages, paths)


def _export(options: argparse.Namespace) -> None:
    from tolka.config.plugins import load_plugins
    from tolka.formats.hub import local_folder

    others = [local_folder(model_path(each)) for each in options.others if "=" not in each]
    settings = load_plugins([each for each in options.others if "=" in each], say)
    typed = {key: code for key, _, code in (each.partition("=") for each in settings)}
    if unknown := [each for each in settings if options.to != "argos" or each.partition("=")[0] not in _OF_ARGOS]:
        raise ConfigError(f"{unknown[0]}: mt-train export takes no settings but plugins, and --to argos source, target")
    if options.to != "html" and others:
        raise ConfigError(f"{others[0]}: --to {options.to} takes one model; --to html takes several")
    check_outside(options.output, others)
    (model,), sample = options.models, _sample(options)

    from tolka.search.options import import_class

    what = [model, *others] if options.to == "html" else model
    import_class(_EXPORTS[options.to])(what, options.output, options.dtype, sample, say, **typed)


def _sample(options: argparse.Namespace) -> list[str]:
    """Return the lines of --sample; none without it. DataError if it is empty."""
    from tolka.text.lines import read_lines

    lines = list(read_lines(options.sample)) if options.sample else []
    if options.sample and not lines:
        raise DataError(f"--sample {options.sample} is empty: it must have source lines to compare")
    return lines


_MODEL = {"nargs": 1, "metavar": "MODEL", "help": "a model directory, or a run's folder (its best/)"}
_SAMPLE = {"type": Path, "metavar": "FILE", "help": "source lines that both programs translate, to be compared"}
_MORE = {"nargs": "*", "default": []}  # without a default argparse says that at least one is required
# Of several models "*", not "+": argparse's complaint about none would not say what they are for.
SUBCOMMANDS = {
    "average": Subcommand(
        "MODEL MODEL ... -o OUT",
        "the mean of finished models of one shape",
        {"models": {"nargs": "*", "metavar": "MODEL", "help": "model directories or runs' folders, at least two"}},
        _average,
    ),
    "merge": Subcommand(
        "MODEL ADAPTER -o OUT",
        "a model with the adapter of a run with finetuning.lora_rank",
        {"models": {"nargs": "*", "metavar": "MODEL ADAPTER", "help": "the model, and the run with an adapter"}},
        _merge,
    ),
    "import": Subcommand(
        "FOLDER [key=value ...] -o OUT",
        "a model of another program as a model directory",
        {
            "models": {
                **_MODEL,
                "metavar": "FOLDER",
                "help": "a folder of Marian or of a Hugging Face model, or hub:OWNER/NAME",
            },
            "settings": {
                **_MORE,
                "metavar": "key=value",
                "help": "corpus.source and corpus.target, if the folder lacks them; 'languages=[en,de]' to trim it, "
                "'text=[FILE]'",
            },
            "--sample": _SAMPLE,
        },
        _import,
    ),
    "export": Subcommand(
        f"MODEL [OTHER ...] --to {'|'.join(_EXPORTS)} -o OUT",
        "a model for another program, or one or several as a page of HTML that translates",
        {
            "models": _MODEL,
            "--to": {"required": True, "choices": _EXPORTS, "help": "the program that shall load it"},
            "--dtype": {"default": "", "help": "of the weights: float32, float16, bfloat16, int8; html: int8 or fp32"},
            "others": {
                **_MORE,
                "metavar": "OTHER",
                "help": "html: more models; argos: source=, target=; 'plugins=[MODULE]'",
            },
            "--sample": _SAMPLE,
        },
        _export,
    ),
    "quantise": Subcommand(
        "MODEL -o OUT", "a model with its weights in int8, to translate on a CPU", {"models": _MODEL}, _quantise
    ),
    "publish": Subcommand(
        "MODEL OWNER/NAME",
        "upload a model to the Hugging Face Hub",
        {
            "models": _MODEL,
            "repository": {"metavar": "OWNER/NAME", "help": "on the Hugging Face Hub; made if it is not there"},
            "--private": {"action": "store_true", "help": "so that only you see it"},
            "--licence": {"default": "", "metavar": "NAME", "help": "in place of run.licence, as in cc-by-4.0"},
            "--dry-run": {"action": "store_true", "help": "show what would be uploaded; needs no token and no network"},
        },
        _publish,
    ),
}


def subcommand_of(arguments: Sequence[str]) -> str | None:
    """Return the command that the arguments begin with; None if they are those of a training.

    ConfigError for a word that is nearly one. A setting (key=value) and an option never are.
    """
    word = arguments[0] if arguments else ""
    if word in SUBCOMMANDS:
        return word
    if word and "=" not in word and not word.startswith("-"):
        from tolka.options.suggestions import nearest

        # Other words are left to the parser, which may know them as settings of another program.
        if hint := nearest(word, SUBCOMMANDS):
            raise ConfigError(f"'{word}' is not a command of mt-train.{hint}")
    return None


def run_subcommand(name: str, arguments: Sequence[str]) -> int:
    """Parse the arguments after the command's name, do its work, and return the exit code."""
    command = SUBCOMMANDS[name]
    description = f"{command.summary[:1].upper()}{command.summary[1:]}."
    parser = Parser(f"mt-train {name}", description, f"mt-train {name} {command.usage}")
    for argument, properties in command.arguments.items():
        parser.add_argument(argument, **properties)
    writes = command.usage.endswith("-o OUT")
    if writes:
        parser.add_argument("-o", "--output", metavar="OUT", help="the folder (argos, html: file) to write, not there")
    options = parser.parse_intermixed_args(arguments)
    models = [model_path(each) for each in options.models]
    if writes:
        kind = "file" if vars(options).get("to") in _FILES else "folder"
        if options.output is None:
            raise ConfigError(f"mt-train {name} needs -o OUT, the {kind} to write")
        options.output = model_path(options.output)
        if os.path.lexists(options.output):  # a link to nothing, too
            raise ConfigError(f"{options.output} is there already; name another {kind} to write")
        check_outside(options.output, models)

    from tolka.formats.hub import local_folder

    options.models = list(map(local_folder, models))
    command.run(options)
    if writes:
        say(f"written: {options.output}")
    return DONE


def subcommands_help() -> str:
    """Return one line for each command: its arguments and what it does."""
    lines = [f"  mt-train {name} {each.usage}\n        {each.summary}" for name, each in SUBCOMMANDS.items()]
    return "\n".join(["commands (each has its own --help):", *lines, ""])
