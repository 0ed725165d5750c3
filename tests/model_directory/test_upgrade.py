"""Settings of earlier versions: read from a saved run, and refused with the new name when typed."""

from pathlib import Path

import pytest
import yaml

from tolka.config.command_line import train_config, translate_config
from tolka.config.schemas import rebuild
from tolka.errors import ConfigError
from tolka.model_directory.upgrade import upgrade_config


def test_a_renamed_setting_keeps_its_value() -> None:
    saved = {"trainer": {"r_drop": 5.0, "agreement_after": 7}, "model": {"name": "rnn"}}
    assert upgrade_config(saved) == {"trainer": {"r_drop": 5.0, "consistency_after": 7}, "model": {"name": "rnn"}}
    with pytest.raises(ConfigError, match=r"agreement_after is gone; in its place: trainer\.consistency_after"):
        train_config(["trainer.agreement_after=3"])


def test_removed_settings_are_read_past_and_refused_when_typed() -> None:
    """Those that only models have any more are kept, and refused likewise."""
    kept = Path(__file__).parents[1] / "kept" / "interrupted" / "post_norm_adamw" / "config.yaml"
    saved = yaml.safe_load(kept.read_text(encoding="utf-8"))
    saved["model"] |= {"layerdrop": 0.1, "embedding_dropout": 0.3, "d_v": 3, "max_positions": 7}
    saved["search"] |= {"glossary_mode": "soft", "coverage_penalty": 0.2}
    config = rebuild(saved)
    assert {"d_v": 3, "max_positions": 7}.items() <= vars(config.model).items()
    assert not {"layerdrop", "embedding_dropout"} & vars(config.model).keys()
    with pytest.raises(ConfigError, match=r"glossary_mode is gone; in its place: search\.glossary alone"):
        translate_config(["search.glossary_mode=soft"])
    with pytest.raises(ConfigError, match=r"unknown key 'model\.d_v'.* values are as wide as keys"):
        train_config(["model.d_v=3"])
