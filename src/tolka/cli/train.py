"""mt-train: from parallel text to a translator and its score."""

import argparse
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tolka.cli.common import DONE, FAILED, Parser, own_process, print_json
from tolka.cli.train_commands import run_subcommand, subcommand_of, subcommands_help
from tolka.errors import ConfigError
from tolka.system.launch import translate_slurm
from tolka.system.progress import say

if TYPE_CHECKING:
    from tolka.config.compose import ConfigSource
    from tolka.text.direction import Direction


def run(arguments: Sequence[str]) -> int:
    """Parse the arguments, train, and show the result and the next command."""
    # Before anything asks which of several processes this is.
    translate_slurm()
    if name := subcommand_of(arguments):
        return run_subcommand(name, arguments[1:])
    options = _parse_arguments(arguments)
    _check_together(options)

    from tolka.config.command_line import expand_abbreviations, rerun_config, split_recipe, train_config, with_recipe
    from tolka.config.compose import ConfigSource
    from tolka.config.plugins import load_plugins

    settings = options.settings
    if split_recipe(settings)[0]:
        return _follow_recipe(settings, options)
    if options.resume:
        options.rerun, settings = options.resume, [*settings, f"run.dir={options.resume}"]
    if options.rerun:
        config = rerun_config(options.rerun, settings, say)
    else:
        name = (options.config_name or "").removesuffix(".yaml")  # Hydra takes both
        source = ConfigSource(Path(options.config_dir) if options.config_dir else None, name)
        plugins = [setting for setting in settings if setting.startswith("plugins=")]
        settings = expand_abbreviations(with_recipe(load_plugins(settings, say), source))
        if options.multirun:
            return _train_several(settings, plugins, source, options.print_config)
        config = train_config(settings, source, trains=not (options.check or options.prepare), say=say)
    if options.print_config:
        return _print_configs([config.as_dict()])

    if options.check:
        from tolka.run.data_check import check_with_page

        return _show_findings(*check_with_page(config, say), config.corpus.direction, options.json)
    from tolka.api.train import differences_since, prepare, train

    if options.prepare:
        prepare(config)
        say("the text is prepared: the same settings without --prepare train on it")
        return DONE
    if options.rerun:
        for difference in differences_since(options.rerun, config.corpus, config.run.prepared_folder, config.trainer):
            say(f"note: different from the run before: {difference}")
    say(train(config).summary())
    return DONE


def _follow_recipe(settings: Sequence[str], options: argparse.Namespace) -> int:
    """Follow a recipe, or with --check only show its steps."""
    from tolka.api.recipe import follow_recipe

    given = [name for name, value in vars(options).items() if value and name not in ("settings", "check")]
    if given:
        option = f"--{given[0].replace('_', '-')}"
        raise ConfigError(f"{option} is not for a recipe, which trains several models: leave it out")
    result = follow_recipe(settings, only_plan=options.check)
    if result.model.is_dir() and not options.check:
        say(result.useless or f"next: mt-translate {shlex.quote(str(result.model.parent))} FILE -o OUT")
    return DONE


def _parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of mt-train."""
    parser = Parser("mt-train", "Train a translator on parallel text, keep the best model, test it.")
    parser.add_argument("settings", nargs="*", metavar="key=value", help="settings, listed below")
    parser.add_argument("--json", action="store_true", help="with --check: the findings as JSON, on standard output")
    runs = parser.add_mutually_exclusive_group()
    runs.add_argument(
        "-m", "--multirun", action="store_true", help="train every combination of the values listed: model=rnn,lstm"
    )
    runs.add_argument(
        "--rerun",
        type=Path,
        metavar="RUN",
        help="train what a run's folder says once more, in RUN-again or run.dir; settings that are given hold instead",
    )
    runs.add_argument(
        "--resume", type=Path, metavar="RUN", help="go on with a run; settings that are given hold from here on"
    )
    actions = parser.add_mutually_exclusive_group()
    actions.add_argument(
        "--print-config",
        action="store_true",
        help="show the settings that would be used and who sets each, with -m those of each training, and stop",
    )
    actions.add_argument(
        "--check",
        action="store_true",
        help="instead of training, examine the text and say what training would take; the run's folder gets check.html",
    )
    actions.add_argument(
        "--prepare",
        action="store_true",
        help="instead of training, only prepare the text, for trainings with the same run.prepared",
    )
    own = parser.add_argument_group("Hydra's options")
    own.add_argument("-cd", "--config-dir", metavar="DIR", help="a folder with YAML files of your own, beside configs/")
    own.add_argument("-cn", "--config-name", metavar="NAME", help="the YAML file to begin with, instead of train")
    parser.epilog = subcommands_help()
    return parser.parse_intermixed_args(arguments)


def _check_together(options: argparse.Namespace) -> None:
    """Raise ConfigError for options that do not go together, beside those of which the parser takes one alone."""
    # A shell variable that is not set makes one.
    if empty := [f"--{name.replace('_', '-')}" for name, value in vars(options).items() if value == ""]:
        raise ConfigError(f"{empty[0]} has no value: give one, or leave it out")
    again = "--rerun" if options.rerun else "--resume" if options.resume else ""
    if again and (options.config_dir or options.config_name):
        raise ConfigError(f"{again} takes the settings from a run's folder: leave out Hydra's options")
    if options.resume and re.search(r"^run\.(dir|name)=", "\n".join(options.settings), re.MULTILINE):
        raise ConfigError("--resume goes on in the run's own folder: leave out run.dir and run.name")
    if options.json and not options.check:
        raise ConfigError("--json goes with --check")
    if options.multirun and (options.check or options.prepare):
        raise ConfigError("-m trains several models, and goes with --print-config alone: leave one of the options out")


def _print_configs(configs: Sequence[Mapping[str, Any]]) -> int:
    """Print configurations as YAML, with who set each setting; several are documents of one stream, each after ---."""
    from tolka.config.origins import OPEN
    from tolka.training.saved_settings import with_origins

    if any(OPEN in config["run"]["origins"].values() for config in configs):
        say("note: settings that are open are decided from the training text: --check shows them")
    for config in configs:
        print("---\n" * (len(configs) > 1) + with_origins(config), end="")
    return DONE


def _show_findings(findings: Mapping[str, Any], page: Path, direction: "Direction", as_json: bool) -> int:
    """Print what is found in the text; return DONE whatever it is."""
    from tolka.report.data_check import health_report

    if as_json:
        print_json(findings)
    else:
        say(health_report(findings, direction))
    say(f"all of it, with on one page: {page}")
    return DONE


def _train_several(settings: Sequence[str], plugins: Sequence[str], source: "ConfigSource", only_print: bool) -> int:
    """Train every combination; return FAILED when one failed. only_print: print configurations instead of training."""
    from tolka.cli.multirun import sweep
    from tolka.config.sweep import plan
    from tolka.report.runs import read_run
    from tolka.report.summary import comparison_table
    from tolka.system.launch import launch

    if only_print:
        return _print_configs([planned.config.as_dict() for planned in plan(settings, source, say).trainings])
    if launch().size > 1:  # each of the processes would start all of the trainings
        raise ConfigError("-m trains one model after the other: start it without torchrun and srun")
    outcomes = sweep(settings, plugins, source)
    if finished := [read_run(folder, folder.name) for folder, error in outcomes.items() if not error]:
        say(comparison_table(finished))
    failed = {folder.name: error for folder, error in outcomes.items() if error}
    for label, error in failed.items():
        say(f"error: {label} failed: {error}")
    return FAILED if failed else DONE


if __name__ == "__main__":  # torchrun -m tolka.cli.train
    own_process(run)
