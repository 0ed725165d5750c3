"""What many tests share: a made-up corpus, a run trained on it, and the commands, run in this process."""

import builtins
import gc
import io
import pickle
import random
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

import pytest
import torch
from guarded_command import guarded
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import IConfigRepository
from hydra._internal.defaults_list import DefaultsList, create_defaults_list
from hydra.core.override_parser.types import Override
from hypothesis import settings
from omegaconf import OmegaConf

from tolka.cli import evaluate, serve, train, translate
from tolka.config.choices import presets_of_classes
from tolka.config.schemas import REGISTRIES
from tolka.errors import TolkaError
from tolka.search.greedy import GreedyConfig

settings.register_profile("tolka", deadline=None)  # a busy machine is no failure
settings.load_profile("tolka")

# Word i of one made-up language means word i of the other.
XA = ["lantern", "kettle", "harbour", "pebble", "saddle", "orchid", "copper", "velvet", "walnut", "ferry"]
XB = ["tolo", "mirka", "pell", "dasun", "rive", "okto", "banu", "selk", "wira", "fjon"]
TINY = [
    "model=transformer_tiny",
    "model.d_model=16",
    "model.heads=2",
    "model.layers=1",
    "cleaning=none",
    "tokenizer.vocab_size=320",
    "trainer.updates=5",
    "scheduler.warmup=2",
    "trainer.validate_every=5",
    "batching.tokens=512",
    "batching.max_length=64",
    "metrics.bootstrap=0",
    "trainer.samples=0",
    "report.page=false",
    "report.plots=false",
    "trainer.device=cpu",
    "trainer.precision=fp32",
    "search.max_length_factor=0",
    "search.max_length_extra=2",  # untrained models do not end by themselves
]
COMMANDS = {
    "mt-train": train.run,
    "mt-translate": translate.run,
    "mt-eval": evaluate.run,
    "mt-serve": serve.run,
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, several processes for half a minute, so that no worker ends with it alone."""
    longest = ("test_ranks.py", "test_stream_ranks.py", "test_devices.py", "test_compilation.py")
    items.sort(key=lambda item: item.path.name not in longest)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what was not tested for lack of a package, and how to test it."""
    skipped = {
        report.nodeid for report in terminalreporter.stats.get("skipped", ()) if "tests/tracking" in report.nodeid
    }
    if skipped:
        trackers = [name for name in ("tensorboard", "wandb", "mlflow", "trackio") if not find_spec(name)]
        terminalreporter.write_line(
            f"not installed, and tested against fakes alone: {', '.join(trackers)}; bash scripts/test_trackers.sh "
            "tests the real ones"
        )


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """Here and in the processes that tests start: with several workers, threads wait for each other by spinning."""
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        yield


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache folder of the tests' own, here and in the processes that they start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True, scope="session")
def imports_are_no_garbage() -> None:
    """A full collection goes through all that torch and Hydra hold, a fifth of a second each time."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(autouse=True, scope="session")
def short_waits() -> Iterator[None]:
    """Few updates for an estimate of a training's time, and short translations in a validation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tolka.run.data_check._MAX_UPDATES", 3)
        short = partial(GreedyConfig, max_length_factor=1.0, max_length_extra=2)
        patch.setattr("tolka.run.training_setup.GreedyConfig", short)
        yield


@pytest.fixture(autouse=True, scope="session")
def asked_for_no_mode() -> Iterator[None]:
    """Hydra composes the settings a second time to ask which mode they name; here -m alone does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hydra._internal.hydra.Hydra.get_mode", lambda *arguments, **options: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def merged_once() -> Iterator[None]:
    """Hydra merges the files of configs/ once for each choice of them: most of the 0.2 s that composing takes.

    Single settings are applied to a copy. Nothing is shared where there is a folder of the user's own, but the text of
    a file is parsed once. Copies are pickled, which takes a ninth of the time of deepcopy.
    """
    parse, merge = OmegaConf.load, ConfigLoaderImpl._compose_config_from_defaults_list
    parsed: dict[str, bytes] = {}
    lists: dict[tuple[object, ...], DefaultsList] = {}
    merged: dict[int, bytes] = {}  # by the identity of a list of defaults, which `lists` keeps

    def parsed_once(file: TextIO) -> Any:
        text = file.read()
        if text not in parsed:
            parsed[text] = pickle.dumps(parse(io.StringIO(text)))
        return pickle.loads(parsed[text])

    def listed(repo: IConfigRepository, config_name: str, overrides_list: list[Override], **options: bool) -> Any:
        if any(source.provider not in ("hydra", "main", "schema") for source in repo.get_sources()):
            return create_defaults_list(repo, config_name, overrides_list, **options)
        given = [each for each in overrides_list if not each.is_sweep_override()]
        choices = [each for each in given if "." not in each.key_or_group]
        classes = str([presets_of_classes(group) for group in REGISTRIES])
        key = (config_name, *(each.input_line for each in choices), *options.values(), classes)
        if key not in lists:
            lists[key] = create_defaults_list(repo, config_name, choices, **options)
        values = [each for each in given if each not in choices or each in lists[key].config_overrides]
        return replace(lists[key], config_overrides=values)

    def merged_of(loader: ConfigLoaderImpl, defaults: list[Any], repo: IConfigRepository) -> Any:
        if not any(defaults is kept.defaults for kept in lists.values()):
            return merge(loader, defaults, repo)
        if id(defaults) not in merged:
            merged[id(defaults)] = pickle.dumps(merge(loader, defaults, repo))
        return pickle.loads(merged[id(defaults)])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OmegaConf, "load", parsed_once)
        patch.setattr("hydra._internal.config_loader_impl.create_defaults_list", listed)
        patch.setattr(ConfigLoaderImpl, "_compose_config_from_defaults_list", merged_of)
        yield


@dataclass(frozen=True)
class Outcome:
    """What a command left: its exit code, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The one line of complaint; a traceback, or a second complaint, is a failure of the test."""
        assert "Traceback" not in self.err
        lines = self.err.splitlines()
        assert [line for line in lines if line.startswith("error: ")] == lines[-1:], self.err
        return lines[-1].removeprefix("error: ")


Command = Callable[..., Outcome]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    """command("mt-translate", "model", "file", stdin=b"..."): run it here as the console script would."""

    def run(name: str, *arguments: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        sys.stderr.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # as Python opens it
        capsysbinary.readouterr()
        code = guarded(COMMANDS[name], [str(argument) for argument in arguments])
        written = capsysbinary.readouterr()
        return Outcome(code, written.out.decode(), written.err.decode())

    return run


def sentences(count: int, seed: int) -> list[tuple[str, str]]:
    """Pairs of three to six words, word for word."""
    draw = random.Random(seed)
    picks = [[draw.randrange(len(XA)) for _ in range(draw.randint(3, 6))] for _ in range(count)]
    return [(" ".join(XA[i] for i in row) + " .", " ".join(XB[i] for i in row) + " .") for row in picks]


def write_split(prefix: Path, pairs: Sequence[tuple[str, str]]) -> None:
    for side, language in enumerate(("xa", "xb")):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        Path(f"{prefix}.{language}").write_text(text, encoding="utf-8")


def write_corpus(folder: Path) -> Path:
    """train (60 pairs), valid and test (8 each), as .xa and .xb; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, count, seed in (("train", 60, 1), ("valid", 8, 2), ("test", 8, 3)):
        write_split(folder / name, sentences(count, seed))
    return folder


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A fresh corpus, to be spoilt by the test."""
    return write_corpus(tmp_path / "corpus")


def arguments_of(corpus: Path, run: Path) -> list[str]:
    """The arguments of mt-train for a training of a second."""
    names = [f"corpus.{split}={corpus / split}" for split in ("train", "valid", "test")]
    folders = [f"run.dir={run}", f"run.prepared={run.parent / 'prepared'}"]
    return [*TINY, "corpus=files", "corpus.source=xa", "corpus.target=xb", *names, *folders]


@pytest.fixture
def tiny(corpus: Path, tmp_path: Path) -> list[str]:
    """The arguments of mt-train for `corpus`; the run goes to tmp_path/run."""
    return arguments_of(corpus, tmp_path / "run")


@pytest.fixture
def without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the extra `plots` were not installed."""
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's folder, trained once; not to be changed."""
    folder = tmp_path_factory.mktemp("trained")
    assert guarded(train.run, arguments_of(write_corpus(folder / "corpus"), folder / "run")) == 0
    return folder / "run"


@pytest.fixture
def begun(trained: Path, tmp_path: Path) -> list[str]:
    """The arguments of mt-train that have trained tmp_path/run: a copy of `trained`, with its text."""
    shutil.copytree(trained, tmp_path / "run")
    return [*arguments_of(trained.parent / "corpus", tmp_path / "run"), f"run.prepared={trained.parent / 'prepared'}"]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands of a recipe's steps, which run in this process: one of their own takes seconds."""
    from tolka.recipes import steps

    names: list[str] = []
    commands: dict[str, Callable[[Sequence[str]], int]] = {"train": train.run, "translate": translate.run}

    def run(command: Sequence[str], lock: Path) -> None:
        names.append(command[0])
        if code := guarded(commands[command[0]], command[1:]):
            error = TolkaError("it has said why")
            error.reported, error.exit_code = True, code
            raise error

    monkeypatch.setattr(steps, "run_command", run)
    return names


@pytest.fixture
def compared(tiny: list[str]) -> list[str]:
    """The arguments of mt-train for a training of a second, with a test of significance."""
    kept = [each for each in tiny if not each.startswith("metrics.bootstrap")]
    return [*kept, "metrics.bootstrap=40", "report.plots=false"]


@pytest.fixture
def work() -> Iterator[Any]:
    """Let this machine have a GPU that only counts; what it is made to do."""
    from counting_gpu import counting_gpu

    with counting_gpu() as counted:
        yield counted
