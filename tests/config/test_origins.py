"""Who set each setting: traced from the files that are composed, shown with the settings, and what decides between."""

from pathlib import Path

import pytest
import yaml

from tolka.config.command_line import rerun_config, train_config, with_recipe
from tolka.config.compose import ConfigSource, compose
from tolka.config.dependent_settings import RULES, follow_rules
from tolka.config.origins import DEFAULT, Composition, Origin, Rank
from tolka.training.saved_settings import with_origins

FILES = ["corpus.train=t", "corpus.valid=v", "corpus.source=xa", "corpus.target=xb"]


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with an experiment, a model and a primary file of the user's own."""
    files = {
        "experiment/mine": "# @package _global_\ndefaults:\n- override /model: lstm\noptimizer: {lr: 0.001}\n",
        "model/slim": "defaults: [transformer_tiny]\nd_model: 64\n",
        "first": "defaults: [train, _self_]\ntrainer: {updates: 900}\n",
    }
    for name, text in files.items():
        (tmp_path / f"{name}.yaml").parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def test_each_file_and_what_is_typed_is_an_origin(own: Path) -> None:
    composed = compose(["experiment=mine", "scheduler=linear", "model.dropout=0.3"], ConfigSource(own, "first"))
    expected = {
        "model": Origin(Rank.EXPERIMENT, "experiment=mine"),
        "model.layers": Origin(Rank.PRESET, "model=lstm"),
        "model.dropout": Origin(Rank.TYPED, "typed"),
        # As much as its default, and set all the same.
        "optimizer.lr": Origin(Rank.EXPERIMENT, "experiment=mine"),
        "optimizer.beta1": Origin(Rank.DEFAULT, "optimizer=adamw"),
        "scheduler": Origin(Rank.TYPED, "typed"),
        "scheduler.warmup": Origin(Rank.PRESET, "scheduler=linear"),
        "trainer.updates": Origin(Rank.EXPERIMENT, "first.yaml"),
    }
    assert {key: composed.origins[key] for key in expected} == expected
    # Every value has an origin, or its default.
    keys = {f"{group}.{key}" for group, options in composed.values.items() for key in options}
    assert {key for key in composed.origins if "." in key} <= keys


def test_a_file_that_builds_on_another_is_one_choice(own: Path) -> None:
    origins = compose(["model=slim"], ConfigSource(own)).origins
    assert {origins[f"model.{key}"].by for key in ("d_model", "layers")} == {"model=slim"}


def test_an_implied_experiment_is_as_weak_as_a_preset() -> None:
    assert compose([], implied=["experiment=finetune"]).rank("optimizer.lr") is Rank.PRESET


def test_an_implied_experiment_stands_for_its_own_keys_alone() -> None:
    named = compose([], implied=["experiment=finetune"]).named_origins()
    assert named["optimizer.lr"] == "experiment=finetune"
    assert not {"optimizer", "optimizer.beta1"} & named.keys()
    assert named["scheduler"] == "scheduler=constant"


def test_a_setting_gives_way_to_stronger_origins_alone() -> None:
    for rank in Rank:
        composed = Composition({"a": {"b": 1}}, {}, {"a.b": Origin(rank, "x")})
        assert composed.replace("a.b", 2, Origin(Rank.MODEL, "y"), Rank.CHOSEN) is (rank < Rank.CHOSEN)
        assert composed.get("a.b") == (2 if rank < Rank.CHOSEN else 1)
    assert not Composition({"a": {"b": 1}}, {}).replace("a.b", 1, DEFAULT, Rank.TYPED)  # not another value


@pytest.mark.parametrize(
    ("epochs", "updates", "expected"),
    [
        (Rank.TYPED, Rank.DEFAULT, 0),
        (Rank.TYPED, Rank.EXPERIMENT, 0),
        (Rank.EXPERIMENT, Rank.DEFAULT, 0),
        (Rank.EXPERIMENT, Rank.EXPERIMENT, 70),
        (Rank.TYPED, Rank.TYPED, 70),
    ],
)
def test_epochs_end_a_training_that_nobody_as_strong_ends_by_updates(
    epochs: Rank, updates: Rank, expected: int
) -> None:
    origins = {"trainer.epochs": Origin(epochs, "a"), "trainer.updates": Origin(updates, "b")}
    composed = Composition({"trainer": {"epochs": 2.0, "updates": 70}, "model": {"name": "rnn"}}, {}, origins)
    follow_rules(composed)
    assert composed.get("trainer.updates") == expected


def test_no_rule_replaces_what_is_typed() -> None:
    assert all(rule.weaker_than <= Rank.TYPED for rule in RULES)


def test_settings_are_shown_with_who_set_them() -> None:
    config = train_config(with_recipe([*FILES, "trainer.max_minutes=3", "batching.tokens=512"]))
    text = with_origins(config.as_dict())
    for line in ("  max_minutes: 3.0  # typed", "  lr: 0.001  # open", "  seed: 1  # default", "  family: any  # open"):
        assert f"\n{line}\n" in f"\n{text}"
    shown, whole = yaml.safe_load(text), config.as_dict()
    del whole["run"]["origins"]
    assert shown == whole


def test_a_long_text_stays_one_value() -> None:
    config = train_config(["model=lstm", f"run.dir=runs/{'long name ' * 15}"])
    assert yaml.safe_load(with_origins(config.as_dict()))["run"]["dir"] == config.run.dir


def test_a_run_once_more_keeps_who_set_what(tmp_path: Path) -> None:
    before = train_config(["experiment=ladder", "trainer.patience=3"])
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(before.as_dict()))
    again = rerun_config(tmp_path, ["model.dropout=0.2"]).run.origins
    expected = {"optimizer.lr": "experiment=ladder", "trainer.patience": "typed", "model.dropout": "typed"}
    assert {key: again[key] for key in expected} == expected
    assert "batching.auto" not in again
