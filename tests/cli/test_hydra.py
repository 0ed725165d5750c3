"""Hydra in mt-train: every row of docs/howto/hydra.md, what is left in folders, and errors in one line."""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hydra._internal.utils import get_args_parser

from tolka.cli import multirun
from tolka.config.command_line import train_config
from tolka.config.compose import ConfigSource
from tolka.errors import ConfigError

Command = Callable[..., Any]
PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "hydra.md").read_text(encoding="utf-8")
FILES = re.findall(r"`(conf/[\w/]+\.yaml)`\n\n```yaml\n(.*?)```", PAGE, re.DOTALL)


def rows_of(page: str) -> list[tuple[str, str, str]]:
    """Return what is typed after mt-train, the result, and the meaning or the error message, of each row of the page.

    A sentence "typed after `mt-train ...`" or "typed after `mt-train` alone" says what comes before the rows of its
    section; the one before all sections holds where a section has none.
    """
    introduction, *sections = re.split(r"^### ", page, flags=re.MULTILINE)
    rows = []
    for section in sections:
        [before] = re.findall(r"typed after `mt-train(?: ([^`]+))?`", section) or re.findall(
            r"typed after `mt-train ([^`]+)`", introduction
        )
        table = re.findall(r"^\| `(.+)` \| (\w+) \| (.+) \|$", section, re.MULTILINE)
        rows += [(f"{before} {typed}".strip(), result, words) for typed, result, words in table]
    return rows


ROWS = rows_of(PAGE)
RARE = [  # as on the page: what is typed, the result, and the error message
    ("--print-config +trainer.updates=50", "refused", "An item is already at 'trainer.updates'"),
    ("--print-config '~trainer.nothing'", "refused", "Could not delete from config"),
    ("--print-config 'trainer.updates=int(50.0)'", "works", ""),
    ("--print-config model=null", "refused", "unknown model 'null'"),
    ("--print-config 'experiment=[]'", "refused", "unknown experiment '[]'"),
    ("--print-config +model@other=lstm", "refused", "is not a setting; write key=value"),
    ("--print-config '~experiment'", "works", ""),
    (
        "--print-config 'run.name=${trainer.nothing}'",
        "refused",
        "run.name takes its value from 'trainer.nothing', and there is no setting of that name",
    ),
    ("--print-config -m 'model=glob(lstm*)'", "works", ""),
    ("--print-config -m 'run.seed=shuffle(1,2,3)'", "works", ""),
    ("--print-config -m 'run.seed=sort(3,1,2)'", "works", ""),
    ("--print-config -m run.seed=1", "refused", "no setting lists values"),
    ("--print-config --config-dir nowhere", "refused", "there is no folder nowhere"),
    ("--print-config --config-dir conf --config-name other", "refused", "Cannot find primary config 'other'"),
    ("--print-config hydra.verbose=true", "refused", "with its settings and train.log"),
    ("--print-config hydra/job_logging=disabled", "refused", "with its settings and train.log"),
    ("--print-config hydra.launcher._target_=os.getcwd", "refused", "would let a setting choose which code runs"),
    ("--print-config +model._target_=os.getcwd", "refused", "would let a setting choose which code runs"),
]


@pytest.fixture
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's files of one's own, in the current folder."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    return tmp_path / "conf"


def test_the_page_has_rows_and_files() -> None:
    assert len(ROWS) > 20
    assert len(ROWS) == len(re.findall(r"^\| `", PAGE, re.MULTILINE))
    assert {result for _, result, _ in ROWS} == {"works", "refused"}
    assert "--print-config '~trainer.ema'" in {typed for typed, _, _ in ROWS}
    assert [name for name, _ in FILES] == ["conf/mine.yaml", "conf/experiment/short.yaml"]


@pytest.mark.slow
@pytest.mark.usefixtures("own_files")
def test_what_hydra_documents(command: Command, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    for typed, expected, words in ROWS + RARE:
        result = command("mt-train", *shlex.split(typed))
        if expected == "refused":
            assert (result.code, words in result.error) == (2, True), (typed, result.error)
        else:
            assert (result.code, result.out != "") == (0, True), (typed, result.err)
    assert sorted(tmp_path.rglob("*")) == before


HYDRAS_FLAGS = {  # what Hydra's parser takes, with a value where it needs one -> what mt-train writes of it
    "--help": "usage: mt-train",
    "--hydra-help": "unrecognized arguments: --hydra-help",
    "--version": "0.",
    "--cfg job": "Here it is: --print-config",
    "--resolve": "unrecognized arguments: --resolve",
    "--package model": "unrecognized arguments: --package",
    "--run": "--run is not an option",
    "--multirun": "no setting lists values",
    "--shell-completion": "unrecognized arguments: --shell-completion",
    "--config-path conf": "unrecognized arguments: --config-path",
    "--config-name other": "Cannot find primary config 'other'",
    "--config-dir nowhere": "there is no folder nowhere",
    "--experimental-rerun x": "unrecognized arguments: --experimental-rerun",
    "--info": "Here it is: --print-config",
}


@pytest.mark.slow
def test_each_flag_of_hydra_s_parser_is_used_or_refused(
    command: Command, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # runs/sample may be here, of make demo

    def train(config: object) -> None:
        raise AssertionError("a training has begun")

    monkeypatch.setattr("tolka.api.train.train", train)
    for typed, written in HYDRAS_FLAGS.items():
        words = typed.split()
        try:
            outcome = command("mt-train", "trainer.updates=7", *words)
            assert written in outcome.out + outcome.err, typed
        except SystemExit:  # argparse's own --help and --version
            assert written in capsysbinary.readouterr().out.decode(), typed


def test_no_flag_of_hydra_s_parser_is_left_out_above() -> None:
    parser = get_args_parser()
    flags = {flag for action in parser._actions for flag in action.option_strings if flag.startswith("--")}
    assert {typed.split()[0] for typed in HYDRAS_FLAGS} == flags


def test_a_flag_with_an_empty_value_is_refused(command: Command) -> None:
    for name in ("config-path", "config-name", "config-dir", "experimental-rerun", "package", "cfg"):
        assert command("mt-train", f"--{name}=", "trainer.updates=7").code == 2, name


def test_experiments_beside_a_kind_of_model(command: Command) -> None:
    for typed in ("experiment=[sample,ladder] model=lstm", "~experiment model=lstm"):
        [found] = printed(command, *typed.split())
        assert found["model"]["name"] == "rnn"


def test_what_is_no_list_of_experiments(command: Command) -> None:
    for value in ("[]", "[sample,]", "[[sample]]", "[null]", "[1]", "[sample", "[nope]", "{a:b}"):
        outcome = command("mt-train", f"experiment={value}", "model=lstm")
        assert (outcome.code, "unknown experiment '" in outcome.error) == (2, True), outcome.error


def printed(command: Command, *arguments: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(command("mt-train", "--print-config", *arguments).out))


@pytest.mark.usefixtures("own_files")
def test_values_of_files_of_one_s_own(command: Command) -> None:
    [own] = printed(command, "--config-dir", "conf", "--config-name", "mine")
    assert (own["model"]["name"], own["corpus"]["target"]) == ("rnn", "de")
    assert re.fullmatch(r"rnn-20\d\d", own["run"]["name"])
    [short] = printed(command, "-cd", "conf", "experiment=short", "corpus=sample")
    assert (short["trainer"]["updates"], short["run"]["name"]) == (50, "short")
    [both] = printed(command, "-cd", "conf", "experiment=[sample,short]")
    assert (both["trainer"]["updates"], both["tokenizer"]["vocab_size"], both["run"]["name"]) == (
        50,
        2000,
        "sample",
    )


def test_changes_have_their_effect(command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # runs/sample may be here, of make demo
    [without] = printed(command, "~trainer.ema")
    assert without["trainer"]["ema"] == 0.0  # experiment=sample sets 0.999
    seeds = [each["run"]["seed"] for each in printed(command, "-m", "run.seed=range(2,5)")]
    assert seeds == [2, 3, 4]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("defaults: [train, _self_]\ntrainer:\n  updates: 5\n  updates: 6\n", "found duplicate key updates"),
        ("defaults: [train, _self_]\ntrainer:\n  updats: 5\n", "Did you mean 'trainer.updates'?"),
        (
            "defaults: [train, _self_]\nrun:\n  name: ${no.where}\n",
            "run.name takes its value from 'no.where', and there is no setting of that name",
        ),
        ("defaults: [train, _self_]\nhydra:\n  callbacks:\n    x:\n      _target_: os.getcwd\n", "hydra.callbacks"),
        (
            "defaults: [train, _self_]\nhydra:\n  launcher:\n    _target_: os.getcwd\n",
            "hydra.launcher._target_ (os.getcwd) is not an installed launcher",
        ),
        ("trainer:\n  updates: 5\n", "the configuration lacks its groups "),
        ("defaults: [train, _self_]\nmodel:\n  _target_: os.getcwd\n", "_target_"),
        ("[1, 2]\n", "must be a"),
        ("a: [\n", "cannot read the settings"),
    ],
)
def test_a_file_of_one_s_own_with_a_fault_is_one_line(
    command: Command, own_files: Path, text: str, complaint: str
) -> None:
    (own_files / "mine.yaml").write_text(text, encoding="utf-8")
    before = sorted(own_files.parent.rglob("*"))
    for several in ([], ["-m", "run.seed=1,2"]):
        outcome = command("mt-train", "--config-dir", "conf", "--config-name", "mine", *several)
        assert (outcome.code, complaint in outcome.error) == (2, True), outcome.error
    assert sorted(own_files.parent.rglob("*")) == before


def test_a_training_and_a_sweep_leave_nothing_else(
    command: Command, tiny: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    finished = SimpleNamespace(summary=lambda: "done", state=SimpleNamespace(best=1.0))
    monkeypatch.setattr("tolka.api.train.train", lambda config: finished)
    monkeypatch.setattr(multirun, "train", lambda config: finished)
    monkeypatch.setattr("tolka.report.runs.read_run", lambda folder, label: label)
    monkeypatch.setattr("tolka.report.summary.comparison_table", " ".join)
    for more in ((), ("-m", "run.seed=1,2")):
        assert command("mt-train", *tiny, *more).code == 0
    assert list(Path().rglob("*")) == []


def test_variables_of_a_file_are_refused(command: Command, own_files: Path) -> None:
    text = "defaults: [train, _self_]\nhydra:\n  job:\n    env_set:\n      MINE: x\n"
    (own_files / "mine.yaml").write_text(text, encoding="utf-8")
    outcome = command("mt-train", "--print-config", "--config-dir", "conf", "--config-name", "mine")
    assert (outcome.code, "hydra.job.env_set" in outcome.error) == (2, True)


def test_a_folder_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="there is no folder no_such"):
        ConfigSource(Path("no_such"))


def test_a_quoted_interpolation_of_a_path_is_resolved() -> None:
    assert train_config(["run.name=${tokenizer.type}-1"]).run.name == "bpe-1"


@pytest.mark.slow
def test_without_any_plugin_of_hydra_s(tiny: list[str]) -> None:
    """As in an environment without the extra `sweep`: mt-train works, and a sweep names the extra."""
    start = """import sys
sys.modules['hydra_plugins'] = sys.modules['optuna'] = None
from tolka.cli.common import exit_code
from tolka.cli.train import run
joblib = ["-m", "run.seed=1,2", "hydra/launcher=joblib"]
optuna = ["-m", "hydra/sweeper=optuna", "optimizer.lr=interval(0.001,0.01)"]
sys.exit([exit_code(run, [*sys.argv[1:], *more]) for more in (["--print-config"], joblib, optuna)] != [0, 2, 2])
"""
    done = subprocess.run([sys.executable, "-c", start, *tiny], capture_output=True, text=True)
    assert (done.returncode, done.stderr.splitlines()) == (
        0,
        [
            "error: hydra/launcher=joblib needs hydra-joblib-launcher: pip install 'tolka[sweep]'",
            "error: hydra/sweeper=optuna needs Optuna: pip install 'tolka[sweep]'",
        ],
    )
