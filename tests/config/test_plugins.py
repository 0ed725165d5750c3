"""A user's own model, schedule, search, reader and metric, each one file, through `plugins=` in all three commands."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from random_model import TEXTS, write_model

import tolka
from conftest import TINY, XA, XB, Command
from tolka.config.plugins import load_plugins
from tolka.errors import ConfigError
from tolka.models.transformer import TransformerConfig

PLUGINS = Path(__file__).parents[1] / "support" / "plugins"
SETTINGS = [setting for setting in TINY if not setting.startswith("model")]


COMMANDS = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from tolka.cli import evaluate, train, translate
from tolka.cli.common import exit_code
def run(module, arguments, text):
    sys.stdin, out, err = io.TextIOWrapper(io.BytesIO(text.encode())), io.TextIOWrapper(io.BytesIO()), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = exit_code(globals()[module].run, arguments)
    out.seek(0)
    return [code, out.read(), err.getvalue()]
print(json.dumps([run(*given) for given in json.loads(sys.argv[1])]))
"""


@dataclass(frozen=True)
class Done:
    """What a command left."""

    code: int
    out: str
    err: str


def commands(folder: Path, *given: tuple[str, list[str], str]) -> list[Done]:
    """Run commands in `folder`, in one process of their own, in which nothing is registered at first.

    given: of each the module, the arguments and the standard input.
    """
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps(given)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Done(*each) for each in json.loads(done.stdout)]


FILES = ["corpus=files", "corpus.train=text.bars", "corpus.valid=10", "corpus.source=xa", "corpus.target=xb"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plugins, a text for the reader, and a model trained with them."""
    path = tmp_path_factory.mktemp("own")
    for plugin in PLUGINS.glob("*.py"):
        (path / plugin.name).write_text(plugin.read_text(encoding="utf-8"), encoding="utf-8")
    lines = [f"{XA[i]} {XA[j]} ||| {XB[i]} {XB[j]}\n" for i in range(10) for j in range(10)]
    (path / "text.bars").write_text("".join(lines), encoding="utf-8")
    own = ["plugins=[my_model,my_parts,my_search]", "model=mean_wide", "scheduler=halving", "search=first_word"]
    settings = [setting for setting in SETTINGS if not setting.startswith("search")]
    more = [
        "corpus.test=10",
        "metrics.names=[bleu,same,close]",
        "trainer.metric=close",
        "run.dir=run",
        "trainer.log_every=1",
    ]
    [trained] = commands(path, ("train", [*settings, *own, *FILES, *more], ""))
    assert trained.code == 0, trained.err
    assert "Same" in trained.err
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
    [test] = scores["test"].values()
    assert [each["name"] for each in test["metrics"]] == ["BLEU", "Same", "Close"]
    # The best of its validations, by the metric that chooses.
    values = [line["close"] for line in lines if "close" in line]
    assert scores["validation"]["close"] == max(values)
    assert 0 < max(values) <= 1


@pytest.mark.slow
def test_the_other_commands_take_them_and_name_those_that_they_lack(folder: Path) -> None:
    """A search and a recurrent cell are a file each, too."""
    (folder / "out.txt").write_text("a\nb\nc d\nd\n", encoding="utf-8")
    (folder / "reference.txt").write_text("a\nb\nc\nd\n", encoding="utf-8")
    files = ["hypothesis=out.txt", "reference=reference.txt", "metrics.bootstrap=0", "--json"]
    cell = ["plugins=[my_cell,my_parts]", "model=rnn", "model.cell=leaky", "model.d_model=16", "run.dir=leaky"]
    text, searched = f"{XA[0]} {XA[1]}\n{XA[2]}\n", ["search=first_word", "output.format=jsonl"]
    *lacking, translated, unknown, found, scored, trained, of_cell = commands(
        folder,
        ("translate", ["run"], ""),
        ("evaluate", ["run", "source=text.bars", "reference=text.bars"], ""),
        ("translate", ["run", "plugins=[my_model]", "search=greedy"], text),
        ("translate", ["run", "plugins=[my_model]", *searched], text),
        ("translate", ["run", "plugins=[my_model,my_search]", *searched], text),
        ("evaluate", [*files, "plugins=[my_parts]", "metrics.names=[same]"], ""),
        ("train", [*SETTINGS, *cell, *FILES], ""),
        ("translate", ["leaky", "plugins=[my_cell]"], f"{XA[0]}\n"),
    )
    for failed in lacking:
        assert failed.code == 1
        assert "'mean' is a plugin's: add 'plugins=[my_model,my_parts,my_search]' to the command" in failed.err
        assert len(failed.err.splitlines()) == 1
    assert (translated.code, translated.out.count("\n")) == (0, 2), translated.err
    assert (unknown.code, "unknown search 'first_word'" in unknown.err) == (2, True), unknown.err
    subwords = [json.loads(line)["hypotheses"][0]["tokens"] for line in found.out.splitlines()]
    assert [len(set(each) - {"</s>"}) for each in subwords] == [1, 1], found.err
    (metric,) = json.loads(scored.out)["metrics"]
    assert (metric["name"], metric["score"]) == ("Same", 75.0)
    assert metric["signature"]
    assert trained.code == 0, trained.err
    assert (of_cell.code, of_cell.out.count("\n")) == (0, 1), of_cell.err


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("plugins=[my_modle]", "plugins (my_modle) cannot be imported from "),
        ("plugins=[my_model.py]", "plugins (my_model.py) cannot be imported from "),
        ("plugins=[../my_model]", "must name Python modules, as in 'plugins=[my_model]'"),
        ("plugins=[broken]", "my_model.py is 'plugins=[my_model]': ZeroDivisionError: division by zero"),
        ("plugins=[lacking]", "No module named 'no_such_module'"),
    ],
)
def test_plugins_that_cannot_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("broken.py").write_text("1 / 0\n", encoding="utf-8")
    Path("lacking.py").write_text("import no_such_module\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=re.escape(complaint)):
        load_plugins([setting])


def test_other_settings_are_left() -> None:
    assert load_plugins(["model=lstm", "plugins=[json]", "run.name=plugins"]) == ["model=lstm", "run.name=plugins"]


@pytest.mark.slow
def test_a_family_of_foreign_models_is_one_file(command: Command, tmp_path: Path) -> None:
    """It is translated with as it is, comes in, and goes out as it was; without the plugin its type is unknown."""
    write_model(tmp_path / "model", TransformerConfig(d_model=16, heads=2, layers=1))
    shutil.copyfile(PLUGINS / "my_family.py", tmp_path / "my_family.py")
    text, plugin = f"{TEXTS[0]}\n{TEXTS[1]}\n", "plugins=[my_family]"
    (tmp_path / "text").write_text(text, encoding="utf-8")
    sample = ["--sample", "text", "-o"]
    *made, found = commands(
        tmp_path,
        ("train", ["export", "model", "--to", "huggingface", plugin, *sample, "toy"], ""),
        ("train", ["import", "toy", plugin, *sample, "in"], ""),
        ("train", ["export", "in", "--to", "huggingface", plugin, *sample, "back"], ""),
        ("translate", ["toy", plugin], text),
    )
    for done in made:
        assert done.code == 0, done.err
        assert "transformers does not know Toy" in done.err
    assert found.out.splitlines() == tolka.load(tmp_path / "model")(TEXTS[:2])
    for name in ("config.json", "toy.model", "model.safetensors"):
        assert (tmp_path / "toy" / name).read_bytes() == (tmp_path / "back" / name).read_bytes()
    unknown = command("mt-translate", tmp_path / "toy")
    known = "m2m_100 (M2M100ForConditionalGeneration), marian (MarianMTModel)"
    assert f"the architecture is 'toy' (model_type), and only Hugging Face's {known} can be" in unknown.err
