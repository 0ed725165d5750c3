"""The gate between torch and CTranslate2: what it compares, what it keeps, and who translates then."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from copying_model import TOKENIZER

pytest.importorskip("ctranslate2")

import tolka
from conftest import XA, Command
from tolka.engines import gate
from tolka.engines.engine import Engine, Rows
from tolka.engines.gate import difference, draw_sample, kept_difference
from tolka.errors import CheckpointError
from tolka.interchange.export_ctranslate2 import export_checked
from tolka.search.hypothesis import Hypothesis
from tolka.translation import opening

TEXTS = [" ".join(XA[start : start + 4]) for start in range(3)]
LIMIT = {"max_length_factor": 0, "max_length_extra": 4}
SHORT, SHORT_BEAM = {"search": {**LIMIT, "name": "greedy"}}, {**LIMIT, "name": "beam", "beam_size": 2}


class Copies(Engine):
    """Copies each source, or says 5 for the first `wrong` of them; each token has the probability exp(-nll)."""

    cpu_threads = 1

    def __init__(self, wrong: int = 0, nll: float = 0.5, dtype: str = "float32") -> None:
        self.wrong, self.nll, self.translator = wrong, nll, SimpleNamespace(compute_type=dtype)

    def translate(self, search: Any, sources: Rows, *_: Any, **tags: Any) -> list[list[Hypothesis]]:
        return [[Hypothesis([5] if n < self.wrong else row, 0.0, 0.0, True)] for n, row in enumerate(sources)]

    def score(self, sources: Rows, targets: Rows, *_: Any) -> list[list[float]]:
        return [[-self.nll] * len(row) + [-99.0] for row in targets]

    side_by_side = free_memory = None  # type: ignore[assignment]


def compared(weights: str = "float32", **options: Any) -> str:
    sample = json.loads(json.dumps(draw_sample(Copies(), Copies(), TOKENIZER)))
    return difference(Copies(**options), TOKENIZER, sample, weights)  # type: ignore[arg-type]


def test_one_of_64_translations_may_differ_in_float32() -> None:
    assert compared() == compared(wrong=1) == ""
    assert compared(wrong=2) == "62 of 64 lines of a sample are identical (at least 98% must be)"
    assert compared(wrong=64, dtype="int8") == compared(wrong=64, weights="bfloat16") == ""


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_the_nll_may_grow_by_a_two_hundredth_of_a_nat_a_token(dtype: str) -> None:
    """`</s>` does not count; a smaller nll is no loss."""
    assert compared(nll=0.5049, dtype=dtype) == compared(nll=0.4, dtype=dtype) == ""
    assert compared(nll=0.506, dtype=dtype) == "the nll of a sample is 0.0060 nats a token higher (at most 0.005)"
    assert "nan" in compared(nll=math.nan, dtype=dtype)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tolka" / "ctranslate2"


def test_a_model_is_compared_once_on_each_processor(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def compare() -> str:
        calls.append("x")
        return "it differs"

    for model, precision in (("a", "auto"), ("a", "auto"), ("b", "auto"), ("a", "int8")):
        assert kept_difference(model, precision, compare) == "it differs"
    assert len(calls) == len(list(cache.iterdir())) == 3
    for path in cache.iterdir():  # not a cache that can be read
        path.write_text("[" if len(calls) else "")
    kept_difference("a", "auto", compare)
    kept_difference("a", "auto", compare)
    assert len(calls) == 4
    monkeypatch.setattr(gate, "here", lambda: "another processor")
    kept_difference("a", "auto", compare)
    assert len(calls) == 5


@pytest.mark.parametrize("kind", ["a file", "no home"])
def test_without_a_cache_folder_it_compares_each_time(
    cache: Path, kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if kind == "a file":
        (tmp_path / "cache").write_text("")
    else:
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setattr(os.path, "expanduser", lambda path: path)
        monkeypatch.chdir(tmp_path)
    answers = iter(["", "it differs"])
    assert [kept_difference("a", "auto", lambda: next(answers)) for _ in range(2)] == ["", "it differs"]
    assert not list(tmp_path.glob("~*"))


def test_the_processor_is_its_name_and_instructions() -> None:
    import ctranslate2

    assert gate.here() == gate.here()
    assert gate.here().endswith(f"), CTranslate2 {ctranslate2.__version__}")


Opened = tuple[Callable[..., Any], list[str], list[str]]


@pytest.fixture
def opened(trained: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Opens the model; lists of the models that torch has loaded, and of notes."""
    loaded: list[str] = []
    notes: list[str] = []
    with_torch = opening._with_torch

    def counted(folders: Any, *rest: Any) -> Any:
        loaded.append(str(folders))
        return with_torch(folders, *rest)

    monkeypatch.setattr(opening, "_with_torch", counted)
    return (
        lambda **decoding: tolka.load(trained, SHORT, decoding={"device": "cpu", **decoding}, say=notes.append),
        loaded,
        notes,
    )


def test_torch_is_loaded_the_first_time_alone(opened: Opened, trained: Path) -> None:
    load, loaded, notes = opened
    expected = load(backend="torch")(TEXTS)
    for torchs in (2, 2):
        translator = load()
        assert "CTranslate2" in repr(translator.engine)
        assert translator(TEXTS) == expected
        assert len(loaded) == torchs
    assert translator.verdict == tolka.load(trained, decoding={"backend": "torch"}).verdict is not None
    assert notes == []


def test_what_differs_is_translated_with_torch(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    load, _, notes = opened
    monkeypatch.setattr(opening, "difference", lambda *_: "all lines differ")
    for number in (1, 2):
        assert "Transformer" in repr(load().engine)
        assert notes == ["note: translating with torch, and not with CTranslate2: all lines differ"] * number


@pytest.mark.parametrize("kind", ["a GPU", "large", "no space"])
def test_auto_is_torch(opened: Opened, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    load, _, notes = opened
    if kind == "a GPU":
        monkeypatch.setattr("ctranslate2.get_cuda_device_count", lambda: 1)
    elif kind == "large":
        monkeypatch.setattr(opening, "_MOST_BYTES", 1000)
    else:

        def fill(*arguments: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(opening, "write_folder_apart", fill)
    assert "CTranslate2" not in repr(load(device="auto").engine)
    assert len(notes) == (kind == "no space")


REQUESTS = [
    tolka.Request(SHORT_BEAM, glossary={"kettle": "mirka"}),
    tolka.Request(SHORT_BEAM, banned=["mirka"]),
    tolka.Request({**SHORT_BEAM, "min_length": 3}),
    tolka.Request({**SHORT_BEAM, "no_repeat_ngram": 1}),
    tolka.Request({**LIMIT, "name": "mbr", "samples": 3}),
    tolka.Request({**LIMIT, "name": "sampling", "seed": 3}),
]


def test_what_ctranslate2_lacks_is_asked_of_torch(opened: Opened, trained: Path) -> None:
    """It is loaded with the first such request, once; other directions' translators share it."""
    load, loaded, _ = opened
    torchs, translator = load(backend="torch"), load()
    before = len(loaded)
    assert translator(TEXTS) == torchs(TEXTS)
    assert len(loaded) == before
    for request in REQUESTS:
        expected = [each.text for each in torchs.translate(TEXTS, request)]
        assert [each.text for each in translator.translate(TEXTS, request)] == expected
    assert translator.for_direction(translator.direction)(TEXTS, REQUESTS[0]) == torchs(TEXTS, REQUESTS[0])
    assert len(loaded) == before + 1


def test_an_exported_folder_proves_itself_on_another_processor(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    export_checked(trained, tmp_path / "out", lines=TEXTS)
    seen: list[str] = []

    def counted(*arguments: Any) -> str:
        seen.append(difference(*arguments))
        return seen[-1]

    monkeypatch.setattr(opening, "difference", counted)
    tolka.load(tmp_path / "out")
    assert seen == []
    monkeypatch.setattr(opening, "here", lambda: "another processor")
    tolka.load(tmp_path / "out")
    assert seen == [""]
    monkeypatch.setattr(gate, "NLL_GROWTH", -1.0)
    with pytest.raises(CheckpointError, match="translates otherwise here"):
        tolka.load(tmp_path / "out")
    outcome = command("mt-translate", tmp_path / "out", stdin=b"kettle\n")
    assert outcome.code == 1
    assert "otherwise here (another processor) than where it was exported (" in outcome.error
    assert "export the model here, or translate with the model itself" in outcome.error


def test_without_torch_a_model_directory_is_refused_in_one_line(trained: Path, cache: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None; import tolka\n"
        "for name in sys.argv[1:]:\n"
        "    try: tolka.load(name)\n"
        "    except tolka.TolkaError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, trained, trained / "missing"], capture_output=True, text=True, check=True
    )
    refused, missing = done.stdout.splitlines()
    assert "takes torch, which is not installed" in refused
    assert "there is no such model directory" in missing
