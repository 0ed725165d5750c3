"""The trainings of an experiment are kept, and its text is drawn once."""

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import arguments_of, write_corpus

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def kept_runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import kept_runs

    yield kept_runs
    del sys.modules["kept_runs"]


def test_the_same_pairs_are_drawn_and_a_finished_training_is_not_repeated(kept_runs: object, tmp_path: Path) -> None:
    from kept_runs import cell, signatures, trained, write_pairs

    (tmp_path / "a.en").write_text("".join(f"{n}\n" for n in range(100)), encoding="utf-8")
    (tmp_path / "a.de.gz").write_bytes(gzip.compress("".join(f"-{n}\n" for n in range(100)).encode()))
    files = [tmp_path / "a.en", tmp_path / "a.de.gz"]
    prefix = write_pairs(files, ("en", "de"), tmp_path / "out" / "some", 10)
    source, target = (Path(f"{prefix}.{language}").read_text().split() for language in ("en", "de"))
    assert len(source) == 10
    assert target == [f"-{number}" for number in source]
    again = write_pairs(files, ("en", "de"), tmp_path / "out" / "again", 10)
    assert Path(f"{again}.en").read_text().split() == source
    settings = [
        each for each in arguments_of(write_corpus(tmp_path / "corpus"), tmp_path) if not each.startswith("run.dir")
    ]
    result = trained(tmp_path / "run", settings)
    assert cell(result["tests"]["test"]).startswith("BLEU ")
    assert all("version" in each for each in signatures([result, result]))
    log = (tmp_path / "run" / "train.log").read_bytes()
    assert trained(tmp_path / "run", settings) == result
    assert (tmp_path / "run" / "train.log").read_bytes() == log
