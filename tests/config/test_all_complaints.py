"""All that is wrong with the settings typed is reported at once, and nothing else."""

import pytest
from rows import each_row

from tolka.config.command_line import evaluate_config, train_config
from tolka.config.translate_command import translate_config
from tolka.errors import ConfigError
from tolka.options.parsing import build
from tolka.search.options import BeamConfig

COMMANDS = {"train": train_config, "translate": translate_config, "eval": evaluate_config}
# Command, settings, keys that are named, and the number of complaints.
CASES: list[tuple[str, str, list[str], int]] = [
    # Two unknown keys, of one group and of two.
    ("train", "trainer.updats=3 trainer.log_evry=4", ["'trainer.updats'", "'trainer.log_evry'"], 2),
    ("translate", "search.beam_sizee=3 decoding.toens=5", ["'search.beam_sizee'", "'decoding.toens'"], 2),
    ("eval", "metrics.bootstrp=3 bogus=5", ["'metrics.bootstrp'", "'bogus'"], 2),
    # Two values of one group out of range, and three.
    ("train", "trainer.updates=0 trainer.label_smoothing=2", ["trainer.updates (0)", "trainer.label_smoothing (2"], 2),
    ("translate", "search.beam_size=0 search.length_penalty=-1", ["search.beam_size (0)", "search.length_pen"], 2),
    ("eval", "metrics.bootstrap=-1 decoding.window=0 decoding.threads=-2", ["bootstrap", "window", "threads"], 3),
    # Of the wrong type, out of range and unknown, in two groups.
    (
        "train",
        "trainer.updats=3 trainer.updates=x trainer.validate_every=0 model.d_model=-1",
        ["'trainer.updats'", "trainer.updates ('x')", "trainer.validate_every (0)", "model.d_model (-1)"],
        4,
    ),
    (
        "translate",
        "decoding.device=5 decoding.threads=-1 search.colums=3 output.format=pdf",
        ["decoding.device (5)", "decoding.threads (-1)", "'search.colums'", "output.format"],
        4,
    ),
    (
        "eval",
        "decoding.precision=fp8 decoding.windw=3 search.n_best=x",
        ["decoding.precision", "'decoding.windw'", "search.n_best ('x')"],
        3,
    ),
    # Unknown choices, beside other faults; the keys of such a choice are not judged.
    (
        "train",
        "model=transfomer model.d_model=-3 optimizer=adamm trainer.updates=-3",
        ["unknown model 'transfomer'", "unknown optimizer 'adamm'", "trainer.updates (-3)"],
        3,
    ),
    (
        "translate",
        "search=beem search.beam_size=0 decoding.threads=-1",
        ["unknown search 'beem'", "decoding.threads"],
        2,
    ),
    # What the grammar refuses, and a removed form.
    ("train", "trainer.updates=3,4 model.layers=0", ["trainer.updates=3,4", "model.layers (0)"], 2),
    ("train", "nonsense trainer.patience=-1", ["'nonsense' is not a setting", "trainer.patience (-1)"], 2),
    # Keys of an experiment that another kind lacks are left out later on, and are nobody's fault.
    (
        "train",
        "experiment=multi30k_tiny scheduler=inverse_sqrt scheduler.warmup=-1 bogus=3",
        ["'bogus'", "scheduler.warmup (-1)"],
        2,
    ),
]


@each_row(("command", "settings", "named", "count"), CASES)
def test_all_of_them_in_one_line(command: str, settings: str, named: list[str], count: int) -> None:
    with pytest.raises(ConfigError) as caught:
        COMMANDS[command](settings.split())  # type: ignore[operator]
    message = str(caught.value)
    assert [each for each in named if each not in message] == []
    assert "\n" not in message
    assert len(caught.value.complaints) == count, message


def test_a_default_in_the_place_of_a_wrong_value_is_not_complained_about() -> None:
    """Eight of a beam of -3 are too many of the default beam, too, which nobody typed."""
    with pytest.raises(ConfigError) as caught:
        build(BeamConfig, {"beam_size": -3, "n_best": 8}, "search")
    assert caught.value.complaints == ["search.beam_size (-3) must be at least 1"]
    with pytest.raises(ConfigError) as caught:
        build(BeamConfig, {"beam_size": "x", "n_best": 8, "length_penalty": -1}, "search")
    assert [each.split()[0] for each in caught.value.complaints] == ["search.beam_size", "search.length_penalty"]
