"""Settings of earlier versions: read from a saved run, and refused with the new name when typed."""

import pytest

from tolka.config.command_line import train_config
from tolka.errors import ConfigError
from tolka.model_directory.upgrade import upgrade_config


def test_a_renamed_setting_keeps_its_value() -> None:
    saved = {"trainer": {"r_drop": 5.0, "agreement_after": 7}, "model": {"name": "rnn"}}
    assert upgrade_config(saved) == {"trainer": {"r_drop": 5.0, "consistency_after": 7}, "model": {"name": "rnn"}}
    with pytest.raises(ConfigError, match=r"agreement_after is gone; in its place: trainer\.consistency_after"):
        train_config(["trainer.agreement_after=3"])
