"""Steps: each is done once, and what it made is never overwritten by one with other inputs."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tolka.errors import ConfigError, DataError, TolkaError
from tolka.recipes.steps import Figures, Step, Steps, run_command


def copying(folder: Path, calls: list[str], name: str = "copy") -> Step:
    """A step that copies a file."""

    def copy() -> Figures:
        calls.append(name)
        (folder / name / "out").write_bytes((folder / "in").read_bytes())
        return {"words": "copied"}

    return Step(name, "copy it", [folder / "in"], [folder / name / "out"], do=copy, given={"option": 1})


def test_a_step_is_done_once_and_again_where_its_output_is_gone(tmp_path: Path) -> None:
    calls: list[str] = []
    (tmp_path / "in").write_text("a")
    said: list[str] = []
    steps = Steps(tmp_path, [copying(tmp_path, calls)], said.append)
    assert "0.0" not in steps.table()
    steps.run()
    steps.run()
    assert calls == ["copy"]
    assert said == ["step 1 of 1: copy it", "copied", "step 1 of 1: copy it: done before"]
    assert "0.0" in steps.table().splitlines()[2]
    assert steps.figures() == {"copy": {"words": "copied"}}
    for content in (None, "b"):
        (tmp_path / "copy" / "out").unlink()
        if content:
            (tmp_path / "copy" / "out").write_text(content)
        steps.run()
        assert (tmp_path / "copy" / "out").read_text() == "a"
    assert calls == ["copy"] * 3


def spoilt(record: str) -> list[str]:
    """What a record may become: empty, cut, of another kind, and with values that nobody wrote."""
    values = json.loads(record)
    others: tuple[object, ...] = (None, [], {}, "x", 3)
    edited = [{**values, key: other} for key in values for other in others]
    lacking = [{name: each for name, each in values.items() if name != key} for key in values]
    return ["", record[: len(record) // 2], "[]", "{}", "3", "[" * 9999, *map(json.dumps, [*edited, *lacking])]


def test_a_record_that_is_not_as_it_was_written_is_made_anew(tmp_path: Path) -> None:
    calls: list[str] = []
    (tmp_path / "in").write_text("a")
    steps = Steps(tmp_path, [copying(tmp_path, calls)], print)
    steps.run()
    whole = (tmp_path / "copy.json").read_text()
    for record in spoilt(whole):
        (tmp_path / "copy.json").write_text(record)
        calls.clear()
        assert "0.0" not in steps.table()
        steps.run()
        assert calls == ["copy"], record
    steps.run()
    assert calls == ["copy"]


def test_other_inputs_are_refused_in_the_same_folder(tmp_path: Path) -> None:
    calls: list[str] = []
    (tmp_path / "in").write_text("a")
    Steps(tmp_path, [copying(tmp_path, calls)], print).run()
    (tmp_path / "in").write_text("b")
    with pytest.raises(ConfigError, match=r"was made of other inputs \(.*/in\): choose another run\.name"):
        Steps(tmp_path, [copying(tmp_path, calls)], print).run()
    assert (tmp_path / "copy" / "out").read_text() == "a"
    assert calls == ["copy"]


def test_other_inputs_of_a_later_step_are_refused_before_the_first(tmp_path: Path) -> None:
    """And files in another order, or fewer of them, are other inputs."""
    done: list[str] = []

    def steps(names: list[str], option: int = 1) -> Steps:
        def do(name: str) -> Figures:
            done.append(name)
            (tmp_path / name).write_text("x")
            return {}

        first = Step("first", "", (), [tmp_path / "one"], do=lambda: do("one"), given={"number": len(done)})
        reads = [tmp_path / name for name in names]
        last = Step("last", "", reads, [tmp_path / "two"], do=lambda: do("two"), given={"option": option})
        return Steps(tmp_path, [first, last], print)

    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    steps(["a", "b"]).run()
    assert done == ["one", "two"]
    (tmp_path / "first.json").unlink()
    for names, option, words in ((["a", "b"], 2, "option"), (["b", "a"], 1, "other files"), (["a"], 1, "other files")):
        with pytest.raises(ConfigError, match=rf"last was made of other inputs \({words}\)"):
            steps(names, option).run()
    assert done == ["one", "two"]


def test_what_failed_may_be_tried_with_other_settings(tmp_path: Path) -> None:
    def step(fails: bool) -> Step:
        def do() -> Figures:
            if fails:
                raise DataError("no")
            return {}

        return Step("step", "", (), (), do=do, given={"fails": fails})

    with pytest.raises(DataError, match="no"):
        Steps(tmp_path, [step(True)], print).run()
    Steps(tmp_path, [step(False)], print).run()


def test_a_step_that_fails_or_leaves_nothing_is_not_done(tmp_path: Path) -> None:
    tries = []

    def fail() -> Figures:
        tries.append(1)
        raise DataError("no")

    steps = Steps(tmp_path, [Step("fails", "fail", (), (), do=fail)], print)
    for _ in range(2):
        with pytest.raises(DataError, match="no"):
            steps.run()
    assert len(tries) == 2
    empty = Step("empty", "write nothing", (), [tmp_path / "nothing"], do=dict)
    with pytest.raises(DataError, match="the step empty left no"):
        Steps(tmp_path, [empty], print).run()


@pytest.mark.slow
def test_a_command_that_fails_has_said_why_itself(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(TolkaError) as caught:
        run_command(["translate", "no-such-model"], tmp_path / "lock")
    assert (caught.value.reported, caught.value.exit_code) == (True, 1)
    assert capfd.readouterr().err.count("no-such-model") == 1
    run_command(["translate", "--version"], tmp_path / "lock")
    assert capfd.readouterr().err.count(".") == 2


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_command_ends_when_the_recipe_does(number: int, tmp_path: Path, tiny: list[str]) -> None:
    """Also where that is killed: the training saves its state, and ends."""
    settings = ["train", *tiny, "trainer.updates=100000", "trainer.validate_every=100000", "trainer.log_every=1"]
    program = (
        "from tolka.recipes.steps import run_command; from tolka.system import interrupts; import sys\n"
        "from pathlib import Path\n"
        "interrupts.listen()\n"
        "run_command(sys.argv[2:], Path(sys.argv[1]))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "lock"), *settings], stderr=subprocess.DEVNULL
    ) as parent:
        log = tmp_path / "run" / "metrics.jsonl"
        while not log.is_file() or log.stat().st_size < 100:
            assert parent.poll() is None
            time.sleep(0.05)
        os.kill(parent.pid, number)
    deadline = time.monotonic() + 60
    while not (tmp_path / "run" / "last" / "manifest.json").is_file():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    done = [json.loads(line)["update"] for line in log.read_text().splitlines() if "train_loss" in line]
    assert 0 < done[-1] < 100000
