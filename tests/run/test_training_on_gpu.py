"""A whole training on the device that only counts: validation, saving, testing, and going on."""

import json
from pathlib import Path
from typing import Any

import pytest
from counting_gpu import CUDA, counting_gpu

from tolka.distributed.ranks import Ranks
from tolka.errors import ConfigError
from tolka.losses.cross_entropy import Objective
from tolka.models.transformer.config import TransformerConfig
from tolka.system.device import Precision
from tolka.training.options import TrainerConfig
from tolka.training.parallel.choice import parallel_of


def test_a_training_validates_saves_goes_on_and_is_tested(command: Any, tiny: list[str], tmp_path: Path) -> None:
    settings = [*tiny, "trainer.device=cuda", "trainer.precision=auto", "trainer.log_every=1"]
    with counting_gpu() as work:
        first = command("mt-train", *settings)
        assert first.code == 0, first.err
        assert "bf16 (the GPU has bf16)" in first.err
        assert "GPU idle before" in first.err
        work.forget()
        again = command("mt-train", *settings, "trainer.updates=7")
        assert (again.code, "resuming from update 5" in again.err) == (0, True), again.err
        assert work.launches["_flash_attention_forward"]
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [line["update"] for line in lines if "train_loss" in line] == list(range(1, 8))
    # The model is an ordinary one, on the CPU as well.
    on_cpu = command("mt-translate", str(tmp_path / "run"), stdin=b"lantern ferry .\n")
    assert on_cpu.code == 0, on_cpu.err


def test_a_run_begun_in_fp16_is_not_gone_on_with_on_a_cpu(command: Any, tiny: list[str]) -> None:
    settings = [*tiny, "trainer.precision=auto", "trainer.device=cuda"]
    with counting_gpu(has_bf16=False):
        assert "fp16 (the GPU has no bf16" in command("mt-train", *settings).err
    outcome = command("mt-train", *settings[:-1], "trainer.device=cpu", "trainer.updates=7", "run.override=true")
    assert outcome.code == 2
    assert "begun in fp16 on a GPU, which a CPU does not train in" in outcome.error


def test_two_processes_on_one_gpu_are_told_so() -> None:
    class Two(Ranks):
        def gather(self, value: Any) -> list[Any]:
            return [value, value]

    with counting_gpu():
        model = TransformerConfig(d_model=16, heads=2, layers=1).build(20, 20, True).to(CUDA)
        with pytest.raises(ConfigError, match="have the same GPU"):
            parallel_of(TrainerConfig(), Objective(model, 0.0), Two(0, 2), Precision(CUDA, "bf16"))
