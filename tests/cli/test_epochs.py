"""trainer.epochs: how long a training is when passes over the text are counted, and what ends with it."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from tolka.config.command_line import train_config
from tolka.errors import ConfigError
from tolka.run.training_setup import with_updates_of_epochs

Command = Callable[..., Any]


class FourBatches:
    """A loader whose epochs have four batches."""

    round = "epoch"

    def plan(self, epoch: int) -> list[int]:
        return [0] * 4


FOUR: Any = FourBatches()


def resolved(*settings: str, loader: Any = FOUR) -> Any:
    always = ["trainer.epochs=2.5", "scheduler=linear"]
    config = train_config([*always, *settings])
    options, schedule = with_updates_of_epochs(config.trainer, config.scheduler, loader)
    return replace(config, trainer=options, scheduler=schedule)


def test_epochs_are_updates_and_the_schedule_ends_with_them() -> None:
    ten = resolved()
    assert (ten.trainer.updates, ten.scheduler.horizon) == (10, 10)
    assert ten.scheduler.warmup == 1  # a tenth, as the default would never reach its peak
    assert ten.scheduler.rate(10, 1.0) == pytest.approx(ten.scheduler.floor)
    assert resolved("trainer.accumulate=3").trainer.updates == math.ceil(10 / 3)
    assert resolved("scheduler.horizon=500", "scheduler.warmup=3").scheduler.horizon == 500
    decay = resolved("scheduler=wsd").scheduler  # at a plateau, or in time to end with the epochs
    assert [decay.paced(step, 0.0, 10).rate(step, 1.0) for step in (8, 10)] == pytest.approx([1.0, 0.01])


def test_whichever_of_updates_and_epochs_is_over_first() -> None:
    assert (resolved("trainer.updates=7").trainer.updates, resolved("trainer.updates=7").trainer.epochs) == (7, 0.0)
    assert (resolved("trainer.updates=70").trainer.updates, resolved("trainer.updates=70").trainer.epochs) == (10, 2.5)
    assert train_config(["experiment=sample", "trainer.epochs=3"]).trainer.updates == 0  # the recipe's are not typed
    assert train_config(["experiment=sample"]).trainer.updates == 1250


def test_what_epochs_do_not_go_with() -> None:
    with pytest.raises(ConfigError, match=r"the end of a stream is not known"):
        train_config(["corpus=hub", "corpus.path=a/b", "corpus.streaming=true", "trainer.epochs=1"])
    with pytest.raises(ConfigError, match=r"trainer\.updates \(0\) must be at least 1"):
        train_config(["trainer.updates=0"])
    with pytest.raises(ConfigError, match=r"trainer\.epochs \(-1\.0\) must be 0 \(no limit\) or more"):
        train_config(["trainer.epochs=-1", "trainer.updates=5"])


def lines(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_a_longer_training_resumes_and_equals_an_uninterrupted_one(
    command: Command, tiny: list[str], tmp_path: Path
) -> None:
    always = [each for each in tiny if not each.startswith("trainer.updates")] + ["trainer.log_every=1"]
    first = command("mt-train", *always, "trainer.epochs=1")
    batches = int(first.err.split("batches: ")[1].split()[0])
    assert f"trainer.epochs=1: {batches} updates" in first.err
    assert f"training ends at update {batches}: trainer.epochs (1) are done; raise it to continue" in first.err
    again = command("mt-train", *always, "trainer.epochs=2")
    assert f"resuming from update {batches}" in again.err
    assert lines(tmp_path / "run")[-1]["update"] == 2 * batches
    whole = command("mt-train", *always, "trainer.epochs=2", f"run.dir={tmp_path / 'whole'}")
    assert whole.code == 0
    one, other = (load_file(tmp_path / name / "last" / "model.safetensors") for name in ("run", "whole"))
    assert all((one[name] == other[name]).all() for name in one)
