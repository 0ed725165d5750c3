"""Reads a stream's batches in this process, or as one rank of several; see test_stream_ranks.py."""

import json
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist

from tolka.data import rewriting, stream_loader
from tolka.data.buckets import BatchingConfig
from tolka.data.rewriting import SubwordSampler
from tolka.data.shards import Task
from tolka.data.store import TokenStore
from tolka.data.stream_loader import StreamLoader
from tolka.distributed.ranks import Ranks
from tolka.errors import DataError
from tolka.text.cleaning.cleaner import judge
from tolka.text.cleaning.steps import CleaningConfig
from tolka.text.direction import Direction
from tolka.text.pairs import Pair, PairStream
from tolka.tokenizer.tokenizer import Tokenizer

WORDS = ["lantern", "kettle", "harbour", "pebble", "saddle", "orchid"]
PAIRS = [Pair(f"{WORDS[i % 6]} {i % 97}", f"{WORDS[i * 5 % 6].upper()} {i % 97}") for i in range(200)]
# Blank, too long, and duplicates of a pair that is in another rank's part.
TEXT = [*PAIRS[:50], Pair("", "x"), PAIRS[0], PAIRS[0], Pair("kettle", "KETTLE " * 61), *PAIRS[50:], Pair("x", "")]
BUFFER, BUFFERS = 100, 4  # of 205 pairs: two whole ones, five pairs, and the first ones again
MIDDLE = 1, 2  # buffer and batch


class ListStream(PairStream):
    """The pairs of a list. broken: where this rank cannot read any further."""

    name, direction = "list", Direction("xa", "xb")

    def __init__(self, broken: int = -1) -> None:
        self._place, self._broken = 0, broken

    def take(self, count: int) -> list[Pair]:
        found = TEXT[self._place : self._place + count]
        self._place = (self._place + len(found)) % len(TEXT)
        if self._broken >= 0 and self._place > self._broken:
            raise DataError("list, row 150: 7 is no text")
        return found

    def state(self) -> dict[str, Any]:
        return {"place": self._place}

    def seek(self, state: dict[str, Any]) -> None:
        self._place = state.get("place", 0)


class Reader:
    """One rank's loader, and what it said and cleaned."""

    def __init__(self, tokenizer: Tokenizer, ranks: Ranks, broken: int = -1) -> None:
        self.ranks, self.said = ranks, list[str]()
        task = Task(CleaningConfig(duplicates="near"), 60, frozenset())
        sampler = SubwordSampler(tokenizer, 0.3, 5, 60, ranks)
        config, log = BatchingConfig(tokens=200, max_length=60, sampling=0.3), self.said.append
        self.loader = StreamLoader(ListStream(broken), tokenizer, task, config, 1, BUFFER, log, sampler, ranks)

    def batches(self, first: tuple[int, int] = (0, 0)) -> Iterator[tuple[int, int, Any]]:
        """Each batch from here on, with its place; the ranks' shares of it, put together, are the batch."""
        buffer, place = first
        for number in range(buffer, BUFFERS):
            for batch in range(place if number == buffer else 0, len(self.loader.plan(number))):
                whole = self.loader.batch(number, batch)
                own = self.loader.share(number, batch, self.ranks)
                assert own.tokens == whole.tokens
                assert sum(self.ranks.gather(own.batch.tokens if own.counts else 0)) == whole.tokens
                yield number, batch, [whole.source.tolist(), whole.target_out.tolist()]

    def walk(self, middle: Any = None) -> dict[str, Any]:
        """All batches, or from the middle, and the state there. middle: that state."""
        if middle:
            self.loader.load_state(middle)
        found = []
        for number, batch, rows in self.batches(MIDDLE if middle else (0, 0)):
            found.append(rows)
            if (number, batch) == MIDDLE:
                middle = json.loads(json.dumps(self.loader.state()))
        return {"batches": found, "middle": middle, "said": self.said}


def drawn(tokenizer: Tokenizer, ranks: Ranks) -> list[list[int]]:
    """Another segmentation of a store, in chunks that are fewer than the ranks at the end."""
    rows = [
        tokenizer.encode_source([pair.source for pair in PAIRS]),
        tokenizer.encode_target([p.target for p in PAIRS]),
    ]
    store = SubwordSampler(tokenizer, 0.3, 5, 60, ranks)(TokenStore.from_rows(*rows), 2)
    return [array.tolist() for array in (store.source_ids, store.source_offsets, store.target_ids)]


def main() -> None:
    """One rank: its number, how many there are, and a folder with a tokenizer and the middle of one process."""
    rank, size, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    dist.init_process_group(
        "gloo", init_method=f"file://{folder / 'meeting'}", rank=rank, world_size=size, timeout=timedelta(seconds=60)
    )
    ranks, tokenizer = Ranks(rank, size), Tokenizer.load(folder)
    judged = list[int]()

    def counting(pairs: list[Pair], *rest: Any, **options: Any) -> Any:
        judged.append(len(pairs))
        return judge(pairs, *rest, **options)

    vars(stream_loader).update(judge=counting)
    vars(rewriting).update(_CHUNK_PAIRS=30)
    found = {"whole": Reader(tokenizer, ranks).walk(), "judged": judged.copy()}
    middle = json.loads((folder / "middle.json").read_text())
    found["resumed"] = Reader(tokenizer, ranks).walk(middle)["batches"]
    found["drawn"] = drawn(tokenizer, ranks)
    try:
        Reader(tokenizer, ranks, broken=150 if rank == size - 1 else -1).walk()
    except DataError as error:
        found["error"] = str(error)
    (folder / f"rank{rank}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
