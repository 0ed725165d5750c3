"""A user's own model, schedule, search, reader and metric, each one file, through `plugins=` in all three commands."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from random_model import TEXTS, write_model

import tolka
from conftest import TINY, XA, XB
from tolka.config.plugins import load_plugins
from tolka.errors import ConfigError
from tolka.models.transformer import TransformerConfig

PLUGINS = Path(__file__).parents[1] / "support" / "plugins"
SETTINGS = [setting for setting in TINY if not setting.startswith("model")]


def command(module: str, *arguments: str, folder: Path, text: str = "") -> "subprocess.CompletedProcess[str]":
    """Run a command in a process of its own, in which nothing is registered yet, in `folder`."""
    script = f"from tolka.cli.{module} import main; main()"
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=folder,
        input=text,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plugins, a text for the reader, and a model trained with them."""
    path = tmp_path_factory.mktemp("own")
    for plugin in PLUGINS.glob("*.py"):
        (path / plugin.name).write_text(plugin.read_text(encoding="utf-8"), encoding="utf-8")
    lines = [f"{XA[i]} {XA[j]} ||| {XB[i]} {XB[j]}\n" for i in range(10) for j in range(10)]
    (path / "text.bars").write_text("".join(lines), encoding="utf-8")
    trained = command(
        "train",
        *SETTINGS,
        *("plugins=[my_model,my_parts,my_search]", "model=mean_wide", "scheduler=halving", "search=first_word"),
        *("corpus=files", "corpus.train=text.bars", "corpus.valid=10", "corpus.test=10"),
        *("corpus.source=xa", "corpus.target=xb", "metrics.names=[bleu,exact]", "run.dir=run", "trainer.log_every=1"),
        folder=path,
    )
    assert trained.returncode == 0, trained.stderr
    assert "Exact" in trained.stderr
    return path


def test_a_run_uses_them_and_its_configuration_names_their_modules(folder: Path) -> None:
    config = yaml.safe_load((folder / "run" / "config.yaml").read_text(encoding="utf-8"))
    assert (config["model"], config["scheduler"]["name"]) == (
        {"d_model": 48, "parameters": 0, "name": "mean"},
        "halving",
    )
    assert config["plugins"] == ["my_model", "my_parts", "my_search"]
    lines = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["lr"] for line in lines if "lr" in line][-1] == pytest.approx(0.001 / 4)  # update 5, halved every 2
    scores = json.loads((folder / "run" / "best" / "scores.json").read_text(encoding="utf-8"))
    assert "Exact" in str(scores)


def test_the_other_commands_take_them_too(folder: Path) -> None:
    text = f"{XA[0]} {XA[1]}\n{XA[2]}\n"
    translated = command("translate", "run", "plugins=[my_model]", "search=greedy", folder=folder, text=text)
    assert (translated.returncode, translated.stdout.count("\n")) == (0, 2), translated.stderr
    (folder / "out.txt").write_text("a\nb\nc d\nd\n", encoding="utf-8")
    (folder / "reference.txt").write_text("a\nb\nc\nd\n", encoding="utf-8")
    files = ("hypothesis=out.txt", "reference=reference.txt", "metrics.bootstrap=0", "--json")
    scored = command("evaluate", *files, "plugins=[my_parts]", "metrics.names=[exact]", folder=folder)
    (metric,) = json.loads(scored.stdout)["metrics"]
    assert (metric["name"], metric["score"]) == ("Exact", 75.0)
    assert metric["signature"]


def test_a_search_is_one_file(folder: Path) -> None:
    text, search = f"{XA[0]} {XA[1]}\n{XA[2]}\n", ("run", "plugins=[my_model,my_search]", "search=first_word")
    found = command("translate", *search, "output.format=jsonl", folder=folder, text=text)
    assert found.returncode == 0, found.stderr
    subwords = [json.loads(line)["hypotheses"][0]["tokens"] for line in found.stdout.splitlines()]
    assert [len(set(each) - {"</s>"}) for each in subwords] == [1, 1]
    unknown = command("translate", "run", "plugins=[my_model]", "search=first_word", folder=folder, text=text)
    assert (unknown.returncode, "unknown search 'first_word'" in unknown.stderr) == (2, True), unknown.stderr


def test_a_recurrent_cell_is_one_file(folder: Path) -> None:
    trained = command(
        "train",
        *SETTINGS,
        *("plugins=[my_cell,my_parts]", "model=rnn", "model.cell=leaky", "model.d_model=16", "run.dir=leaky"),
        *("corpus=files", "corpus.train=text.bars", "corpus.valid=10", "corpus.source=xa", "corpus.target=xb"),
        folder=folder,
    )
    assert trained.returncode == 0, trained.stderr
    translated = command("translate", "leaky", "plugins=[my_cell]", folder=folder, text=f"{XA[0]}\n")
    assert (translated.returncode, translated.stdout.count("\n")) == (0, 1), translated.stderr


@pytest.mark.parametrize("module", ["translate", "evaluate"])
def test_a_model_of_an_unknown_class_says_which_plugin_it_wants(folder: Path, module: str) -> None:
    arguments = ["source=text.bars", "reference=text.bars"] if module == "evaluate" else []
    failed = command(module, "run", *arguments, folder=folder)
    assert failed.returncode == 1
    assert "the model 'mean' is a plugin's: add plugins=[my_model,my_parts,my_search] to the command" in failed.stderr
    assert len(failed.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("plugins=[my_modle]", "there is no module my_modle, installed or in "),
        ("plugins=[my_model.py]", "there is no module my_model.py"),
        ("plugins=[../my_model]", "must name Python modules, as in plugins=[my_model]"),
        ("plugins=[broken]", "plugins=[broken] cannot be imported: ZeroDivisionError: division by zero"),
        ("plugins=[lacking]", "it needs the module no_such_module, which is not installed"),
    ],
)
def test_plugins_that_cannot_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("broken.py").write_text("1 / 0\n", encoding="utf-8")
    Path("lacking.py").write_text("import no_such_module\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=re.escape(complaint)):
        load_plugins([setting])


def test_other_settings_are_left() -> None:
    assert load_plugins(["model=lstm", "plugins=[json]", "run.name=plugins"]) == ["model=lstm", "run.name=plugins"]


def test_a_family_of_foreign_models_is_one_file(tmp_path: Path) -> None:
    """It is translated with as it is, comes in, and goes out as it was; without the plugin its type is unknown."""
    write_model(tmp_path / "model", TransformerConfig(d_model=16, heads=2, layers=1))
    shutil.copyfile(PLUGINS / "my_family.py", tmp_path / "my_family.py")
    text, plugin = f"{TEXTS[0]}\n{TEXTS[1]}\n", "plugins=[my_family]"
    (tmp_path / "text").write_text(text, encoding="utf-8")
    for name, out in (("model", "toy"), ("toy", "in"), ("in", "back")):
        action = ["import", name] if name == "toy" else ["export", name, "--to", "huggingface"]
        done = command("train", *action, plugin, "--sample", "text", "-o", out, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "transformers does not know Toy" in done.stderr
    found = command("translate", "toy", plugin, folder=tmp_path, text=text)
    assert found.stdout.splitlines() == tolka.load(tmp_path / "model")(TEXTS[:2])
    for name in ("config.json", "toy.model", "model.safetensors"):
        assert (tmp_path / "toy" / name).read_bytes() == (tmp_path / "back" / name).read_bytes()
    unknown = command("translate", "toy", folder=tmp_path, text=text)
    assert (
        "the architecture is 'toy' (model_type), and only Hugging Face's marian (MarianMTModel) can be"
        in unknown.stderr
    )
