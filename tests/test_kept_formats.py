"""Model directories of every format that tolka has written are read, and translate as they did."""

import json
from pathlib import Path
from typing import Any

import pytest
from model_formats import samples

from tolka.model_directory.verify import FORMAT


def test_every_format_has_its_samples() -> None:
    kept = {folder.name for folder in samples.KEPT.iterdir() if (folder / "manifest.json").is_file()}
    assert kept == {f"{name}-{version}" for name in samples.NAMES for version in range(1, FORMAT + 1)}
    assert all(samples.format_of(samples.KEPT / name) == int(name.rpartition("-")[2]) for name in kept)
    # Weights in fp32, an adapter and a training state are kept with the runs that were left midway.
    assert samples.format_of(samples.TRAINED / "best") == FORMAT


@pytest.mark.parametrize("version", range(1, FORMAT + 1))
@pytest.mark.parametrize("name", samples.NAMES)
def test_a_model_of_an_earlier_format_translates_as_before(command: Any, name: str, version: int) -> None:
    if name == "ctranslate2":
        pytest.importorskip("ctranslate2")
    model = samples.KEPT / f"{name}-{version}"
    before = Path(f"{model}.xb").read_text(encoding="utf-8").splitlines()
    translated = command("mt-translate", str(model), str(samples.TEXT / "test.xa"))
    assert translated.code == 0, translated.err
    now = translated.out.splitlines()
    assert len(now) == len(before)
    # Another processor rounds otherwise, and a model that was trained for a minute is seldom sure.
    assert sum(one == other for one, other in zip(now, before, strict=True)) >= 15


def test_a_calibration_of_an_earlier_format_estimates_quality(command: Any) -> None:
    for version in range(1, FORMAT + 1):
        model = samples.KEPT / f"int8-{version}"
        written = command("mt-translate", str(model), str(samples.TEXT / "test.xa"), "output.format=jsonl")
        lines = [json.loads(line) for line in written.out.splitlines()]
        assert len(lines) == 20
        assert all(0 <= line["quality"]["chrf"] <= 100 for line in lines)
