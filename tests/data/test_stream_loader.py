"""A text that is never stored trains in buffers, the same ones wherever it is entered."""

import json
from pathlib import Path
from typing import Any

import pytest

from tolka.data.buckets import BatchingConfig
from tolka.data.shards import Task
from tolka.data.stream_loader import StreamLoader
from tolka.errors import ConfigError, DataError
from tolka.text.cleaning.steps import CleaningConfig
from tolka.text.corpora.hub import HubConfig
from tolka.text.pairs import Pair, PairStream
from tolka.tokenizer.tokenizer import Tokenizer, TokenizerConfig
from tolka.tokenizer.training import train_tokenizer

WORDS = ["lantern", "kettle", "harbour", "pebble", "saddle", "orchid"]
TEXT = [Pair(f"{WORDS[i % 6]} {i}", f"{WORDS[i * 5 % 6].upper()} {i}") for i in range(50)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TokenizerConfig(vocab_size=330), lambda: iter(TEXT), lambda remark: None)


def data_set(folder: Path, pairs: list[Pair]) -> Path:
    """Two files of training text and one to validate on."""
    folder.mkdir(exist_ok=True)
    rows = [json.dumps({"translation": {"xa": pair.source, "xb": pair.target}}) + "\n" for pair in pairs]
    (folder / "train-0.jsonl").write_text("".join(rows[:30]))
    (folder / "train-1.jsonl").write_text("".join(rows[30:]))
    (folder / "validation.jsonl").write_text("".join(rows[:4]))
    (folder / "test.jsonl").write_text("".join(rows[:3]))
    return folder


def stream(folder: Path) -> PairStream:
    config = HubConfig(source="xa", target="xb", path=str(folder), streaming=True, buffer=20)
    found = config.open().stream
    assert found is not None
    return found


def loader(folder: Path, tokenizer: Tokenizer, log: Any = lambda line: None, **cleaning: Any) -> StreamLoader:
    task = Task(CleaningConfig(**cleaning), 60, frozenset())
    return StreamLoader(stream(folder), tokenizer, task, BatchingConfig(tokens=64, max_length=60), 1, 20, log)


def texts(found: StreamLoader, tokenizer: Tokenizer, number: int) -> list[str]:
    """What the batches of a buffer hold, in their order."""
    made = [found.batch(number, place) for place in range(len(found.plan(number)))]
    rows = [row[row > 3].tolist() for batch in made for row in batch.target_out]
    return tokenizer.decode_target(rows)


def test_buffers_hold_the_text_in_turn_and_begin_anew(tmp_path: Path, tokenizer: Tokenizer) -> None:
    found = loader(data_set(tmp_path, TEXT), tokenizer)
    expected = [pair.target for pair in TEXT]
    buffers = [texts(found, tokenizer, number) for number in range(4)]
    assert [sorted(buffer) for buffer in buffers] == [
        sorted(part) for part in (expected[:20], expected[20:40], expected[40:], expected[:20])
    ]
    assert buffers[0] != expected[:20]  # shuffled
    assert buffers[3] != buffers[0]  # otherwise each time


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_a_stream_is_entered_where_it_was_left(tmp_path: Path, tokenizer: Tokenizer, number: int) -> None:
    folder = data_set(tmp_path, TEXT)
    walked = loader(folder, tokenizer)
    for earlier in range(number + 1):
        walked.plan(earlier)
    saved = json.loads(json.dumps(walked.state()))
    entered = loader(folder, tokenizer)
    entered.load_state(saved)
    assert texts(entered, tokenizer, number) == texts(walked, tokenizer, number)
    assert texts(entered, tokenizer, number + 1) == texts(walked, tokenizer, number + 1)
    beyond = loader(folder, tokenizer)
    beyond.load_state(saved)
    assert texts(beyond, tokenizer, number + 1) == texts(walked, tokenizer, number + 1)


def test_a_second_loader_of_one_stream_begins_at_its_beginning(tmp_path: Path, tokenizer: Tokenizer) -> None:
    """As after timing some updates."""
    shared = stream(data_set(tmp_path, TEXT))
    task = Task(CleaningConfig(), 60, frozenset())
    config = BatchingConfig(tokens=64, max_length=60)
    first, second = (StreamLoader(shared, tokenizer, task, config, 1, 20, lambda line: None) for _ in range(2))
    assert texts(first, tokenizer, 0) == texts(second, tokenizer, 0)
    assert texts(first, tokenizer, 1) == texts(second, tokenizer, 1)


def test_what_is_left_out_is_counted_for_each_buffer(tmp_path: Path, tokenizer: Tokenizer) -> None:
    pairs = [*TEXT[:5], Pair("", "x"), TEXT[0], Pair("kettle", "KETTLE " * 61), *TEXT[5:]]
    said: list[str] = []
    loader(data_set(tmp_path, pairs), tokenizer, said.append, duplicates="exact").plan(0)
    assert said == [
        "buffer 1 of the stream: 20 pairs, 17 kept, 3 left out: 1 blank source, 1 duplicate, 1 over 60 tokens"
    ]


def test_a_stream_of_nothing_ends_in_one_line(tmp_path: Path, tokenizer: Tokenizer) -> None:
    with pytest.raises(DataError, match="of 10 buffers of train one after the other no pair was kept"):
        loader(data_set(tmp_path, [Pair("a", "")] * 50), tokenizer).plan(0)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"path": ""}, "corpus.streaming=true reads a data set"),
        ({"train": ["a", "b"]}, "a stream is of one split"),
        ({"buffer": 0}, "corpus.buffer"),
    ],
)
def test_settings_that_make_no_stream(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        HubConfig(source="xa", target="xb", **{"path": "x", "streaming": True, **options})


def test_it_goes_back_over_buffers_that_it_has_left(tmp_path: Path, tokenizer: Tokenizer) -> None:
    found = loader(data_set(tmp_path, TEXT), tokenizer)
    place, first = found.state(), texts(found, tokenizer, 0)
    for number in (1, 2):
        found.plan(number)
    found.load_state(place)
    assert texts(found, tokenizer, 0) == first
