"""A whole training on the device that only counts: validation, saving, testing, and going on."""

import json
from pathlib import Path
from typing import Any

from counting_gpu import counting_gpu


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
