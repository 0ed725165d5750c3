"""Batches of a stream, which is never stored: one buffer of pairs at a time, whose position in the stream is saved."""

from collections.abc import Callable, Iterator
from typing import Any

from tolka.data.buckets import BatchingConfig
from tolka.data.loader import Batches, Resample
from tolka.data.shards import Task, fitting_rows
from tolka.data.store import TokenStore
from tolka.errors import DataError
from tolka.system.progress import bar
from tolka.text.cleaning.cleaner import Tally, clean
from tolka.text.pairs import Pair, PairStream, in_chunks
from tolka.text.tokenizer.tokenizer import Tokenizer

_MAX_EMPTY_BUFFERS = 10  # in a row, of which cleaning keeps no pair: then the text or the settings are wrong
_CHUNK_PAIRS = 10_000


class StreamLoader(Batches):
    """The buffers of a stream as rounds, each shuffled and bucketed by itself, as a function of the seed."""

    round = "buffer"

    def __init__(
        self,
        stream: PairStream,
        tokenizer: Tokenizer,
        task: Task,
        config: BatchingConfig,
        seed: int,
        buffer: int,
        log: Callable[[str], None],
        resample: Resample | None = None,
    ) -> None:
        """buffer: pairs read at once; duplicates are found within one. log: called with the tally of each buffer."""
        super().__init__(config, seed)
        self._stream, self._tokenizer, self._task = stream, tokenizer, task
        self._size, self._log, self._resample = buffer, log, resample
        self._starts: dict[int, dict[str, Any]] = {0: {}}  # buffer -> position in the stream at which it begins

    def state(self) -> dict[str, Any]:
        """Return plain values to resume from: the positions at which the current and the next buffer begin."""
        return {"begins": {str(number): position for number, position in self._starts.items()}}

    def load_state(self, state: dict[str, Any]) -> None:
        """Resume from what `state` returned."""
        self._starts = {int(number): position for number, position in state["begins"].items()}
        self._round = None

    def _store(self, number: int) -> TokenStore:
        start = self._starts[number]
        self._stream.seek(start)
        store = self._read(number)
        self._starts = {number: start, number + 1: self._stream.state()}
        return self._resample(store, number) if self._resample else store

    def _read(self, number: int) -> TokenStore:
        """Return the ids of the next buffer of the stream, cleaned."""
        for _ in range(_MAX_EMPTY_BUFFERS):
            tally = Tally()
            rows = list(self._encoded(tally, f"reading buffer {number + 1}"))
            self._log(f"buffer {number + 1} of the stream: {tally.summary()}")
            if rows:
                return TokenStore.from_rows([source for source, _ in rows], [target for _, target in rows])
        raise DataError(f"of {_MAX_EMPTY_BUFFERS} buffers of {self._stream.name} one after the other no pair was kept")

    def _encoded(self, tally: Tally, title: str) -> Iterator[tuple[list[int], list[int]]]:
        task = self._task
        with bar(title, self._size, " pairs") as progress:
            raw = self._stream.take(self._size)
            for chunk in in_chunks(
                clean(raw, task.cleaning, task.languages, tally, held_out=task.held_out), _CHUNK_PAIRS
            ):
                yield from self._fitting(chunk, tally)
                progress.update(len(chunk))

    def _fitting(self, pairs: list[Pair], tally: Tally) -> Iterator[tuple[list[int], list[int]]]:
        def too_long(pair: Pair, reason: str) -> None:
            tally.dropped[reason] += 1
            tally.kept -= 1

        return fitting_rows(pairs, self._tokenizer, self._task.max_length, too_long)
