"""Going on from a model, and models made of models."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from guarded_command import guarded
from safetensors.torch import load_file

import tolka
from conftest import arguments_of
from tolka.auto.memory import ModelSize
from tolka.auto.rules import TUNING_SIZES
from tolka.cli import train
from tolka.config.command_line import train_config
from tolka.errors import CheckpointError, ConfigError
from tolka.model_directory.read import load_model
from tolka.system.progress import say

Command = Callable[..., Any]
OWN_SIZES = ("model", "tokenizer", "trainer.updates", "scheduler")


def going_on(tiny: list[str], trained: Path, *more: str) -> list[str]:
    """The settings of `tiny` on its own corpus, but from the trained model."""
    kept = [setting for setting in tiny if not setting.startswith(OWN_SIZES)]
    return [*kept, f"run.init_from={trained}", "trainer.updates=5", "scheduler.warmup=1", *more]


def going_on_once(trained: Path, folder: Path, *more: str) -> Path:
    """The folder of a run that started from the trained model on its own text."""
    given = [*arguments_of(trained.parent / "corpus", folder), f"run.prepared={trained.parent / 'prepared'}"]
    assert guarded(train.run, going_on(given, trained, *more)) == 0
    return folder


@pytest.fixture(scope="module")
def adapted(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with an adapter; not to be changed."""
    return going_on_once(trained, tmp_path_factory.mktemp("adapted") / "run", "finetuning.lora_rank=2")


@pytest.fixture(scope="module")
def continued(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of all weights; not to be changed."""
    return going_on_once(trained, tmp_path_factory.mktemp("continued") / "run")


def tensors(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def test_weights_sizes_and_tokenizer_are_the_models(
    command: Command, tiny: list[str], trained: Path, tmp_path: Path
) -> None:
    outcome = command("mt-train", *going_on(tiny, trained, "optimizer.lr=1e-30", "metrics.bootstrap=40"))
    assert outcome.code == 0
    old, new = tensors(trained / "best"), tensors(tmp_path / "run" / "best")
    assert old.keys() == new.keys()
    for name, value in old.items():
        torch.testing.assert_close(new[name], value)  # at a rate of nothing, what was learnt stays
    assert (tmp_path / "run" / "best" / "tokenizer.model").read_bytes() == (
        trained / "best" / "tokenizer.model"
    ).read_bytes()
    changes = json.loads((tmp_path / "run" / "best" / "scores.json").read_text())["test"]["test"]["changes"]
    assert "against the model before, test, p by paired approximate randomisation" in outcome.out + outcome.err
    assert [(c["name"], c["after"] - c["before"], c["p_value"]) for c in changes] == [
        (name, 0.0, 1.0) for name in ("BLEU", "chrF2", "chrF2++", "TER")
    ]
    assert "against the model before" in outcome.err
    assert f"It began as {trained}, which has " in outcome.err


@pytest.mark.slow
def test_the_start_is_validated_and_stays_if_nothing_beats_it(
    command: Command, tiny: list[str], trained: Path, tmp_path: Path
) -> None:
    """At a ruinous rate the model that training started from is the best; at a useful one it is not."""
    metric = ["trainer.metric=nll", "trainer.average=0"]
    outcome = command("mt-train", *going_on(tiny, trained, "optimizer.lr=30", *metric))
    assert outcome.code == 0
    assert "update 0: validation nll " in outcome.err
    assert "note: no validation was better than the model that training started from" in outcome.err
    old, new = tensors(trained / "best"), tensors(tmp_path / "run" / "best")
    assert all(torch.equal(value, new[name]) for name, value in old.items())
    assert any(not torch.equal(value, tensors(tmp_path / "run" / "last")[name]) for name, value in old.items())
    again = command("mt-train", *going_on(tiny, trained, "optimizer.lr=30", *metric, "trainer.updates=7"))
    assert again.err.count("update 0: validation") == 0
    elsewhere = [f"run.dir={tmp_path / 'useful'}" if each.startswith("run.dir") else each for each in tiny]
    outcome = command("mt-train", *going_on(elsewhere, trained, "optimizer.lr=0.003", *metric))
    assert outcome.code == 0
    assert "stays the best" not in outcome.err


@pytest.mark.slow
def test_training_goes_on_and_can_be_resumed(command: Command, tiny: list[str], trained: Path, tmp_path: Path) -> None:
    arguments = going_on(tiny, trained)
    assert command("mt-train", *arguments).code == 0
    first = tensors(tmp_path / "run" / "last")
    assert any(not torch.equal(value, first[name]) for name, value in tensors(trained / "best").items())
    outcome = command("mt-train", *arguments, "trainer.updates=7")
    assert outcome.code == 0
    assert "resuming from update 5" in outcome.err
    outcome = command("mt-train", *[a for a in arguments if "init_from" not in a], "experiment=finetune")
    assert outcome.code == 2
    assert "run.init_from" in outcome.error


def test_a_start_that_is_gone_at_the_end_costs_only_the_comparison(
    tiny: list[str], trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its weights are in memory until training begins, and are read again for the tests."""

    def gone(name: str) -> None:
        raise CheckpointError(f"{name} is gone")

    monkeypatch.setattr("tolka.run.pipeline.load_any", gone)
    result = tolka.train(going_on(tiny, trained, "metrics.bootstrap=40"))
    assert result.tests
    assert not any(test.changes for test in result.tests)
    assert "the scores before the training are not there" in (tmp_path / "run" / "train.log").read_text("utf-8")


@pytest.mark.slow
def test_a_training_is_made_to_fit_into_memory_and_says_how(
    command: Command, tiny: list[str], trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tolka.auto.memory._BASE", 0)
    own = [each for each in tiny if each.startswith(("corpus", "run.", "report"))]
    model = load_model(trained).model
    names = {name.partition(".")[0]: each.numel() for name, each in model.named_parameters() if "embedding" in name}
    least = ModelSize(model.parameter_count(), names, 16).bytes("adapters", 512)
    settings = [*own, f"run.init_from={trained}", "trainer.updates=2"]
    fits = [f"run.dir={tmp_path / 'adapted'}", f"trainer.memory={1.01 * least / 1e9:.9f}"]
    outcome = command("mt-train", *settings, *fits)
    assert outcome.code == 0, outcome.err
    assert "low-rank adapters alone are trained" in outcome.err
    chosen = yaml.safe_load((tmp_path / "adapted" / "config.yaml").read_text("utf-8"))
    assert chosen["finetuning"]["lora_rank"] == 32
    again = command("mt-train", *settings, *fits, "trainer.updates=3")
    assert (again.code, "resuming from update 2" in again.err) == (0, True), again.err
    typed = command("mt-train", *settings, f"run.dir={tmp_path / 'typed'}", *fits[1:], "finetuning.lora_rank=0")
    assert (typed.code, "less is needed where finetuning.lora_rank is not typed" in typed.error) == (2, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        pytest.param([], marks=pytest.mark.slow),
        pytest.param(["trainer.ema=0.9"], marks=pytest.mark.slow),
        ["finetuning.lora_rank=2"],
    ],
)
def test_a_large_model_is_written_without_copies(
    command: Command,
    tiny: list[str],
    trained: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
) -> None:
    """All files are those of a run that copies, also in what it resumes from."""
    settings = going_on(
        tiny, trained, "scheduler=constant", "trainer.validate_every=2", "trainer.keep_best=1", *options
    )
    runs = tmp_path / "copied", tmp_path / "lent"
    for run, large in zip(runs, (1e9, 0), strict=True):
        monkeypatch.setattr("tolka.training.snapshots._LARGE", large)
        assert command("mt-train", *settings, f"run.dir={run}").code == 0
    copied, lent = ({path.relative_to(run): path for path in run.rglob("*.safetensors")} for run in runs)
    assert len(copied) >= 4
    assert copied.keys() == lent.keys()
    for name, path in copied.items():
        ours = load_file(lent[name])
        assert all(torch.equal(ours[key], tensor) for key, tensor in load_file(path).items()), name


@pytest.mark.slow
@pytest.mark.parametrize("options", [pytest.param([], marks=pytest.mark.slow), ["trainer.ema=0.9"]])
def test_adapters_are_merged_saved_and_resumed(
    command: Command, tiny: list[str], trained: Path, tmp_path: Path, options: list[str]
) -> None:
    """Five updates and two more, as seven at once; best/ translates like any model; the adapter merges into the old."""
    constant = "scheduler=constant"  # others depend on when training ends
    lora = going_on(tiny, trained, "finetuning.lora_rank=2", "optimizer.lr=0.01", constant, *options)
    assert command("mt-train", *lora).code == 0
    assert command("mt-train", *lora, "trainer.updates=7").code == 0
    straight = [*lora, f"run.dir={tmp_path / 'straight'}", "trainer.updates=7"]
    assert command("mt-train", *straight).code == 0
    resumed = tensors(tmp_path / "run" / "last")
    for name, value in tensors(tmp_path / "straight" / "last").items():
        assert torch.equal(resumed[name], value), name
    old = tensors(trained / "best")
    assert old.keys() == resumed.keys()
    assert torch.equal(old["target_embedding.weight"], resumed["target_embedding.weight"])
    merged = tmp_path / "merged"  # with the adapter of best/, which has been through the test stage
    assert command("mt-train", "merge", trained, tmp_path / "run", "-o", merged).code == 0
    best = tensors(tmp_path / "run" / "best")
    for name, value in tensors(merged).items():
        torch.testing.assert_close(value, best[name])
    assert command("mt-translate", merged, stdin=b"ferry\n").code == 0


@pytest.mark.slow
def test_two_vocabularies_and_an_older_model(command: Command, tiny: list[str], tmp_path: Path) -> None:
    """From last/, by a path relative to here; settings that the model's version did not know have their defaults."""
    assert command("mt-train", *tiny, "tokenizer.shared=false", "model.share_embeddings=target_output").code == 0
    base = tmp_path / "base"
    (tmp_path / "run").rename(base)
    forget(base / "last", "normalization", "positions")
    assert command("mt-train", *going_on(tiny, base / "last")).code == 0
    assert (tmp_path / "run" / "best" / "source.model").is_file()
    outcome = command("mt-train", *going_on(tiny, base / "last", "model.normalization=rmsnorm"))
    assert (outcome.code, "model.normalization (layernorm, now rmsnorm)" in outcome.error) == (2, True)
    assert command("mt-train", "average", base / "last", base, "-o", tmp_path / "mean").code == 0


def forget(model: Path, *keys: str) -> None:
    """Make the directory one of a version that did not have these options of the model."""
    config = yaml.safe_load((model / "config.yaml").read_text(encoding="utf-8"))
    config["model"] = {key: value for key, value in config["model"].items() if key not in keys}
    (model / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    manifest = json.loads((model / "manifest.json").read_text())
    manifest["files"]["config.yaml"] = hashlib.sha256((model / "config.yaml").read_bytes()).hexdigest()
    (model / "manifest.json").write_text(json.dumps(manifest))


def test_an_adapter_for_another_tokenizer_is_refused(
    command: Command, tiny: list[str], adapted: Path, tmp_path: Path
) -> None:
    assert command("mt-train", *tiny, "tokenizer.type=unigram").code == 0
    outcome = command("mt-train", "merge", tmp_path / "run", adapted, "-o", tmp_path / "merged")
    assert (outcome.code, "was made for another tokenizer" in outcome.error) == (1, True)


@pytest.mark.slow
def test_test_sets_of_one_name_are_told_apart_by_their_folders(
    command: Command, tiny: list[str], trained: Path, corpus: Path
) -> None:
    (corpus / "old").mkdir()
    for language in ("xa", "xb"):
        (corpus / "old" / f"test.{language}").write_bytes((corpus / f"test.{language}").read_bytes())
    outcome = command("mt-train", *going_on(tiny, trained, f"corpus.test=[{corpus}/test,{corpus}/old/test]"))
    assert outcome.code == 0
    assert "test set corpus-test: 8 pairs" in outcome.err
    assert "test set old-test: 8 pairs" in outcome.err


def test_dropout_may_be_set_and_nothing_else_changes(tiny: list[str], trained: Path) -> None:
    kept = going_on(tiny, trained)
    config = train_config(["experiment=finetune", *kept, "model.dropout=0.1", "model.attention_dropout=0.2"])
    saved = load_model(trained)
    assert config.as_dict()["model"] == {**saved.config["model"], "dropout": 0.1, "attention_dropout": 0.2}
    assert config.as_dict()["tokenizer"] == saved.config["tokenizer"]


@pytest.mark.parametrize(
    ("asked", "complaints"),
    [
        (["model.layers=3"], ["model.layers (1, now 3)"]),
        (["model=transformer_tiny"], ["model.d_model (16, now 128)", "model.heads (2, now 4)", "model.layers (1, now"]),
        (
            ["tokenizer.vocab_size=400", "model.d_ff=7"],
            ["tokenizer.vocab_size (320, now 400)", "model.d_ff (64, now 7)"],
        ),
        (
            ["model.d_model=15"],  # no model has it with two heads
            ["model.d_model (16, now 15)"],
        ),
        (["tokenizer.type=unigram"], ["tokenizer.type (bpe, now unigram)"]),
    ],
)
def test_other_sizes_are_refused_with_their_keys(
    command: Command, tiny: list[str], trained: Path, asked: list[str], complaints: list[str]
) -> None:
    outcome = command("mt-train", *going_on(tiny, trained, *asked))
    assert outcome.code == 2
    for complaint in complaints:
        assert complaint in outcome.error
    assert "Leave these settings out" in outcome.error


def test_equal_sizes_may_be_said_in_other_words(tiny: list[str], trained: Path) -> None:
    words = ["model.d_ff=64", "model.decoder_layers=1", "model.share_embeddings=all"]
    train_config(going_on(tiny, trained, *words))
    with pytest.raises(ConfigError, match=r"model.share_embeddings \(all, now source_target\)"):
        train_config(going_on(tiny, trained, "model.share_embeddings=source_target"))


@pytest.mark.slow
def test_a_recipe_of_its_own_unless_another_is_named(
    tiny: list[str], trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From Python too."""
    settings = [setting for setting in going_on(tiny, trained) if not setting.startswith("optimizer")]
    assert (
        train_config(settings, say=say).optimizer.lr
        == train_config(["experiment=finetune"], say=say).optimizer.lr
        == 0.0001
    )
    assert capsys.readouterr().err == ""
    sizes = [f"{setting}" for setting in tiny if setting.startswith(("model", "tokenizer"))]
    train_config([*settings, *sizes, "experiment=sample", "optimizer.lr=0.0002"], say=say)
    assert capsys.readouterr().err == ""
    train_config([*settings, "optimizer=muon"], say=say)  # the recipe that nobody named says what it sets, too
    assert "note: optimizer.lr is 0.0001, as experiment=finetune sets it" in capsys.readouterr().err


@pytest.mark.slow
def test_longer_lines_than_the_new_text_s_are_still_taken_whole(
    command: Command, tiny: list[str], trained: Path, corpus: Path, tmp_path: Path
) -> None:
    for language in ("xa", "xb"):
        path = corpus / f"train.{language}"
        path.write_text("".join(f"{line.split()[0]}\n" for line in path.read_text().splitlines()))
    assert command("mt-train", *going_on(tiny, trained)).code == 0
    assert load_model(tmp_path / "run").sources.longest == load_model(trained).sources.longest > 4


def test_a_misspelt_part_is_found_before_the_text_is_prepared(command: Command, tiny: list[str], trained: Path) -> None:
    outcome = command("mt-train", *going_on(tiny, trained, "finetuning.freeze=[encodr]"))
    assert (outcome.code, "Did you mean 'encoder'?" in outcome.error) == (2, True)
    assert "training text" not in outcome.err


def test_an_adapter_is_merged_into_its_own_base_only(
    command: Command, adapted: Path, continued: Path, tmp_path: Path
) -> None:
    outcome = command("mt-train", "merge", continued, adapted, "-o", tmp_path / "merged")
    assert (outcome.code, "was trained beside other weights" in outcome.error) == (1, True)
    assert not (tmp_path / "merged").exists()


def test_other_complaints(command: Command, tiny: list[str], trained: Path, tmp_path: Path) -> None:
    outcome = command("mt-train", *going_on(tiny, tmp_path / "nothing"))
    assert (outcome.code, "no such model directory" in outcome.error) == (1, True)
    outcome = command("mt-train", f"run.init_from={trained}")
    assert (outcome.code, "run.init_from needs text to train on" in outcome.error) == (2, True)
    for lonely in ("finetuning.lora_rank=4", "finetuning.freeze=[encoder]"):
        outcome = command("mt-train", *tiny, lonely)
        assert (outcome.code, "name the model to start from" in outcome.error) == (2, True)
    outcome = command("mt-train", *going_on(tiny, trained, "finetuning.lora_rank=4", "trainer.average=3"))
    assert (outcome.code, "do not go together" in outcome.error) == (2, True)
    outcome = command("mt-train", "merge", trained, trained, "-o", tmp_path / "x")
    assert (outcome.code, "has no adapter.safetensors" in outcome.error) == (1, True)


def test_the_mean_of_two_models(command: Command, trained: Path, continued: Path, tmp_path: Path) -> None:
    out = tmp_path / "mean"
    outcome = command("mt-train", "average", trained, continued, "-o", out)
    assert outcome.code == 0
    one, two = tensors(trained / "best"), tensors(continued / "best")
    for name, value in tensors(out).items():
        torch.testing.assert_close(value, (one[name] + two[name]) / 2)
    assert "made of | the mean of" in (out / "README.md").read_text()
    assert "test" not in json.loads((out / "scores.json").read_text())
    assert command("mt-translate", out, stdin=b"ferry\n").code == 0
    again = command("mt-train", "average", trained, continued, "-o", out)
    assert (again.code, "is there already" in again.error) == (2, True)


def test_models_of_different_shapes_are_not_averaged(
    command: Command, tiny: list[str], trained: Path, tmp_path: Path
) -> None:
    assert command("mt-train", *tiny, "model.d_ff=24", "tokenizer.vocab_size=310").code == 0
    outcome = command("mt-train", "average", trained, tmp_path / "run", "-o", tmp_path / "mean")
    assert outcome.code == 1
    assert (
        "cannot be averaged: model.d_ff is 64 and 24, the tokenizers differ (ids mean other subwords)" in outcome.error
    )
    assert not (tmp_path / "mean").exists()
    alone = command("mt-train", "average", trained, "-o", tmp_path / "mean")
    assert (alone.code, "at least two models" in alone.error) == (2, True)
    nowhere = command("mt-train", "average", trained, trained)
    assert (nowhere.code, "needs -o OUT" in nowhere.error) == (2, True)


@pytest.mark.parametrize("named", [["corpus.source=xc", "corpus.target=xa"], ["corpus.source=xc"]])
def test_the_languages_are_the_models_unless_named(
    tiny: list[str], trained: Path, named: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    settings = [each for each in going_on(tiny, trained) if not each.startswith(("corpus.source", "corpus.target"))]
    corpus = train_config(settings, say=say).corpus
    assert (corpus.source, corpus.target) == ("xa", "xb")
    assert "note: corpus.source=xa and corpus.target=xb, as the model in run.init_from has" in capsys.readouterr().err
    corpus = train_config([*settings, *named], say=say).corpus
    assert (corpus.source, corpus.target) == ("xc", "xa" if len(named) > 1 else "xb")
    said = capsys.readouterr().err
    assert ("as the model in run.init_from" in said) == (len(named) == 1)
    assert ("note: corpus.target=xb, as the model in run.init_from has it" in said) == (len(named) == 1)


def test_an_experiment_s_or_the_sample_s_languages_stay(tiny: list[str], trained: Path) -> None:
    init = f"run.init_from={trained}"
    for settings, direction in ((["experiment=tatoeba"], ("en", "de")), (["corpus=sample"], ("en", "ko"))):
        corpus = train_config([*settings, init]).corpus
        assert (corpus.source, corpus.target) == direction


@pytest.mark.slow
def test_what_nobody_types_is_chosen_by_the_size_of_the_text(
    command: Command, tiny: list[str], trained: Path, tmp_path: Path
) -> None:
    outcome = command("mt-train", *going_on(tiny, trained, "model.dropout=0.05"))
    assert outcome.code == 0
    written = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert written["optimizer"]["lr"] == TUNING_SIZES[0].rate
    assert (written["model"]["dropout"], written["trainer"]["updates"]) == (0.05, 5)  # typed
    assert written["run"]["origins"]["optimizer.lr"] == "chosen"
    assert "open" not in written["run"]["origins"].values()
    assert "chosen for this text" in outcome.err
    assert "Or begin with a model" not in outcome.err
    by_hand = train_config([*going_on(tiny, trained), "experiment=finetune"])
    assert by_hand.run.open_settings == []
