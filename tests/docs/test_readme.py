"""The README's commands are real."""

import re
import shlex
from pathlib import Path

import pytest

from tolka.cli.multirun import Combination, combinations
from tolka.cli.translate import sort_out
from tolka.config.command_line import evaluate_config, train_config, translate_config, with_recipe

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LINES = sorted({line for block in re.findall(r"```\n(.*?)```", README, flags=re.DOTALL) for line in block.splitlines()})
INLINE = re.findall(r"`(mt-\w+ [^`]+)`", README)
COMMANDS = sorted({line.split(" | ")[-1] for line in [*LINES, *INLINE] if re.search(r"(^|\| )mt-\w+", line)})


def test_commands_were_found() -> None:
    assert {command.split()[0] for command in COMMANDS} == {"mt-train", "mt-translate", "mt-eval"}
    assert len(COMMANDS) > 8


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_s_settings_are_known(command: str, trained: Path) -> None:
    program, *arguments = shlex.split(re.split(r" [<>#] ?", command + " ")[0])
    settings = [argument for argument in arguments if "=" in argument]
    settings = [re.sub(r"^run\.init_from=.*", f"run.init_from={trained}", setting) for setting in settings]
    if program == "mt-train":
        known = [s for s in with_recipe(settings) if "MODEL" not in s and s != "model=mine"]
        for each in combinations(known) if "-m" in arguments else [Combination("", known)]:
            train_config(each.settings)
    elif program == "mt-translate":
        translate_config(sort_out(settings)[1])
    else:
        evaluate_config(settings)


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"\bmake (\w+)", README)):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
