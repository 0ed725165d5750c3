"""The commands of mt-train beside training: how they are told from settings, and what each says of itself."""

import sys
from pathlib import Path

import pytest

from conftest import Command
from tolka.cli import train
from tolka.cli.train_commands import SUBCOMMANDS, subcommand_of


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_each_has_help_of_its_own(capsys: pytest.CaptureFixture[str], name: str) -> None:
    with pytest.raises(SystemExit) as left:
        train.run([name, "--help"])
    assert left.value.code == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: mt-train {name} {SUBCOMMANDS[name].usage.split()[0]}")
    assert "settings (key=value" not in shown, "those of training"


def test_all_are_in_the_help_of_mt_train(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        train.run(["--help"])
    shown = capsys.readouterr().out
    assert [name for name in SUBCOMMANDS if f"  mt-train {name} " not in shown] == []


@pytest.mark.parametrize(("typed", "meant"), [("averge", "average"), ("exprot", "export"), ("merg", "merge")])
def test_a_misspelt_one_is_proposed(command: Command, typed: str, meant: str) -> None:
    outcome = command("mt-train", typed, "model", "-o", "out")
    assert (outcome.code, outcome.error) == (2, f"'{typed}' is not a command of mt-train. Did you mean '{meant}'?")


def test_settings_and_options_are_none() -> None:
    for arguments in (["average=2"], ["export="], ["-m", "average"], ["--merge"], ["zebra"], [""], []):
        assert subcommand_of(arguments) is None, arguments
    assert subcommand_of(["average", "a=b"]) == "average"


def test_a_model_named_twice_is_not_averaged(command: Command, trained: Path, tmp_path: Path) -> None:
    outcome = command("mt-train", "average", trained, trained / "best", "-o", tmp_path / "out")
    assert (outcome.code, "is named twice" in outcome.error) == (2, True)
    assert not (tmp_path / "out").exists()


def test_an_option_of_another_command_is_refused(command: Command) -> None:
    outcome = command("mt-train", "merge", "a", "b", "--check")
    assert outcome.code == 2
    assert outcome.error == "unrecognized arguments: --check; mt-train merge --help shows what is allowed"


def test_what_is_not_required_is_not_asked_for(command: Command) -> None:
    for words, name in ((["export", "--to", "html"], "MODEL"), (["import"], "FOLDER")):
        asked = f"the following arguments are required: {name}; mt-train {words[0]} --help shows what is allowed"
        assert command("mt-train", *words).error == asked
    assert SUBCOMMANDS["export"].usage.startswith("MODEL [OTHER ...] --to huggingface|")


@pytest.mark.parametrize("program", ["huggingface", "ctranslate2", "marian", "argos", "html"])
def test_an_export_imports_no_other_program(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str
) -> None:
    own = {
        "huggingface": "huggingface",
        "ctranslate2": "export_ctranslate2",
        "html": "export_html",
        "argos": "export_argos",
    }
    shared = "export_ctranslate2" * (program in ("html", "argos"))
    for module in {*own.values()} - {own.get(program, ""), shared}:
        monkeypatch.setitem(sys.modules, f"tolka.interchange.{module}", None)
    outcome = command("mt-train", "export", tmp_path / "nowhere", "--to", program, "-o", tmp_path / "out")
    assert f"{tmp_path / 'nowhere'}: there is no such" in outcome.error
