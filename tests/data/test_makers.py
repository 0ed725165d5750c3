"""Of several processes that prepare one text the others wait, and whoever of them is killed, the store is the same."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from makers_bench import SHARD_PAIRS, STAGES, prepared

from tolka.data import preparation
from tolka.data.shards import Shard, Task
from tolka.errors import DataError
from tolka.text.cleaning.steps import CleaningConfig
from tolka.text.pairs import Pair

BENCH = Path(__file__).parents[1] / "support" / "makers_bench.py"


class Maker:
    """A process that prepares the corpus; see makers_bench.py."""

    def __init__(self, corpus: Path, *stages: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(BENCH), str(corpus), str(corpus / "together"), *stages],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def reaches(self, stage: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == f"{stage}\n", self.process.communicate()[1]

    def waits(self) -> None:
        assert self.process.stderr is not None
        assert self.process.stderr.readline() == "waiting for another process that prepares the same text\n"

    def ends(self) -> str:
        said = self.process.communicate(timeout=120)[1]
        assert self.process.returncode == 0, said
        return said

    def is_killed(self) -> None:
        self.process.kill()
        self.process.communicate()


def contents(cache: Path) -> dict[str, bytes]:
    """Every file of a cache."""
    return {str(path.relative_to(cache)): path.read_bytes() for path in cache.rglob("*") if path.is_file()}


@pytest.fixture
def of_one(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The store that one maker makes."""
    lines = [(corpus / f"train.{side}").read_text().splitlines(keepends=True) for side in ("xa", "xb")]
    for side, text in zip(("xa", "xb"), lines, strict=True):
        (corpus / f"train.{side}").write_text("".join([*text, "\n", text[5], text[40]]))  # blank, and twice
    monkeypatch.setattr(preparation, "SHARD_PAIRS", SHARD_PAIRS)
    prepared(corpus, corpus / "alone")
    return contents(corpus / "alone")


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["clean", *(pytest.param(each, marks=pytest.mark.slow) for each in STAGES)])
def test_one_that_waits_takes_over_from_one_that_is_killed(corpus: Path, of_one: dict[str, bytes], stage: str) -> None:
    maker = Maker(corpus, stage)
    maker.reaches(stage)
    others = Maker(corpus), Maker(corpus)
    for other in others:
        other.waits()
    maker.is_killed()
    for other in others:
        other.ends()
    found = contents(corpus / "together")
    leftover = [name for name in found if stage == "deliver" and ".partial/" in name]
    assert {name: content for name, content in found.items() if name not in leftover} == of_one


def test_those_that_wait_for_one_that_fails_have_the_error_too(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (corpus / "train.xa").write_text("\n \n")
    (corpus / "train.xb").write_text("a\nb\n")
    reads, waits = [], Event()
    read = preparation._Workshop.read

    def reading(workshop: Any) -> None:
        reads.append(workshop)
        assert waits.wait(timeout=60)
        read(workshop)

    monkeypatch.setattr(preparation._Workshop, "read", reading)

    def message(_: int) -> str:
        with pytest.raises(DataError) as raised:
            prepared(corpus, corpus / "together", lambda message: waits.set())
        return str(raised.value)

    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(message, range(2))
    why = "2 pairs, 0 kept, 2 left out: 2 blank source); most are left out (2) as 'blank source'"
    assert first == second == f"no training pair is left after cleaning ({why}"
    assert len(reads) == 2  # the one that waited has tried it again
    assert not list((corpus / "together").iterdir())


def test_a_step_counts_when_its_last_file_is_there(tmp_path: Path) -> None:
    shard = Shard(tmp_path / "shard")
    shard.write([Pair("a", "b"), Pair("", "d")])
    assert not shard.is_done("cleaned")
    shard.clean(Task(CleaningConfig(), 9, frozenset()))
    assert (shard.is_done("cleaned"), shard.is_done("encoded")) == (True, False)
