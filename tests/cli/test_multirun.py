"""mt-train -m: several trainings by one command."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tolka.config.command_line import train_config
from tolka.config.sweep import combinations, folder_of
from tolka.errors import ConfigError

Command = Callable[..., Any]


def test_every_combination_in_the_order_of_the_settings() -> None:
    assert list(combinations(["model=rnn,lstm", "trainer.updates=5", "run.seed=1,2"]).items()) == [
        (f"{model}-seed={seed}", [f"model={model}", "trainer.updates=5", f"run.seed={seed}"])
        for model in ("rnn", "lstm")
        for seed in (1, 2)
    ]


def test_lists_and_paths_are_one_value() -> None:
    settings = ["corpus.test=[a,b]", "corpus.train=a,b", "finetuning.freeze=[encoder,decoder]", "model=rnn,gru"]
    whole = ["corpus.test=['a','b']", "corpus.train='a,b'", "finetuning.freeze=[encoder,decoder]"]
    assert [made[:3] for made in combinations(settings).values()] == [whole] * 2
    assert list(combinations(["optimizer.lr=1e-3,0.5", "model.dropout=0.1"])) == ["lr=0.001", "lr=0.5"]


def test_complaints() -> None:
    for settings, complaint in (
        (["model=rnn"], "no setting lists values: write model=rnn,lstm"),
        (["model=rnn,rnn"], "rnn would be trained twice"),
        (["model=rnn,"], "'model=rnn,' has several values"),
    ):
        with pytest.raises(ConfigError, match=complaint):
            combinations(settings)


def test_where_they_go(tmp_path: Path) -> None:
    assert folder_of(["model=a,b", "experiment=ladder"]) == Path("runs/ladder")
    assert folder_of(["model=a,b", "experiment=ladder", "run.name=mine"]) == Path("runs/mine")
    assert folder_of([f"run.dir={tmp_path}"]) == tmp_path


def test_configurations_are_printed_and_nothing_is_trained(command: Command, tiny: list[str], tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    outcome = command("mt-train", "-m", "--print-config", *tiny, "run.seed=1,2", "model.dropout=0.1,0.3")
    assert outcome.code == 0
    printed = list(yaml.safe_load_all(outcome.out))
    made = [(each["run"]["seed"], each["model"]["dropout"]) for each in printed]
    assert made == [(1, 0.1), (1, 0.3), (2, 0.1), (2, 0.3)]
    assert Path(printed[0]["run"]["dir"]).name == "seed=1-dropout=0.1"
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.slow
def test_each_is_a_run_of_its_own_and_goes_on(command: Command, tiny: list[str], tmp_path: Path) -> None:
    arguments = ["-m", *tiny, "run.seed=1,2"]
    assert command("mt-train", *arguments).code == 0
    weights = [(tmp_path / "run" / f"seed={seed}" / "best" / "model.safetensors").read_bytes() for seed in "12"]
    assert weights[0] != weights[1]
    outcome = command("mt-train", *arguments, "trainer.updates=7")
    assert outcome.code == 0
    assert outcome.err.count("resuming from update 5") == 2
    assert "training 2 of 2: seed=2" in outcome.err


@pytest.fixture
def one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page with one sentence of a run in place of three, each of which is drawn."""
    monkeypatch.setattr("tolka.run.results._SHARES", (0.5,))


@pytest.mark.slow
@pytest.mark.usefixtures("one_sentence")
def test_one_page_sets_them_side_by_side(command: Command, tiny: list[str], tmp_path: Path) -> None:
    """The rungs of unlike kinds, and what did not finish."""
    kept = [setting for setting in tiny if not setting.startswith(("model", "report.page"))]
    other = tmp_path / "run" / "rnn"
    other.mkdir(parents=True)
    (other / "notes.txt").write_text("not a run\n")
    arguments = ["-m", *kept, "model=rnn,lstm_attention,transformer_tiny", "model.parameters=20000"]
    outcome = command("mt-train", *arguments, "batching.max_length=32")
    assert outcome.code == 1
    assert re.search(r"^lstm_attention +\d+,\d+ +5 ", outcome.err, re.MULTILINE)
    assert outcome.err.count("all so far: ") == 3
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "<b>rnn</b> failed" in page
    # Each sentence that both show, translated by each.
    assert page.count('<section class="card') == 2 * page.count("<h3 lang") > 0
    assert page.index("lstm_attention</th>") < page.index("transformer_tiny</th>")
    assert (tmp_path / "run" / "lstm_attention" / "report.html").is_file()
    assert (tmp_path / "run" / "transformer_tiny" / "shown" / "01.json").is_file()


@pytest.mark.slow
@pytest.mark.usefixtures("without_matplotlib", "one_sentence")
def test_what_an_earlier_call_finished_stays_on_the_page(command: Command, tiny: list[str], tmp_path: Path) -> None:
    kept = [setting for setting in tiny if not setting.startswith("report.page")]
    assert command("mt-train", "-m", *kept, "run.seed=1,2").code == 0
    (tmp_path / "run" / "seed=1" / "last" / "manifest.json").unlink()
    outcome = command("mt-train", "-m", *kept, "run.seed=1,3", "optimizer.lr=0.01")
    assert outcome.code == 1
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "<b>seed=1</b> failed: " in page
    assert [f'<th scope="row">seed={seed}</th>' in page for seed in "123"] == [False, True, True]


def test_a_run_s_folder_is_not_taken_for_several(command: Command, tiny: list[str], tmp_path: Path) -> None:
    assert command("mt-train", *tiny).code == 0
    outcome = command("mt-train", "-m", *tiny, "run.seed=1,2")
    assert (outcome.code, "is one run's folder already" in outcome.error) == (2, True)
    assert f": add run.dir={tmp_path / 'run'}-several, or another one" in outcome.error


def test_lists_without_values(command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # runs/sample may be here, of make demo
    pytest.importorskip("optuna")
    for setting, complaint in (
        ("run.seed=range(1,1)", "a setting lists no value"),
        ("run.seed=range(1,5,0)", "range() arg 3 must not be zero"),
        ("model=glob(zzz)", "a setting lists no value"),
        ("hydra/sweeper=optuna run.seed=interval(5,1)", "run.seed=interval(5,1) is not a range: "),
        ("hydra/sweeper=optuna optimizer.lr=tag(log,interval(0,1))", "is not a range: "),
    ):
        outcome = command("mt-train", "-m", *setting.split())
        assert (outcome.code, complaint in outcome.error) == (2, True), outcome.error


def test_a_run_s_name_is_not_taken_for_several(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "sample").mkdir(parents=True)
    (tmp_path / "runs" / "sample" / "config.yaml").touch()
    outcome = command("mt-train", "-m", "experiment=sample", "model=rnn,lstm")
    assert outcome.error == "runs/sample is one run's folder already: add run.name=sample-several, or another one"


@pytest.mark.slow
def test_the_ladder_s_rungs_are_of_one_size() -> None:
    for model in ("rnn", "bilstm_deep_attention", "transformer_tiny"):
        config = train_config(["experiment=ladder", f"model={model}"])
        size = config.tokenizer.vocab_size
        assert config.model.build(size, size, True).parameter_count() == pytest.approx(1_600_000, rel=0.05)


def test_all_are_checked_before_the_first_begins(command: Command, tiny: list[str], tmp_path: Path) -> None:
    outcome = command("mt-train", "-m", *tiny, "model.dropout=0.1,1.5")
    assert (outcome.code, "model.dropout (1.5)" in outcome.error) == (2, True)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_one_that_fails_does_not_stop_the_rest(command: Command, tiny: list[str], tmp_path: Path) -> None:
    other = tmp_path / "run" / "seed=1"
    other.mkdir(parents=True)
    (other / "config.yaml").write_text("model: {}\n")
    (other / "last").mkdir()
    (other / "last" / "manifest.json").write_text("{}")
    outcome = command("mt-train", "-m", *tiny, "run.seed=1,2")
    assert outcome.code == 1
    assert "error: seed=1 failed:" in outcome.err
    assert (tmp_path / "run" / "seed=2" / "best").is_dir()
