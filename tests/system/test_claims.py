"""Jobs that are shared out by files: one process each, and of the dead to the living."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tolka.system.claims import Member, alone, member

linux = pytest.mark.skipif(not Path("/proc/self/ns/pid").exists(), reason="tells the dead by /proc")
JOINS = "import sys; from pathlib import Path; from tolka.system import claims\n"
CLAIMS = JOINS + (
    "found = claims.Member(Path(sys.argv[1]), 'other'); found._join(); found.claim('job'); print(flush=True); input()"
)


def test_one_at_a_time_and_no_file_left(tmp_path: Path) -> None:
    inside, most, waits = [], [], []

    def enter(number: int) -> None:
        for _ in range(20):
            with alone(tmp_path / "lock", lambda: waits.append(number)):
                inside.append(number)
                most.append(len(inside))
                time.sleep(0.001)
                inside.remove(number)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(enter, range(4)))
    assert len(most) == 80
    assert set(most) == {1}
    assert waits
    assert not list(tmp_path.iterdir())


def test_a_job_is_claimed_once_and_is_free_when_its_member_has_left(tmp_path: Path) -> None:
    folder = tmp_path / "jobs"
    with member(folder) as first:
        with member(folder) as second:
            assert second.claim("a")
            assert not first.claim("a")
            assert not second.claim("a")
            assert first.claim("b")
        with ThreadPoolExecutor(8) as threads:
            assert sum(threads.map(lambda _: first.claim("a"), range(8))) == 1
    assert not folder.exists()


@linux
def test_the_jobs_of_a_killed_process_are_free_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "jobs"
    with member(folder) as found:
        process = subprocess.Popen(
            [sys.executable, "-c", CLAIMS, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline()
        assert not found.claim("job")
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it stays in the table of processes
        assert found.claim("job")
        process.communicate()
    assert not folder.exists()


def looks_until_claimed(found: Member, now: list[float]) -> int:
    """How often a member looked, five seconds apart, before it could claim the job."""
    looks = 0
    while not found.claim("job"):
        now[0] += 5
        looks += 1
        assert looks < 100
    return looks


def test_a_member_of_another_machine_is_dead_when_it_no_longer_touches_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("tolka.system.claims.time.monotonic", lambda: now[0])
    with member(tmp_path / "jobs") as found:
        far = Member(tmp_path / "jobs", "far")
        assert far.claim("job")
        file = tmp_path / "jobs" / "member-far"
        file.write_text(json.dumps(["another machine", os.getpid(), "1"]))
        for beat in range(30):  # alive, however long
            os.utime(file, ns=(beat, beat))
            now[0] += 30
            assert not found.claim("job")
        now[0] += 600  # a file system that hung: nobody could touch anything
        assert not found.claim("job")
        assert looks_until_claimed(found, now) == 12
        assert not found.claim("job")


def test_a_claim_without_a_name_is_of_one_who_died_while_writing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("tolka.system.claims.time.monotonic", lambda: now[0])
    with member(tmp_path / "jobs") as found:
        (tmp_path / "jobs" / "job.0").touch()
        assert looks_until_claimed(found, now) > 10
