"""Several processes prepare one text together, and whoever of them is killed, the store is the same."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from makers_bench import SHARD_PAIRS, prepared

from tolka.data import preparation, workers
from tolka.data.shards import Shard, Task
from tolka.errors import DataError
from tolka.text.cleaning.steps import CleaningConfig
from tolka.text.pairs import Pair

BENCH = Path(__file__).parents[1] / "support" / "makers_bench.py"
linux = pytest.mark.skipif(not Path("/proc/self/ns/pid").exists(), reason="tells the dead by /proc")


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

    def helps(self) -> None:
        assert self.process.stderr is not None
        assert self.process.stderr.readline() == "helping another process that prepares the same text\n"

    def goes_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

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


@linux
def test_a_helper_and_the_leader_are_killed(corpus: Path, of_one: dict[str, bytes]) -> None:
    leader = Maker(corpus, "read", "clean")
    leader.reaches("read")
    helper, last = Maker(corpus, "clean"), Maker(corpus, "clean")
    for maker in (helper, last):
        maker.helps()
    leader.goes_on()
    for maker in (leader, helper, last):  # each holds a shard: otherwise the last one could clean all before the others
        maker.reaches("clean")
    helper.is_killed()
    leader.is_killed()
    last.goes_on()
    assert "continuing with what was prepared before an interruption" in last.ends()
    found = contents(corpus / "together")
    assert found == of_one
    assert {Path(name).name for name in found} >= {"tokenizer.model", "source.ids", "report.json", "rejected.tsv"}
    assert len(list((corpus / "together").iterdir())) == 1  # no files of makers


@linux
@pytest.mark.slow
@pytest.mark.parametrize("stage", ["read", "clean", "train", "encode", "deliver"])
def test_the_leader_is_killed_in(corpus: Path, of_one: dict[str, bytes], stage: str) -> None:
    leader = Maker(corpus, stage)
    leader.reaches(stage)
    helpers = Maker(corpus), Maker(corpus)
    for helper in helpers:
        helper.helps()
    leader.is_killed()
    for helper in helpers:
        helper.ends()
    found = contents(corpus / "together")
    leftover = [name for name in found if stage == "deliver" and ".partial/" in name]  # as of a single maker
    assert {name: content for name, content in found.items() if name not in leftover} == of_one


@linux
@pytest.mark.slow
@pytest.mark.parametrize("stage", ["clean", "encode"])
def test_a_helper_is_killed_in(corpus: Path, of_one: dict[str, bytes], stage: str) -> None:
    leader = Maker(corpus, "read", stage)
    leader.reaches("read")
    helper = Maker(corpus, stage)
    helper.helps()
    leader.goes_on()
    for maker in (leader, helper):
        maker.reaches(stage)
    helper.is_killed()
    leader.goes_on()
    leader.ends()
    assert contents(corpus / "together") == of_one


def test_an_error_ends_all_makers_and_the_text_is_read_once(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (corpus / "train.xa").write_text("\n \n")
    (corpus / "train.xb").write_text("a\nb\n")
    reads, helps = [], Event()
    read, help_ = preparation._Workshop.read, preparation._Workshop.help

    def reading(workshop: Any) -> None:
        reads.append(workshop)
        assert helps.wait(timeout=60)
        read(workshop)

    def helping(workshop: Any) -> None:
        helps.set()
        help_(workshop)

    monkeypatch.setattr(preparation._Workshop, "read", reading)
    monkeypatch.setattr(preparation._Workshop, "help", helping)

    def message(_: int) -> str:
        with pytest.raises(DataError) as raised:
            prepared(corpus, corpus / "together")
        return str(raised.value)

    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(message, range(2))
    why = "2 pairs, 0 kept, 2 left out: 2 blank source); most are left out (2) as 'blank source'"
    assert first == second == f"no training pair is left after cleaning ({why}"
    assert len(reads) == 1
    assert not list((corpus / "together").iterdir())
    with pytest.raises(DataError):  # and the next one starts anew
        prepared(corpus, corpus / "together")
    assert len(reads) == 2


def test_a_step_counts_only_when_its_pairs_add_up(tmp_path: Path) -> None:
    shard = Shard(tmp_path / "shard")
    shard.write([Pair("a", "b"), Pair("", "d")])
    assert not shard.is_done("clean")
    shard.clean(Task(CleaningConfig(), ("en", "de"), 9, frozenset()))
    assert shard.is_done("clean")
    assert not Shard(shard.folder, 3).is_done("clean")
    assert not shard.is_done("encode")
    tally = (shard.folder / "cleaned.json").read_text()
    for damaged in ("", "{}", tally.replace('"kept": 1', '"kept": 2')):
        (shard.folder / "cleaned.json").write_text(damaged)
        assert not shard.is_done("clean")


@pytest.mark.parametrize(("asked", "ranks", "each"), [(8, "1", 8), (8, "3", 2), (1, "4", 1)])
def test_the_ranks_of_a_machine_divide_its_processes(
    asked: int, ranks: str, each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", ranks)
    assert workers.process_count(asked) == each
