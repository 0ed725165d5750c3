"""Statistics counted by several processes are those of one."""

import random

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from tolka.errors import TolkaError
from tolka.metrics import parallel
from tolka.metrics.line_statistics import line_statistics
from tolka.metrics.parallel import all_statistics
from tolka.system import child_processes

DRAW = random.Random(1)
REFERENCES, A, B = ([" ".join(DRAW.choices("abcdefgh", k=9)) for _ in range(31)] for _ in range(3))


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three cores, and few lines to a process."""
    monkeypatch.setattr(parallel, "cores", lambda: 3)
    monkeypatch.setattr(parallel, "_LINES_PER_PROCESS", 10)


@pytest.mark.slow
def test_the_counts_are_the_same_and_in_their_order(three: None) -> None:
    for metric in (BLEU(tokenize="13a", force=True), CHRF(word_order=2)):
        found = all_statistics(metric, [A, B], [REFERENCES, A])
        wanted = line_statistics(metric, [A, B], [REFERENCES, A])
        assert [each.tolist() for each in found] == [each.tolist() for each in wanted]
        assert found[0].dtype == np.int32
        assert metric.get_signature().info["nrefs"] == 2


def test_a_process_that_dies_is_told_of(three: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "start", lambda name, answers: child_processes.start("nowhere.at_all", (), answers))
    with pytest.raises(TolkaError, match=r"a process that counted n-grams ended: .*nowhere"):
        all_statistics(CHRF(), [A], [REFERENCES])


def test_a_stop_ends_the_others(three: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while this process counts its own part: it does not wait for the children."""
    started: list[child_processes.Child] = []

    def start(name: str, answers: bool) -> child_processes.Child:
        started.append(child_processes.start("timeit", ["-n", "1", "-r", "1", "import time; time.sleep(60)"], answers))
        return started[-1]

    def stop(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(parallel, "start", start)
    monkeypatch.setattr(parallel, "line_statistics", stop)
    with pytest.raises(KeyboardInterrupt):
        all_statistics(CHRF(), [A], [REFERENCES])
    assert [each.process.returncode for each in started] == [-9, -9]
