"""Translate and score segments in batches of similar length."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import chain, islice
from threading import Lock
from typing import TypeVar

from tolka.data.buckets import evenly_longest_first, longest_first
from tolka.engines.engine import Engine
from tolka.search.hypothesis import Hypothesis, Rendered
from tolka.system.memory import is_out_of_memory
from tolka.system.progress import Say, silent
from tolka.text.direction import Direction
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.translation.request import ResolvedRequest
from tolka.translation.segments import Segment

_MIN_LENGTH = 16  # subwords: shorter sentences count as this long
_WORKERS = 2  # batches in parallel on a CPU: each needs memory of its own
_CPU_BATCH_TOKENS = 4096  # larger batches are hardly faster, and harder to balance between workers at the end
Tick = Callable[[float], object]
R = TypeVar("R")


class BatchDecoder:
    """Runs an engine on batches of segments of similar length; results are in the segments' order. Thread-safe."""

    def __init__(self, engine: Engine, tokenizer: Tokenizer, tokens: int, say: Say = silent) -> None:
        """tokens: see DecodingConfig. say: receives notes."""
        self.tokens = tokens
        self.workers = min(engine.cpu_threads, _WORKERS) or 1
        self._engine, self._tokenizer, self._say = engine, tokenizer, say
        self._reducing = Lock()  # several threads may run out of memory at once

    def translate(self, segments: Sequence[Segment], request: ResolvedRequest, tick: Tick) -> list[list[Rendered]]:
        """Return texts and hypotheses of each segment, in order. tick: receives the number of each batch's segments."""
        search = request.search
        selection = search.selection(request.direction.target)
        tags = self._tokenizer.tags(request.direction)._replace(never=self._tokenizer.without_text)
        sources = [segment.ids for segment in segments]
        results: dict[int, list[Rendered]] = {}
        remaining = self._batches(sources, range(len(sources)), search.width)
        workers = max(1, min(self.workers, len(remaining)))
        # Two batches per worker, so that none idles while this thread decodes a result. One worker is this thread.
        most_pending = 2 * workers if workers > 1 else 1
        # Sentence numbers of each batch, the ceiling on tokens that it was made under, and what comes of it.
        pending: deque[tuple[list[int], int, Future[list[list[Hypothesis]] | None]]] = deque()
        with self._engine.side_by_side(workers) as threads:
            while remaining or pending:
                while remaining and len(pending) < most_pending:
                    numbers = remaining.popleft()
                    rows, wishes = [sources[i] for i in numbers], [segments[i].wish for i in numbers]
                    run = partial(self._engine.translate, search, rows, wishes, request.scored, tags)
                    future = threads.submit(_unless_too_large, run, len(rows))
                    pending.append((numbers, self.tokens, future))
                batch, ceiling, future = pending.popleft()
                hypotheses = future.result()  # after an error, `side_by_side` cancels what is queued
                if hypotheses is None:
                    # Out of memory: what has not been submitted is batched again, under a lower ceiling.
                    longest = max(len(sources[i]) + 1 for i in batch)
                    self._reduce_batches(ceiling, len(batch) * longest * search.width)
                    numbers = [*batch, *chain.from_iterable(remaining)]
                    remaining = self._batches(sources, numbers, search.width)
                    continue
                texts = iter(self._tokenizer.decode_target([each.tokens for row in hypotheses for each in row]))
                rendered = (selection.select(list(islice(texts, len(row))), row) for row in hypotheses)
                results.update(zip(batch, rendered, strict=True))
                tick(len(batch))
        return [results[number] for number in range(len(sources))]

    def rehearse(self, segments: Sequence[Segment], request: ResolvedRequest) -> None:
        """Translate the longest segments, one batch per worker, to check that they fit in memory."""
        sources = [segment.ids for segment in segments]
        batches = islice(self._batches(sources, range(len(sources)), request.search.width), self.workers)
        self.translate([segments[i] for i in chain.from_iterable(batches)], request, lambda share: None)

    def _reduce_batches(self, ceiling: int, tokens: int) -> None:
        """Halve the ceiling on tokens after a batch under it, of `tokens` with padding, did not fit in memory."""
        self._engine.free_memory()
        with self._reducing:
            # Unless another batch under the same ceiling has lowered it before.
            if self.tokens == ceiling:
                self.tokens = max(1, min(self.tokens, tokens) // 2)
                self._say(f"note: out of memory while translating: continuing with decoding.tokens={self.tokens}")

    def token_scores(
        self, pairs: Sequence[tuple[list[int], list[int]]], direction: Direction, tick: Tick
    ) -> list[list[float]]:
        """Return the log-probability, in nats, of each target token and of `</s>`, for segments of ids, in order.

        tick: receives the number of each batch's segments.
        """
        tags = self._tokenizer.tags(direction)
        results: dict[int, list[float]] = {}
        lengths = [max(len(source), len(target)) + 1 for source, target in pairs]
        remaining = deque(longest_first(lengths, self.tokens))
        while remaining:
            numbers = remaining.popleft()
            inputs = [pairs[i][0] for i in numbers], [pairs[i][1] for i in numbers], tags
            scores = _unless_too_large(partial(self._engine.score, *inputs), len(numbers))
            if scores is None:
                # Only this batch is halved; the ceiling stays as it is for searches.
                self._engine.free_memory()
                middle = len(numbers) // 2
                remaining.extendleft([numbers[middle:], numbers[:middle]])
                continue
            results.update(zip(numbers, scores, strict=True))
            tick(len(numbers))
        return [results[number] for number in range(len(pairs))]

    def _batches(self, sources: list[list[int]], numbers: Sequence[int], width: int) -> deque[list[int]]:
        """Return the sentence numbers of each batch. width: hypotheses per sentence."""
        # Each hypothesis has logits of the whole vocabulary: a batch must not have too many short sentences.
        lengths = [max(len(sources[i]) + 1, _MIN_LENGTH) for i in numbers]
        ceiling = self.tokens // width
        if self._engine.cpu_threads:
            # From constants alone: with another number of threads the batches, and so the translations, are the same.
            fewest = _WORKERS * min(2, sum(lengths) // (_CPU_BATCH_TOKENS * _WORKERS))
            batches = evenly_longest_first(lengths, ceiling, fewest, _WORKERS)
        else:
            batches = longest_first(lengths, ceiling)
        return deque([numbers[i] for i in rows] for rows in batches)


def _unless_too_large(run: Callable[[], list[R]], size: int) -> list[R] | None:
    """Return the results of a batch of `size` sentences; None if it does not fit in memory."""
    try:
        return run()
    except (RuntimeError, MemoryError) as error:
        # A single sentence cannot be made smaller: its error is the user's.
        if not is_out_of_memory(error) or size == 1:
            raise
    return None
