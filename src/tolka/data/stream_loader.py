"""Batches of a stream, which is never stored: one buffer of pairs at a time, whose position in the stream is saved.

Where several ranks train together, each of them reads all of a buffer, and cleans and encodes its part.
"""

from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

from tolka.data.buckets import BatchingConfig
from tolka.data.loader import Batches, Resample
from tolka.data.shards import Task, fitting_rows
from tolka.data.store import PartTags, TokenStore, joined
from tolka.distributed.ranks import ALONE, Ranks
from tolka.errors import DataError
from tolka.system.progress import Say, bar
from tolka.text.cleaning.cleaner import MarkSet, Tally, duplicate_key, duplicate_reason, judge, marks_of
from tolka.text.pairs import Pair, PairStream
from tolka.text.windows import full_windows
from tolka.tokenizer.tokenizer import Tokenizer

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
        log: Say,
        resample: Resample | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        """buffer: pairs read at once; duplicates are found within one. log: called with the tally of each buffer.

        ranks: those that divide the work; every rank has all batches of a buffer.
        """
        super().__init__(config, seed)
        self._stream, self._tokenizer, self._task = stream, tokenizer, task
        self._size, self._log, self._resample, self._ranks = buffer, log, resample, ranks
        self._tags = PartTags((tokenizer.tags(stream.direction),))
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
        # The stream may be elsewhere: a resumed run begins in the middle of it.
        self._stream.seek(start)
        for _ in range(_MAX_EMPTY_BUFFERS):
            store, tally = self._prepared(f"reading buffer {number + 1}")
            self._log(f"buffer {number + 1} of the stream: {tally.summary()}")
            if len(store):
                break
        else:
            name = self._stream.name
            raise DataError(f"of {_MAX_EMPTY_BUFFERS} buffers of {name} one after the other no pair was kept")
        # No others: training only goes forward, and a resumed run begins in the current buffer.
        self._starts = {number: start, number + 1: self._stream.state()}
        return replace(self._resample(store, number) if self._resample else store, tags=self._tags)

    def _prepared(self, title: str) -> tuple[TokenStore, Tally]:
        """Return the ids of the next buffer, which may be empty, and the tally of all ranks' parts."""
        pairs, tally = list[Pair](), Tally()

        def judged() -> npt.NDArray[np.uint64]:
            raw, ranks = self._stream.take(self._size), self._ranks
            own = raw[len(raw) * ranks.rank // ranks.size : len(raw) * (ranks.rank + 1) // ranks.size]
            pairs.extend(judge(own, task.cleaning, self._stream.direction, tally, held_out=task.held_out))
            return marks_of(pairs, key) if key else np.zeros(0, dtype=np.uint64)

        task, key = self._task, duplicate_key(self._task.cleaning)
        marks = self._ranks.outcomes(judged)
        # A pair may have stood in another rank's part before: every rank looks through the marks of all parts.
        if key:
            first = sum(map(len, marks[: self._ranks.rank]))
            is_new = MarkSet().add(np.concatenate(marks))[first : first + len(pairs)]
            if not is_new.all():
                tally.dropped[duplicate_reason(task.cleaning)] += int((~is_new).sum())
            pairs = list(compress(pairs, is_new.tolist()))
        parts = self._ranks.outcomes(lambda: (self._encoded(pairs, tally, title), tally))
        return joined([store for store, _ in parts]), sum((part for _, part in parts), Tally())

    def _encoded(self, pairs: list[Pair], tally: Tally, title: str) -> TokenStore:
        """Encode pairs; those with too many tokens are left out and counted."""
        rows: list[tuple[list[int], list[int]]] = []
        with bar(title, len(pairs), " pairs") as progress:
            for chunk in full_windows(pairs, _CHUNK_PAIRS):
                rows += fitting_rows(chunk, self._tokenizer, self._stream.direction, self._task.max_length, tally)
                progress.update(len(chunk))
        tally.kept = len(rows)
        return TokenStore.from_rows([source for source, _ in rows], [target for _, target in rows])
