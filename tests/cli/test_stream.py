"""mt-train on a stream: it trains, stops and goes on as if it had not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

Command = Callable[..., Any]


def test_a_streamed_data_set_trains_and_goes_on_where_it_stopped(
    command: Command, tiny: list[str], corpus: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    for split, name in (("train", "train"), ("valid", "validation"), ("test", "test")):
        sides = [(corpus / f"{split}.{language}").read_text().splitlines() for language in ("xa", "xb")]
        rows = [json.dumps({"xa": a, "xb": b}) for a, b in zip(*sides, strict=True)]
        (folder / f"{name}.jsonl").write_text("\n".join(rows))
    kept = [word for word in tiny if not word.startswith(("corpus.train", "corpus.valid", "corpus.test", "run.dir"))]
    streamed = [
        *kept,
        *("corpus=hub", f"corpus.path={folder}", "corpus.streaming=true", "corpus.buffer=16"),
        *("batching.tokens=100", "trainer.validate_every=3", "trainer.updates=12"),
    ]
    whole = command("mt-train", *streamed, f"run.dir={tmp_path / 'whole'}")
    assert whole.code == 0, whole.err
    assert "buffer 2 of the stream: 16 pairs, 16 kept" in whole.err
    first = command("mt-train", *streamed, f"run.dir={tmp_path / 'parts'}", "trainer.updates=6")
    assert first.code == 0, first.err
    second = command("mt-train", *streamed, f"run.dir={tmp_path / 'parts'}")
    assert second.code == 0, second.err
    assert "resuming from update 6" in second.err
    weights = [load_file(tmp_path / name / "last" / "model.safetensors") for name in ("whole", "parts")]
    assert all(weights[0][name].equal(weights[1][name]) for name in weights[0])
