"""How a process sees that others were started with it: torchrun's variables, and Slurm's."""

import os

import pytest
import torch
from rows import each_row

from tolka.distributed.processes import process_count
from tolka.errors import ConfigError
from tolka.system.launch import Launch, first_host, is_muted, launch, translate_slurm

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
STEP = {  # as Slurm 22.05 sets them for the second of two tasks
    "SLURM_JOB_ID": "31",
    "SLURM_STEP_ID": "2",
    "SLURM_STEP_NUM_TASKS": "2",
    "SLURM_NTASKS": "2",
    "SLURM_PROCID": "1",
    "SLURM_LOCALID": "1",
    "SLURM_STEP_NODELIST": "node[03-04,7]",
}
TORCHRUN = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "MASTER_ADDR": "node03", "MASTER_PORT": "20312"}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the variables, also afterwards."""
    for name in (*NAMES, *STEP):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def set_all(monkeypatch: pytest.MonkeyPatch, values: dict[str, str]) -> None:
    for name, value in values.items():
        monkeypatch.setenv(name, value)


def test_alone_and_one_of_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")  # some clusters set it for other purposes
    assert launch() == Launch(0, 1, 0)
    assert not is_muted()
    set_all(monkeypatch, TORCHRUN)
    assert launch() == Launch(1, 2, 1)
    assert is_muted()
    monkeypatch.setenv("RANK", "0")
    assert not is_muted()


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"RANK": ""}, r"WORLD_SIZE is 2, but RANK is not set: start the processes with torchrun"),
        ({"RANK": "", "MASTER_PORT": ""}, r"RANK and MASTER_PORT are not set"),
        ({"RANK": "x"}, r"the environment variable RANK \(x\) must be a number of at least 0"),
        ({"RANK": "2"}, r"RANK \(2\) must be below WORLD_SIZE \(2\)"),
        ({"WORLD_SIZE": "0"}, r"the environment variable WORLD_SIZE \(0\) must be a number of at least 1"),
        ({"WORLD_SIZE": "-2"}, r"WORLD_SIZE \(-2\) must be"),
        ({"MASTER_PORT": "99999"}, r"MASTER_PORT \(99999\) must be from 1 to 65535"),
        ({"LOCAL_RANK": "gpu"}, r"LOCAL_RANK \(gpu\) must be"),
    ],
)
def test_what_torchrun_would_not_set(changed: dict[str, str], complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, {**TORCHRUN, **changed})
    with pytest.raises(ConfigError, match=complaint):
        launch()
    assert not is_muted()  # so that it is said


def test_a_task_of_srun(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, STEP)
    translate_slurm()
    assert {name: os.environ[name] for name in NAMES} == TORCHRUN
    monkeypatch.setenv("SLURM_PROCID", "0")
    translate_slurm()
    assert os.environ["RANK"] == "1"  # set before, by torchrun or by hand


def test_an_address_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, {**STEP, "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500"})
    translate_slurm()
    assert (os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]) == ("10.0.0.1", "29500")


@pytest.mark.parametrize("tasks", [None, "1"])
def test_a_batch_script_and_a_single_task_train_alone(tasks: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, STEP)
    monkeypatch.delenv("SLURM_STEP_NUM_TASKS")
    if tasks:
        monkeypatch.setenv("SLURM_STEP_NUM_TASKS", tasks)
    translate_slurm()
    assert launch() == Launch(0, 1, 0)


@each_row(
    ("nodes", "first"),
    [
        ("vm", "vm"),
        ("a,b", "a"),
        ("node[01-04,7]", "node01"),
        ("node[7,01-04],x", "node7"),
        ("rack[1-2]n[3-4],rack9n1", "rack1n3"),
        ("gpu[01-02]-ib", "gpu01-ib"),
        ("", ""),
    ],
)
def test_the_first_host(nodes: str, first: str) -> None:
    assert first_host(nodes) == first


def test_one_gpu_by_name_is_not_for_several_processes() -> None:
    with pytest.raises(ConfigError, match=r"trainer.device=cuda:1 is one GPU, and trainer.devices asks for 2"):
        process_count(2, torch.device("cuda:1"))
