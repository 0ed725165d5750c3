"""model=auto: what is typed stays, the rest is chosen once, and a run that has begun keeps it."""

from pathlib import Path

import pytest
import yaml

from tolka.auto.rules import FRESH, OF_TRANSFORMERS
from tolka.config.command_line import train_config, with_recipe
from tolka.config.compose import CONFIGS, ConfigSource
from tolka.config.sweep import plan
from tolka.errors import ConfigError
from tolka.run.chosen import with_chosen_settings


@pytest.fixture
def settings(tmp_path: Path) -> list[str]:
    for name in ("train", "valid"):
        (tmp_path / f"{name}.xa").write_text("a b c d\n" * 50)
        (tmp_path / f"{name}.xb").write_text("x y z\n" * 50)
    return [
        *(f"corpus.train={tmp_path}/train", f"corpus.valid={tmp_path}/valid", "corpus.source=xa", "corpus.target=xb"),
        f"run.dir={tmp_path}/run",
    ]


def test_a_text_of_ones_own_has_its_model_chosen(settings: list[str]) -> None:
    chosen, choices = with_chosen_settings(train_config(with_recipe(settings)))
    assert chosen.as_dict()["model"]["name"] == "rnn"
    assert [choice.key for choice in choices] == [key for key in FRESH if key not in OF_TRANSFORMERS]
    assert {choice.key for choice in choices if not choice.reason} == {"scheduler.horizon", "trainer.updates"}
    assert {choice.key: choice.value for choice in choices}["tokenizer.vocab_size"] == chosen.tokenizer.vocab_size


@pytest.mark.parametrize("named", ["model=lstm", "model.heads=2", "experiment=sample", "corpus=sample"])
def test_a_named_model_is_not_replaced(settings: list[str], named: str) -> None:
    assert "model=auto" not in with_recipe([named, *settings])


def test_what_is_typed_stays(settings: list[str]) -> None:
    typed = ["model.dropout=0.25", "model.d_model=48", "batching.tokens=777", "optimizer=muon"]
    chosen, choices = with_chosen_settings(train_config(with_recipe([*typed, *settings])))
    model = chosen.as_dict()["model"]
    assert (model["dropout"], model["d_model"], chosen.batching.tokens) == (0.25, 48, 777)
    assert chosen.as_dict()["optimizer"] == train_config(["corpus=files", *typed, *settings]).as_dict()["optimizer"]
    keys = {choice.key for choice in choices}
    assert "model.layers" in keys
    assert not keys & {"model.dropout", "model.d_model", "batching.tokens", "optimizer", "optimizer.lr"}


def test_a_typed_option_of_a_group_that_is_chosen_stays(settings: list[str]) -> None:
    typed = ["model.family=transformer", "optimizer.weight_decay=0.5"]
    chosen, choices = with_chosen_settings(train_config(with_recipe([*typed, *settings])))
    assert "optimizer" in {choice.key for choice in choices}
    assert chosen.as_dict()["optimizer"]["weight_decay"] == 0.5


def test_a_run_of_another_family_is_not_continued(settings: list[str], tmp_path: Path) -> None:
    before = train_config([*settings, "corpus=files", "model=transformer_tiny"])
    (tmp_path / "run" / "last").mkdir(parents=True)
    (tmp_path / "run" / "config.yaml").write_text(yaml.safe_dump(before.as_dict()))
    with pytest.raises(ConfigError, match=r"another kind of model \(transformer\) than model\.family=rnn"):
        with_chosen_settings(train_config(with_recipe(["model.family=rnn", *settings])))


def test_what_a_file_of_ones_own_sets_stays(settings: list[str], tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "defaults: [train, override model: auto, override corpus: files, _self_]\n"
        "model: {d_model: 64, dropout: 0.05}\nbatching: {tokens: 512}\n"
    )
    own = ConfigSource(tmp_path, "mine")
    chosen, choices = with_chosen_settings(train_config(with_recipe(settings, own), own))
    model = chosen.as_dict()["model"]
    assert (model["d_model"], model["dropout"], chosen.batching.tokens) == (64, 0.05, 512)
    assert "tokenizer.vocab_size" in {choice.key for choice in choices}


@pytest.mark.parametrize("typed", ["scheduler.warmup=25000", "model.layers=0", "model.dropout=null"])
def test_what_fits_once_all_is_chosen_is_allowed(settings: list[str], typed: str) -> None:
    assert with_chosen_settings(train_config(with_recipe([typed, *settings])))[0].run.open_settings == []


@pytest.mark.parametrize("typed", ["tokenizer=word", "tokenizer=char"])
def test_words_and_characters_are_not_counted_as_subwords(settings: list[str], typed: str) -> None:
    assert "tokenizer.vocab_size" not in train_config(with_recipe([typed, *settings])).run.open_settings


def test_the_table_has_what_is_used(settings: list[str]) -> None:
    chosen, choices = with_chosen_settings(train_config(with_recipe(["trainer.updates=20", *settings])))
    assert {each.key: each.value for each in choices}["scheduler.warmup"] == chosen.scheduler.warmup == 2


def test_trainings_of_a_sweep_are_compared_by_one_metric(settings: list[str]) -> None:
    swept = plan([*with_recipe(settings), "model.dropout=0.1,0.2"], CONFIGS).trainings
    assert [len(swept), *("trainer.metric" in each.config.run.open_settings for each in swept)] == [2, False, False]


def test_an_end_or_a_schedule_of_ones_own_is_the_only_one(settings: list[str]) -> None:
    def left(*typed: str) -> set[str]:
        return {*FRESH} - {*train_config(with_recipe([*typed, *settings])).run.open_settings}

    ends = {"trainer.updates", "trainer.epochs"}
    assert left() == set()
    assert left("trainer.epochs=3") == left("trainer.updates=30") == ends
    assert left("trainer.max_minutes=3") == set()
    schedule = {"scheduler", "scheduler.horizon", "scheduler.warmup", "trainer.patience"}
    assert left("scheduler=cosine") == ends | schedule
    assert left("scheduler.warmup=7") == {"scheduler.warmup"}


def test_typed_values_that_do_not_fit_are_an_error(settings: list[str]) -> None:
    config = train_config(with_recipe(["model.d_model=47", "model.family=transformer", *settings]))
    with pytest.raises(ConfigError, match=r"model\.d_model \(47\) must be a multiple of model\.heads"):
        with_chosen_settings(config)


def test_a_run_that_has_begun_keeps_its_choice(settings: list[str], tmp_path: Path) -> None:
    before = train_config([*settings, "corpus=files", "model=gru", "tokenizer.vocab_size=333", "optimizer.lr=0.5"])
    (tmp_path / "run" / "last").mkdir(parents=True)
    (tmp_path / "run" / "config.yaml").write_text(yaml.safe_dump(before.as_dict()))
    chosen, choices = with_chosen_settings(train_config(with_recipe([*settings, "trainer.max_minutes=3"])))
    assert not choices
    assert chosen.model == before.model
    assert (chosen.tokenizer.vocab_size, chosen.optimizer.lr, chosen.trainer.max_minutes) == (333, 0.5, 3)
