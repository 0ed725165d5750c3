"""Settings of earlier versions: read from a saved run, and refused with what to use when typed."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tolka.config.command_line import train_config, translate_config
from tolka.config.compose import plain_settings
from tolka.config.schemas import rebuild
from tolka.errors import ConfigError
from tolka.model_directory import upgrade
from tolka.model_directory.upgrade import lost_settings, upgrade_config
from tolka.optim.optimizers.base import OPTIMIZERS
from tolka.optim.optimizers.sgd import SGDConfig

Command = Callable[..., Any]


def test_a_renamed_value_keeps_its_meaning() -> None:
    saved = {"trainer": {"ema": 0.9, "parallel": "diloco"}, "model": {"name": "transformer"}}
    assert upgrade_config(saved) == {
        "trainer": {"ema": 0.9, "parallel": "auto"},
        "model": {"name": "transformer"},
    }


def test_a_compiled_run_goes_on_without_compiling() -> None:
    saved = {"trainer": {"ema": 0.9, "compile": "default", "cuda_graphs": True}}
    assert upgrade_config(saved) == {"trainer": {"ema": 0.9}}
    assert lost_settings(saved) == {}


def test_a_loss_that_is_gone_is_dropped_where_it_was_off_and_named_where_it_was_on() -> None:
    assert upgrade_config({"trainer": {"r_drop": 0.0, "word_dropout": 0.0}}) == {"trainer": {}}
    assert lost_settings({"trainer": {"r_drop": 0.0, "agreement_after": 0, "simcut": 0.0}}) == {}
    assert lost_settings({"trainer": {"r_drop": 5.0, "simcut": 0.0}}) == {"trainer.r_drop": 5.0}
    with pytest.raises(ConfigError, match=r"trainer\.r_drop is gone; in its place: model\.dropout"):
        train_config(["trainer.r_drop=3"])


def test_settings_that_are_gone_are_mapped_or_dropped() -> None:
    corpus = {"name": "hub", "train": ["train"], "valid": ["validation"], "test": ["test"], "caps": [], "check": True}
    files = {"root": "", "root_train": ["train"], "root_valid": ["valid"], "root_test": ["test_2016_flickr"]}
    saved = {
        "corpus": {**corpus, **files, "max_line_bytes": 9},
        "metrics": {"names": ["bleu"], "legacy": True, "seed": 3},
        "report": {"page": False, "sentences": ["a"]},
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
    capped = {"corpus": {"caps": [0, 100]}}
    assert (upgrade_config(capped), lost_settings(capped)) == ({"corpus": {}}, {"corpus.caps": [0, 100]})


@pytest.fixture
def removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings and a value that are removed, and one that may be left out of any run."""
    settings = {"trainer.clipping": "trainer.clip_norm", "trainer.panel": "nothing"}
    monkeypatch.setattr(upgrade, "REMOVED", {**settings, "trainer.parallel=ring": "trainer.parallel=ddp"})
    monkeypatch.setattr(upgrade, "_WITHOUT_EFFECT", {"trainer.clipping": -1})


@pytest.mark.usefixtures("removed")
def test_what_was_removed_is_dropped_and_told_where_it_had_an_effect() -> None:
    trainer = {"clipping": 0.5, "parallel": "ring", "updates": 3, "panel": 7}
    saved = {"trainer": trainer, "run": None}
    assert upgrade_config(saved) == {"trainer": {"updates": 3}, "run": None}
    assert lost_settings(saved) == {"trainer.clipping": 0.5, "trainer.parallel": "ring"}
    assert lost_settings({"trainer": {"clipping": -1, "parallel": "auto"}}) == {}
    with pytest.raises(ConfigError, match=r"trainer\.parallel=ring is gone; in its place: trainer\.parallel=ddp"):
        train_config(["trainer.parallel=ring"])


@pytest.mark.slow
@pytest.mark.usefixtures("removed")
def test_a_run_that_used_a_removed_setting_goes_on_only_without_it(
    command: Command, tiny: list[str], tmp_path: Path
) -> None:
    assert command("mt-train", *tiny).code == 0
    path = tmp_path / "run" / "config.yaml"
    saved = yaml.safe_load(path.read_text(encoding="utf-8"))
    saved["trainer"]["clipping"] = 0.5
    path.write_text(yaml.safe_dump(saved), encoding="utf-8")
    again = command("mt-train", "--rerun", str(path.parent), "--print-config").err
    assert "had trainer.clipping=0.5; trainer.clipping is gone; in its place: trainer.clip_norm" in again
    more = [*tiny, "trainer.updates=7"]
    assert "these settings differ: trainer.clipping (0.5, now None)" in command("mt-train", *more).error
    assert "resuming from update 5" in command("mt-train", *more, "run.override=true").err


def test_a_removed_way_of_training_together_is_left_out() -> None:
    saved = {"trainer": {"parallel": "diloco", "sync_every": 5, "communication": "bf16", "updates": 9}}
    assert upgrade_config(saved) == {"trainer": {"parallel": "auto", "updates": 9}}
    assert lost_settings(saved) == {}
    with pytest.raises(ConfigError, match=r"sync_every is gone; in its place: nothing: DiLoCo went"):
        train_config(["trainer.sync_every=3"])


def test_an_optimizer_of_one_s_own_keeps_what_another_lost() -> None:
    saved = {"trainer": {"clip_value": 0.0, "average_of": "best"}}
    for name, options in (("sgd", {"name": "sgd"}), ("mine", {"name": "mine", "nesterov": False})):
        found = upgrade_config({**saved, "optimizer": {"name": name, "nesterov": False}})
        assert found == {"trainer": {}, "optimizer": options}
    assert lost_settings(saved) == {"trainer.average_of": "best"}


def test_a_key_of_an_optimizer_of_one_s_own_may_be_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Mine(SGDConfig):
        nesterov: bool = False

    typed = ["optimizer.nesterov=true"]
    with pytest.raises(ConfigError, match=r"optimizer\.nesterov is gone"):
        plain_settings("train", typed)
    monkeypatch.setitem(OPTIMIZERS._classes, "mine", Mine)
    assert plain_settings("train", typed) == [("optimizer.nesterov", "true")]


def test_the_range_test_of_learning_rates_is_refused_and_read_past() -> None:
    saved = {"trainer": {"find_lr": False, "updates": 9}}
    assert (upgrade_config(saved), lost_settings(saved)) == ({"trainer": {"updates": 9}}, {})
    with pytest.raises(ConfigError, match=r"^trainer\.find_lr is gone; .*-m optimizer\.lr=3e-4,1e-3,3e-3"):
        train_config(["trainer.find_lr=true"])


def test_removed_settings_are_read_past_and_refused_when_typed() -> None:
    """Those that only models have any more are kept, and refused likewise."""
    kept = Path(__file__).parents[1] / "kept" / "interrupted" / "post_norm_adamw" / "config.yaml"
    saved = yaml.safe_load(kept.read_text(encoding="utf-8"))
    saved["model"] |= {"layerdrop": 0.1, "embedding_dropout": 0.3, "d_v": 3, "max_positions": 7}
    saved["search"] |= {"glossary_mode": "soft", "coverage_penalty": 0.2}
    config = rebuild(saved)
    assert {"d_v": 3, "max_positions": 7}.items() <= vars(config.model).items()
    assert not {"layerdrop", "embedding_dropout"} & vars(config.model).keys()
    assert lost_settings(saved) == {"model.layerdrop": 0.1, "model.embedding_dropout": 0.3}
    with pytest.raises(ConfigError, match=r"glossary_mode is gone; in its place: search\.glossary alone"):
        translate_config(["search.glossary_mode=soft"])
    with pytest.raises(ConfigError, match=r"unknown key 'model\.d_v'.* values are as wide as keys"):
        train_config(["model.d_v=3"])


def test_a_plugin_s_class_keeps_a_setting_that_is_gone_from_ours() -> None:
    for group, key, ours in (("model", "forget_bias", "rnn"), ("search", "min_p", "sampling")):
        assert upgrade_config({group: {"name": ours, key: 0.5}}) == {group: {"name": ours}}
        mine = {group: {"name": "mine", key: 0.5}}
        assert upgrade_config(mine) == mine
        assert lost_settings(mine) == {}
