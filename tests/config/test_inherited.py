"""What fine-tuning inherits from the model that it starts from, and what may not be typed beside it."""

import re
import shutil
from pathlib import Path

import pytest
import yaml
from rows import each_row

from tolka.config.command_line import train_config
from tolka.config.schemas import TrainConfig
from tolka.errors import ConfigError

TEXT = ["corpus=files", "corpus.train=text"]


def tuned(trained: Path, *settings: str, said: list[str] | None = None) -> TrainConfig:
    log = [] if said is None else said
    return train_config([*TEXT, f"run.init_from={trained}", *settings], say=log.append)


def test_sizes_tokenizer_and_languages_are_the_models(trained: Path) -> None:
    said: list[str] = []
    config = tuned(trained, said=said)
    model = config.as_dict()["model"]
    assert (model["name"], model["d_model"], model["heads"], model["layers"]) == ("transformer", 16, 2, 1)
    assert (config.tokenizer.vocab_size, config.tokenizer.extend) == (320, 0)
    assert (config.corpus.source, config.corpus.target) == ("xa", "xb")
    assert "note: corpus.source=xa and corpus.target=xb, as the model in run.init_from has them" in said
    origins = config.run.origins
    assert {origins[key] for key in ("model.d_model", "tokenizer.vocab_size", "corpus.target")} == {"run.init_from"}


def test_a_language_that_is_named_stays(trained: Path) -> None:
    said: list[str] = []
    config = tuned(trained, "corpus.source=xc", said=said)
    assert (config.corpus.source, config.corpus.target) == ("xc", "xb")
    assert "note: corpus.target=xb, as the model in run.init_from has it" in said


@each_row(
    "settings",
    [
        ["model.d_model=16", "model.heads=2"],
        ["model.d_ff=64"],  # what 0, four times d_model, stands for
        ["model=transformer_tiny", "model.d_model=16", "model.heads=2", "model.layers=1"],
        ["tokenizer.vocab_size=320"],
    ],
)
def test_what_is_typed_as_the_model_has_it(trained: Path, settings: list[str]) -> None:
    before, after = (tuned(trained, *each).as_dict()["model"] for each in ((), settings))
    assert {**before, "d_ff": 0} == {**after, "d_ff": 0}


@each_row(
    ("settings", "complaint"),
    [
        (["model.d_model=32"], r"model\.d_model \(16, now 32\)"),
        (["model.layers=2", "model.heads=4"], r"model\.heads \(2, now 4\), model\.layers \(1, now 2\)"),
        (["model.d_ff=65"], r"model\.d_ff \(64, now 65\)"),
        (["model=lstm"], r"model\.name \(transformer, now rnn\)"),
        (["tokenizer.vocab_size=500"], r"tokenizer\.vocab_size \(320, now 500\)"),
        (["tokenizer.type=char"], r"tokenizer\.type \(bpe, now char\)"),
        (["tokenizer.sample=9"], r"tokenizer\.sample \(1000000, now 9\)"),
    ],
)
def test_what_the_weights_do_not_fit(trained: Path, settings: list[str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as caught:
        tuned(trained, *settings)
    assert f"run.init_from ({trained}) has other sizes than were requested" in str(caught.value)


def test_what_weights_fit_whatever_it_is(trained: Path) -> None:
    settings = ["model.dropout=0.35", "model.attention_dropout=0.2", "tokenizer.extend=10", "tokenizer.sample=9"]
    config = tuned(trained, *settings)
    model = config.as_dict()["model"]
    assert (model["dropout"], model["attention_dropout"], model["d_model"]) == (0.35, 0.2, 16)
    assert (config.tokenizer.extend, config.tokenizer.sample, config.tokenizer.vocab_size) == (10, 9, 320)


def test_subwords_that_were_added_to_the_model_are_not_added_once_more(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained / "best", tmp_path / "best")
    settings = tmp_path / "best" / "config.yaml"
    settings.write_text(settings.read_text().replace("  extend: 0\n", "  extend: 7\n"))
    assert yaml.safe_load(settings.read_text())["tokenizer"]["extend"] == 7
    assert tuned(tmp_path / "best").tokenizer.extend == 0
    assert tuned(tmp_path / "best", "tokenizer.extend=5").tokenizer.extend == 5


def test_sizes_of_an_experiment_give_way_and_are_named(trained: Path) -> None:
    said: list[str] = []
    config = tuned(trained, "experiment=multi30k", said=said)
    assert config.as_dict()["model"]["d_model"] == 16
    assert config.tokenizer.vocab_size == 320
    [note] = [each for each in said if "the model in run.init_from has its own" in each]
    assert re.search(r"note: .*tokenizer\.vocab_size=\d+.* of the experiment is left out", note)
    assert "dropout" not in note


def test_languages_of_an_experiment_stay(trained: Path) -> None:
    corpus = train_config(["experiment=tatoeba", f"run.init_from={trained}"]).corpus
    assert (corpus.source, corpus.target) == ("en", "de")
