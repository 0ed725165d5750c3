"""Settings of earlier versions: read from a saved run, and refused with the new name when typed."""

import pytest

from tolka.config.command_line import train_config
from tolka.config.schemas import rebuild
from tolka.errors import ConfigError
from tolka.model_directory.upgrade import upgrade_config


def test_a_renamed_setting_keeps_its_value() -> None:
    saved = {"trainer": {"r_drop": 5.0, "agreement_after": 7}, "model": {"name": "rnn"}}
    assert upgrade_config(saved) == {"trainer": {"r_drop": 5.0, "consistency_after": 7}, "model": {"name": "rnn"}}
    with pytest.raises(ConfigError, match=r"agreement_after is gone; in its place: trainer\.consistency_after"):
        train_config(["trainer.agreement_after=3"])


def test_a_removed_way_of_training_together_is_left_out() -> None:
    saved = {"trainer": {"parallel": "diloco", "sync_every": 5, "communication": "bf16", "updates": 9}}
    assert upgrade_config(saved) == {"trainer": {"parallel": "auto", "updates": 9}}
    with pytest.raises(ConfigError, match=r"sync_every is gone; in its place: nothing: DiLoCo went"):
        train_config(["trainer.sync_every=3"])


def test_a_removed_setting_is_left_out_unless_it_had_another_effect() -> None:
    saved = {"trainer": {"clip_value": 0.0, "retries": 9, "average_of": "best"}}
    for name, options in (("sgd", {"name": "sgd"}), ("mine", {"name": "mine", "nesterov": False})):
        found = upgrade_config({**saved, "optimizer": {"name": name, "nesterov": False}})
        assert found == {"trainer": {"average_of": "best"}, "optimizer": options}
    with pytest.raises(ConfigError, match=r"trainer\.average_of \(best\) is gone; in its place: nothing: trainer\."):
        rebuild({**train_config([]).as_dict(), "trainer": {"average_of": "best"}})
