"""Batches of similar length: every result comes back at its own place, also after one that did not fit in memory."""

import itertools
import random
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import pytest
from copying_model import TOKENIZER
from rows import each_row

from tolka.data.buckets import longest_first
from tolka.engines.engine import Engine
from tolka.errors import CheckpointError
from tolka.search.hypothesis import Hypothesis, Wish
from tolka.search.options import BeamConfig, GreedyConfig, SearchConfig
from tolka.system.threads import side_by_side
from tolka.text.direction import UNKNOWN
from tolka.tokenizer.language_tags import NO_TAGS, Tags
from tolka.translation.batch_decoder import BatchDecoder
from tolka.translation.request import ResolvedRequest
from tolka.translation.segments import Segment

SOURCES = [[4 + number % 7] * length for number, length in enumerate(random.Random(1).choices(range(1, 60), k=70))]
SEGMENTS = [Segment("", ids) for ids in SOURCES]


class Copying(Engine):
    """Returns each source, and records its batches; those of more padded tokens than `capacity` do not fit."""

    def __init__(self, threads: int = 0, capacity: int = 10**9, refuses: Sequence[int] = ()) -> None:
        self.threads, self.capacity, self.refuses = threads, capacity, refuses
        self.batches: list[list[list[int]]] = []
        self.freed = 0

    @property
    def cpu_threads(self) -> int:
        return self.threads

    def check(self, rows: list[list[int]], width: int) -> None:
        self.batches.append(rows)
        if len(rows) > 1 and len(rows) * (max(map(len, rows)) + 1) * width > self.capacity:
            raise MemoryError

    def translate(
        self,
        search: SearchConfig,
        sources: list[list[int]],
        wishes: Sequence[Wish] = (),
        scored: bool = False,
        tags: Tags = NO_TAGS,
    ) -> list[list[Hypothesis]]:
        if [*self.refuses] in sources:
            raise CheckpointError("scores are not finite")
        self.check(sources, search.width)
        return [[Hypothesis([*wish.prefix, *ids], 0.0, 0.0, True)] for ids, wish in zip(sources, wishes, strict=True)]

    def score(self, sources: list[list[int]], targets: list[list[int]], tags: Tags = NO_TAGS) -> list[list[float]]:
        self.check(sources, 1)
        return [[float(-sum(source)), *map(float, target)] for source, target in zip(sources, targets, strict=True)]

    def side_by_side(self, count: int) -> AbstractContextManager[Any]:
        return side_by_side(count)

    def free_memory(self) -> None:
        self.freed += 1


def translated(decoder: BatchDecoder, segments: list[Segment] = SEGMENTS, search: SearchConfig | None = None) -> Any:
    """The ids of each segment's translation, and the sizes of the batches that were reported."""
    sizes: list[float] = []
    results = decoder.translate(segments, ResolvedRequest(search or GreedyConfig(), UNKNOWN), sizes.append)
    return [hypothesis.tokens for [(_, hypothesis)] in results], sizes


@each_row(("threads", "tokens"), itertools.product([0, 1, 2], [1, 200, 100_000]))
def test_results_are_in_the_order_of_the_segments(threads: int, tokens: int) -> None:
    engine = Copying(threads)
    found, sizes = translated(BatchDecoder(engine, TOKENIZER, tokens))
    assert found == SOURCES
    assert sorted(sizes) == sorted(map(len, engine.batches))
    assert sum(sizes) == len(SOURCES)


def test_no_segments_are_no_batches() -> None:
    engine = Copying()
    assert translated(BatchDecoder(engine, TOKENIZER, 100), []) == ([], [])
    assert engine.batches == []


def test_a_batch_keeps_to_the_ceiling_times_the_hypotheses() -> None:
    """Short sentences count as 16 subwords; a longer one than the ceiling is a batch by itself."""
    engine = Copying()
    translated(BatchDecoder(engine, TOKENIZER, 400), search=BeamConfig(beam_size=5))
    cost = [len(rows) * 5 * max(16, max(map(len, rows)) + 1) for rows in engine.batches]
    assert max(cost) <= 400
    assert max(map(len, engine.batches)) == 5  # 5 * 5 * 16
    lengths = [max(15, len(rows[0])) for rows in engine.batches]
    assert lengths == sorted(lengths, reverse=True)


@each_row("threads", [0, 2])
def test_after_a_batch_that_does_not_fit_nothing_is_lost(threads: int) -> None:
    notes: list[str] = []
    engine = Copying(threads, capacity=300)
    decoder = BatchDecoder(engine, TOKENIZER, 1000, notes.append)
    found, sizes = translated(decoder)
    assert found == SOURCES
    assert sum(sizes) == len(SOURCES)
    assert engine.freed >= len(notes) >= 1
    assert notes[-1] == f"note: out of memory while translating: continuing with decoding.tokens={decoder.tokens}"
    assert decoder.tokens < 1000
    assert translated(decoder)[0] == SOURCES


def test_the_ceiling_is_half_of_what_did_not_fit() -> None:
    """8 sentences of 49 subwords and </s> are 400 tokens: of the ceiling of 1000 that is what was tried."""
    decoder = BatchDecoder(Copying(capacity=399), TOKENIZER, 1000)
    assert translated(decoder, [Segment("", [5] * 49)] * 8)[0] == [[5] * 49] * 8
    assert decoder.tokens == 200


def test_an_error_of_one_batch_is_the_callers_and_the_decoder_works_on() -> None:
    decoder = BatchDecoder(Copying(2, refuses=SOURCES[3]), TOKENIZER, 200)
    with pytest.raises(CheckpointError, match="scores are not finite"):
        translated(decoder)
    others = [segment for segment in SEGMENTS if segment.ids != SOURCES[3]]
    assert translated(decoder, others)[0] == [segment.ids for segment in others]


def test_each_segment_has_its_own_wish() -> None:
    segments = [Segment("", ids, Wish((200 + number,))) for number, ids in enumerate(SOURCES)]
    found, _ = translated(BatchDecoder(Copying(), TOKENIZER, 200), segments)
    assert found == [[200 + number, *ids] for number, ids in enumerate(SOURCES)]


def test_the_longest_segments_of_the_first_batches() -> None:
    """One batch for each of two workers: all of the longest two, which fill a ceiling of 60."""
    segments = [Segment("", [5] * length) for length in (3, 59, 4, 58, 5)]
    engine = Copying(2)
    BatchDecoder(engine, TOKENIZER, 60).rehearse(segments, ResolvedRequest(GreedyConfig(), UNKNOWN))
    assert sorted(len(ids) for rows in engine.batches for ids in rows) == [58, 59]


@each_row("capacity", [10**9, 100])
def test_scores_are_in_the_order_of_the_pairs(capacity: int) -> None:
    """A batch that does not fit is halved until it does; translating has the ceiling that it had."""
    engine, sizes = Copying(capacity=capacity), list[float]()
    decoder = BatchDecoder(engine, TOKENIZER, 500)
    pairs = list(zip(SOURCES, SOURCES[::-1], strict=True))
    found = decoder.token_scores(pairs, UNKNOWN, sizes.append)
    assert found == [[-sum(source), *target] for source, target in pairs]
    assert (decoder.tokens, sum(sizes)) == (500, len(pairs))
    whole = longest_first([max(len(source), len(target)) + 1 for source, target in pairs], 500)
    assert (engine.freed > 0, len(sizes) > len(whole)) == (capacity == 100,) * 2
