"""Several processes train as one does: the same batches, the same losses, the same weights."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from ranks_bench import MODELS, losses, store

from tolka.data.buckets import BatchingConfig
from tolka.data.loader import Loader
from tolka.distributed.ranks import ALONE, Ranks

BENCH = Path(__file__).parents[1] / "support" / "ranks_bench.py"


TOLERANCE = {"float64": 1e-9, "float32": 1e-4}


def of_ranks(size: int, folder: Path, formats: Sequence[str]) -> Any:
    """The results of `size` processes."""
    processes = [
        subprocess.Popen(
            [sys.executable, BENCH, str(rank), str(size), folder / "meeting", folder / "out.json", *formats],
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    said = [process.communicate(timeout=180)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * size, said
    return json.loads((folder / "out.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "formats"),
    [
        (2, ["float64"]),
        pytest.param(2, ["float32"], marks=pytest.mark.slow),
        pytest.param(4, TOLERANCE, marks=pytest.mark.slow),
    ],
)
def test_as_one_process(size: int, formats: Sequence[str], tmp_path: Path) -> None:
    results = of_ranks(size, tmp_path, formats)
    ways = {"ddp": "Overlapped", "fsdp": "Sharded"}
    for model in MODELS:
        for name in formats:
            alone = losses(model, getattr(torch, name), ALONE)
            assert alone["losses"][-1] < 0.9 * alone["losses"][0]  # it learns
            for parallel, way in ways.items():
                ranks = results[f"{model} {name} {parallel}"]
                for rank in ranks:
                    assert rank["way"] == way
                    assert rank["losses"] == ranks[0]["losses"]
                    assert rank["weights"] == ranks[0]["weights"]
                assert ranks[0]["losses"] == pytest.approx(alone["losses"], rel=TOLERANCE[name])
                if name == "float64":
                    assert ranks[0]["weights"] == pytest.approx(alone["weights"], rel=1e-9, abs=1e-9)
                assert sum(rank["positions"] for rank in ranks) <= alone["positions"]
    assert results["after_nan"] == [[number != 4 for number in range(1, 9)]] * size
    whole, gathered, again = results["resaved"]
    assert whole == gathered == again
    straight, resumed = results["resumed"]
    assert straight == resumed
    assert all(rank == straight[0] for rank in straight)


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_a_batch_is_dealt_out_once(size: int) -> None:

    loader = Loader(store(), BatchingConfig(tokens=64, max_length=16), seed=3)
    for number, rows in enumerate(loader.plan(0)):
        whole = loader.batch(0, number)
        shares = [loader.share(0, number, Ranks(rank, size)) for rank in range(size)]
        assert {share.tokens for share in shares} == {whole.tokens}
        parts = [share.batch for share in shares if share.counts]
        assert sum(part.tokens for part in parts) == whole.tokens
        assert sum(len(part.source) for part in parts) == len(rows)
        assert len(parts) == min(size, len(rows))
        assert max(len(part.source) for part in parts) - min(len(part.source) for part in parts) <= 1


def test_in_one_process_there_is_nothing_to_sum() -> None:
    value = torch.ones(3)
    assert ALONE.sum(value).tolist() == [1.0, 1.0, 1.0]
    assert ALONE.is_first
    assert ALONE.gather("x") == ["x"]
    assert value.tolist() == [1.0, 1.0, 1.0]
