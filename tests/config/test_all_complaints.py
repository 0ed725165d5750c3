"""All values that are wrong are reported at once, after all names are known."""

import pytest
from rows import each_row

from tolka.config.command_line import evaluate_config, train_config
from tolka.config.translate_command import translate_config
from tolka.errors import ConfigError

COMMANDS = {"train": train_config, "translate": translate_config, "eval": evaluate_config}
# Command, settings, keys that are named, and the number of complaints.
CASES: list[tuple[str, str, list[str], int]] = [
    # Values of the wrong type, of one group and of two.
    ("train", "trainer.updates=x trainer.patience=y", ["trainer.updates ('x')", "trainer.patience ('y')"], 2),
    ("translate", "decoding.device=5 output.format=pdf", ["decoding.device (5)", "output.format"], 2),
    # Out of range, of three groups; the first of each.
    (
        "train",
        "trainer.updates=x trainer.validate_every=0 model.d_model=-1 batching.tokens=-2",
        ["trainer.updates ('x')", "model.d_model (-1)", "batching.tokens (-2)"],
        3,
    ),
    ("eval", "metrics.bootstrap=-1 decoding.window=-1", ["bootstrap", "window"], 2),
    # What is unknown comes before what is wrong.
    ("train", "trainer.updats=3 trainer.patience=-1", ["'trainer.updats'"], 1),
    ("translate", "search=beem search.beam_size=0 decoding.threads=-1", ["unknown search 'beem'"], 1),
]


@each_row(("command", "settings", "named", "count"), CASES)
def test_all_of_them_in_one_line(command: str, settings: str, named: list[str], count: int) -> None:
    with pytest.raises(ConfigError) as caught:
        COMMANDS[command](settings.split())  # type: ignore[operator]
    message = str(caught.value)
    assert [each for each in named if each not in message] == []
    assert "\n" not in message
    assert len(caught.value.complaints) == count, message
