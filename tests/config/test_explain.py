"""Complaints of Hydra's in one line: which setting it is about, and what is allowed instead."""

import pytest
from rows import each_row

from tolka.config.compose import compose
from tolka.config.explain import explain, help_command, unknown_choice, unknown_key
from tolka.errors import ConfigError


@each_row(
    ("settings", "complaint"),
    [
        (["hydra/launcher=joblibs"], "unknown hydra/launcher 'joblibs'. Did you mean 'joblib'?"),
        (["model=lstn"], "unknown model 'lstn'. Did you mean 'lstm'?"),
        (["trainer.patiance=3"], "unknown key 'trainer.patiance'. Did you mean 'trainer.patience'?"),
        (
            ["hydra.sweeper.n_trial=3"],
            "unknown key 'hydra.sweeper.n_trial'; Hydra's documentation",
        ),
        (
            ["+trainer.patience=3"],
            "Could not append to config. An item is already at 'trainer.patience': leave out the +",
        ),
        (["trainer.patience=1,2"], "'trainer.patience=1,2' has several values where one is expected"),
        (["optimizer.lr=0.1)"], "cannot read 'optimizer.lr=0.1)'; a text with such characters needs quotes"),
        (["run.name='${a.b'"], "cannot read 'run.name='${a.b'': after '${' a '}' must follow"),
    ],
)
def test_what_hydra_refuses(settings: list[str], complaint: str) -> None:
    with pytest.raises(ConfigError) as raised:
        compose(settings)
    assert complaint in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_error_that_nobody_foresaw_is_one_line() -> None:
    error = ValueError("first\n  second")
    error.__cause__ = KeyError("why")
    assert explain(error, ["model=lstm"]) == "cannot read the settings: first second: 'why'"


def test_a_key_of_another_kind_names_those_that_have_it() -> None:
    assert unknown_key("model.cell", "gru", "train").startswith("the chosen model has no key model.cell; those that")


@each_row(
    ("key", "hint"),
    [
        ("search.beam_sise", " Did you mean 'search.beam_size'?"),
        ("decoding.beam_size", " Did you mean 'search.beam_size'?"),
        ("output.zzz", " Keys of output: "),
        ("zzz", " Groups: decoding, input, output, search."),
        ("num_beams", " Here it is search.beam_size=5"),
    ],
)
def test_the_nearest_key(key: str, hint: str) -> None:
    assert unknown_key(key, "5", "translate").startswith(f"unknown key '{key}'.{hint}")


def test_the_nearest_choice() -> None:
    assert unknown_choice("search", "beem", "translate") == "unknown search 'beem'. Did you mean 'beam'?"


def test_each_command_has_its_help() -> None:
    assert [help_command(name) for name in ("train", "translate", "evaluate")] == [
        "mt-train --help",
        "mt-translate --help",
        "mt-eval --help",
    ]
