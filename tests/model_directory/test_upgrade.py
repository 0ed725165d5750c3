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


def test_settings_that_are_gone_are_mapped_or_dropped() -> None:
    corpus = {"name": "hub", "train": ["train"], "valid": ["validation"], "test": ["test"], "caps": [], "check": True}
    files = {"root": "", "root_train": ["train"], "root_valid": ["valid"], "root_test": ["test_2016_flickr"]}
    saved = {
        "corpus": {**corpus, **files, "max_line_bytes": 9},
        "metrics": {"names": ["bleu"], "legacy": True, "seed": 3},
        "report": {"page": False, "plots": True, "sentences": ["a"]},
    }
    assert upgrade_config(saved) == {
        "corpus": {
            "name": "hub",
            "root": "",
            "train": ["train"],
            "valid": [["validation", "valid"]],
            "test": [["test", "test_2016_flickr"]],
        },
        "metrics": {"names": ["bleu", "bleu-lc"]},
        "report": {"page": False},
    }
    several = {"root_test": ["a", "b"], "test": ["test"]}
    assert upgrade_config({"corpus": {"root": "texts", **several}}) == {"corpus": {"root": "texts", "test": ["a", "b"]}}
    assert upgrade_config({"corpus": {"root": "", **several}}) == {"corpus": {"root": "", "test": ["test"]}}


def test_a_run_with_what_nothing_replaces_is_refused() -> None:
    saved = train_config([]).as_dict()
    with pytest.raises(ConfigError, match=r"^corpus\.caps is gone; in its place: corpus\.weights"):
        rebuild({**saved, "corpus": {**saved["corpus"], "caps": [0, 100]}})
