"""Several ranks read one stream: the batches are those of one process, and each pair is cleaned once."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from stream_bench import BUFFERS, PAIRS, TEXT, Reader, drawn

from tolka.data import rewriting
from tolka.distributed.ranks import ALONE
from tolka.tokenizer.tokenizer import Tokenizer, TokenizerConfig
from tolka.tokenizer.training import train_tokenizer

BENCH = Path(__file__).parents[1] / "support" / "stream_bench.py"


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TokenizerConfig(vocab_size=330), lambda: iter(PAIRS), lambda remark: None)


def of_ranks(size: int, folder: Path) -> list[Any]:
    """What each of `size` processes found."""
    processes = [
        subprocess.Popen(
            [sys.executable, str(BENCH), str(rank), str(size), str(folder)], stderr=subprocess.PIPE, text=True
        )
        for rank in range(size)
    ]
    said = [process.communicate(timeout=180)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * size, said
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(size)]


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3])
def test_as_one_process(size: int, tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriting, "_CHUNK_PAIRS", 30)
    alone = Reader(tokenizer, ALONE).walk()
    assert alone["said"][0] == (
        "buffer 1 of the stream: 100 pairs, 96 kept, 4 left out: 1 blank source, 2 near duplicate, 1 over 60 tokens"
    )
    resumed = Reader(tokenizer, ALONE).walk(alone["middle"])["batches"]
    assert alone["batches"][-len(resumed) :] == resumed
    tokenizer.save(tmp_path)
    (tmp_path / "middle.json").write_text(json.dumps(alone["middle"]))
    ranks = of_ranks(size, tmp_path)
    for rank in ranks:
        assert rank["whole"] == alone  # the batches, the place in the middle, and what is said
        assert rank["resumed"] == resumed
        assert rank["drawn"] == drawn(tokenizer, ALONE)
        assert rank["error"] == "list, row 150: 7 is no text"
    assert sum(sum(rank["judged"]) for rank in ranks) == 100 + 100 + 5 + 100
    assert len(ranks[0]["judged"]) == BUFFERS
    assert len(TEXT) == 205
    back = Reader(tokenizer, ALONE).walk(ranks[0]["whole"]["middle"])["batches"]
    assert back == resumed
