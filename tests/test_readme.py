"""The README's commands are real, and its tree is the tree."""

import ast
import re
import shlex
from pathlib import Path

import pytest

from tolka.cli.translate import sort_out
from tolka.multirun import Combination, combinations
from tolka.overrides import evaluate_config, train_config, translate_config, with_recipe

ROOT = Path(__file__).parents[1]
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


def test_the_tree_has_every_room_with_its_rank() -> None:
    shown = {
        name.rstrip("/"): int(rank) for name, rank in re.findall(r"^[├└]── ([\w./]+)\s+\[(\d+)\]", README, re.MULTILINE)
    }
    tree = ast.parse((ROOT / "tests" / "test_layers.py").read_text(encoding="utf-8"))
    (ranks,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "RANKS"
    )
    assert {name.removesuffix(".py"): rank for name, rank in shown.items()} == ranks
    rooms = {path.name for path in (ROOT / "src" / "tolka").iterdir() if not path.name.startswith("_")} - {"py.typed"}
    assert set(shown) == rooms


def test_every_config_group_is_named() -> None:
    for folder in (ROOT / "configs").iterdir():
        if folder.is_dir():
            assert f"{folder.name}/" in README
