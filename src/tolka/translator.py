"""Texts in, translations out: one for each, in order, whatever their number and length."""

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import chain, islice

import torch

from tolka.batch import Flat
from tolka.checkpoint import Folders, SavedModel, load_ensemble, unicode_form
from tolka.checks import at_least, at_most, one_of, zero_or_more
from tolka.data.buckets import evenly_longest_first, longest_first
from tolka.errors import ConfigError
from tolka.models.base import Seq2Seq
from tolka.models.captured import CapturedModel, check_captured
from tolka.models.precision import FORMATS, check_format, in_format
from tolka.progress import say
from tolka.runtime import MOST_THREADS, choose_device, empty_cache, is_out_of_memory, use_threads
from tolka.search.base import Hypothesis, SearchConfig
from tolka.search.beam import BeamConfig
from tolka.text.cleaning_steps import spelt
from tolka.text.tokenizer import Tokenizer
from tolka.threads import side_by_side

# A mark that ends a sentence, the quotes and brackets that close after it, and the blank (a group: it alone is left
# out where the text is cut); or a full-width mark, which needs no blank.
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]*(\s+)|[。！？；][”’）」』]*()")
_CLAUSE_END = re.compile(r"[,;:](\s+)|[，、：]()")
_BLANK = re.compile(r"(\s+)")


_SHORTEST = 16  # pieces that a sentence counts in a batch, at least
_MOST_WORKERS = 2  # unless told otherwise, as each takes as much memory
_ENOUGH = 4096  # tokens of a batch on a CPU: more are hardly faster, and what is left at the end is harder to divide
Tick = Callable[[float], object]


@dataclass(frozen=True)
class DecodingConfig:
    """How texts are put before the model."""

    device: str = "auto"
    """auto (the first GPU, else the CPU), cpu, cuda, cuda:N"""
    threads: int = 0
    """CPU threads to calculate with, as for two jobs at once; 0 = torch's own choice, as a rule one for each core"""
    workers: int = 0
    """batches side by side on a CPU, each with its share of the threads and memory of its own; 0 = two if it has two"""
    precision: str = "fp32"
    """of the weights while translating: fp32, bf16, fp16, int8 (a CPU; 1.3 to 1.8 times as fast); PPL stays fp32's"""
    cuda_graphs: bool = False
    """a step's kernels started at once; for many lines on a GPU, as each shape of batch has to be captured first"""
    tokens: int = 16384
    """ceiling on a batch: padded source tokens times the search's hypotheses; longer pairs are left out of the PPL"""
    window: int = 2000
    """lines read before translating; within a window lines are sorted by length, their order is restored"""
    max_length: int = 0
    """lines with more pieces are split at sentence marks or blanks; 0 = the longest that the model was trained on"""

    def __post_init__(self) -> None:
        at_least(self, "decoding", 1, "tokens", "window")
        one_of(self, "decoding", "precision", FORMATS)
        at_most(self, "decoding", MOST_THREADS, "threads")
        zero_or_more(self, "decoding", "as trained", "max_length")
        zero_or_more(self, "decoding", "torch's own choice", "threads")
        zero_or_more(self, "decoding", "two if there are two threads", "workers")
        at_most(self, "decoding", MOST_THREADS, "workers")


@dataclass(frozen=True)
class Translation:
    """One text's translation. complete: whether every part reached its end.

    segments: the parts that it was split into, none for a blank text: source ids and target ids, without `</s>`.
    """

    text: str
    segments: list[tuple[list[int], list[int]]]
    complete: bool

    @property
    def parts(self) -> int:
        """How many segments."""
        return len(self.segments)


@dataclass(frozen=True)
class _Segment:
    """A piece of a text that the model can take. glue: what stands between its translation and the one before."""

    text_number: int
    glue: str
    ids: list[int]


@dataclass(frozen=True)
class _Begun:
    """A batch at work: the sentences' numbers, what is found for them, the ceiling that it was made with."""

    numbers: list[int]
    found: Future[list[Hypothesis] | None]
    tokens: int


class Translator:
    """A model with its tokenizer and a search."""

    def __init__(
        self,
        model: Seq2Seq,
        tokenizer: Tokenizer,
        search: SearchConfig,
        device: torch.device,
        max_length: int,
        tokens: int = DecodingConfig.tokens,
        unicode: str = "keep",
        workers: int = 0,
    ) -> None:
        """max_length: pieces of the longest segment given to the model. tokens, workers: see DecodingConfig.

        unicode: as the model's training text was spelt; see CleaningConfig.
        """
        self.model = model
        self.tokenizer = tokenizer
        self.search = search
        self.device = device
        self.max_length = max_length
        self.tokens = tokens
        self.unicode = unicode
        on_cpu = device.type == "cpu"
        self.workers = (workers or min(torch.get_num_threads(), _MOST_WORKERS)) if on_cpu else 1

    @classmethod
    def load(
        cls, folders: Folders, search: SearchConfig | None = None, decoding: DecodingConfig | None = None
    ) -> "Translator":
        """From a model or a run directory, or several that translate together (`models/ensemble.py`).

        Beam search of 5 on the best device unless told otherwise.
        """
        return cls.of(load_ensemble(folders), search or BeamConfig(), decoding or DecodingConfig())

    @classmethod
    def of(cls, saved: SavedModel, search: SearchConfig, decoding: DecodingConfig) -> "Translator":
        """From a directory that was read already."""
        use_threads(decoding.threads)
        device = choose_device(decoding.device, "decoding.device")
        max_length = decoding.max_length or saved.longest_source
        unicode = unicode_form(saved.config)
        check_format(decoding.precision, device, "decoding.precision")
        if decoding.cuda_graphs:
            check_captured(device)
        if decoding.workers > 1 and device.type != "cpu":
            raise ConfigError(f"decoding.workers ({decoding.workers}) is for a CPU, not {device}: leave it out")
        model = in_format(saved.model.to(device), decoding.precision)
        if decoding.cuda_graphs:
            model = CapturedModel(model, device)
        elif device.type == "cpu":
            model.trace_steps()
        return cls(model, saved.tokenizer, search, device, max_length, decoding.tokens, unicode, decoding.workers)

    def __call__(self, texts: Sequence[str], tick: Tick = lambda share: None) -> list[str]:
        """A translation for each text, in order; a blank text stays blank."""
        return [translation.text for translation in self.translate(texts, tick)]

    def translate(self, texts: Sequence[str], tick: Tick = lambda share: None) -> list[Translation]:
        """The same with what happened on the way. tick: told after each batch how much of the texts it was."""
        segments = [segment for number, text in enumerate(texts) for segment in self._segments(number, text)]
        rendered = self._search([segment.ids for segment in segments], lambda n: tick(n / len(segments) * len(texts)))
        pieces: list[list[str]] = [[] for _ in texts]
        parts: list[list[tuple[list[int], list[int]]]] = [[] for _ in texts]
        complete = [True] * len(texts)
        for segment, (text, best) in zip(segments, rendered, strict=True):
            number = segment.text_number
            pieces[number].append(segment.glue + text if parts[number] else text)
            parts[number].append((segment.ids, best.tokens))
            complete[number] &= best.finished
        return [Translation("".join(p), n, c) for p, n, c in zip(pieces, parts, complete, strict=True)]

    def _segments(self, number: int, text: str) -> Iterator[_Segment]:
        """The text, or its parts that fit; none for a blank text, which never reaches the model."""
        for glue, ids in self._split(spelt(text.strip(), self.unicode), ""):
            for start in range(0, len(ids), self.max_length):  # a single run without blanks may still be too long
                yield _Segment(number, glue if start == 0 else "", ids[start : start + self.max_length])

    def _split(self, text: str, glue: str) -> Iterator[tuple[str, list[int]]]:
        """(glue before it, ids) of parts with at most max_length pieces each, halved at the best place near the
        middle."""
        if not text:
            return
        (ids,) = self.tokenizer.encode_source([text])
        cut_at = _best_cut(text) if len(ids) > self.max_length else None
        if cut_at is None:
            yield glue, ids
            return
        left, right = text[: cut_at[0]], text[cut_at[1] :]
        yield from self._split(left, glue)
        yield from self._split(right, " " if cut_at[1] > cut_at[0] else "")

    def _search(self, sources: list[list[int]], tick: Tick) -> list[tuple[str, Hypothesis]]:
        """Translations of id rows, in order, as text and as found; in batches of like length."""
        results: dict[int, tuple[str, Hypothesis]] = {}
        left = self._batches(sources, range(len(sources)))
        workers = max(1, min(self.workers, len(left)))
        ahead = 2 * workers if workers > 1 else 1  # who is done before the others finds the next one waiting
        begun: deque[_Begun] = deque()
        with side_by_side(workers) as threads:
            while left or begun:
                while left and len(begun) < ahead:
                    numbers = left.popleft()
                    found = threads.submit(self._best, [sources[i] for i in numbers])
                    begun.append(_Begun(numbers, found, self.tokens))
                batch = begun.popleft()
                best = batch.found.result()
                if best is None:
                    self._have_less_at_once(batch, max(len(sources[i]) + 1 for i in batch.numbers))
                    left = self._batches(sources, [*batch.numbers, *chain.from_iterable(left)])
                    continue
                texts = self.tokenizer.decode_target([hypothesis.tokens for hypothesis in best])
                results.update(zip(batch.numbers, zip(texts, best, strict=True), strict=True))
                tick(len(batch.numbers))
        return [results[number] for number in range(len(sources))]

    def _have_less_at_once(self, batch: _Begun, longest: int) -> None:
        """After a batch, of sentences up to `longest`, that memory had no room for."""
        if isinstance(self.model, CapturedModel):
            self.model.forget()
        empty_cache(self.device)
        if self.tokens == batch.tokens:  # else another of its size has failed already
            failed = len(batch.numbers) * longest * self.search.width
            self.tokens = max(1, min(self.tokens, failed) // 2)
            say(f"note: out of memory while translating: going on with decoding.tokens={self.tokens}")

    def rehearse(self, texts: Sequence[str]) -> None:
        """Translate the longest ones, as many as are at work at once, to know whether memory has room for them."""
        sources = [segment.ids for number, text in enumerate(texts) for segment in self._segments(number, text)]
        if sources:
            longest = islice(self._batches(sources, range(len(sources))), self.workers)
            self._search([sources[i] for i in chain.from_iterable(longest)], lambda share: None)

    def _batches(self, sources: list[list[int]], numbers: Sequence[int]) -> deque[list[int]]:
        """On a CPU the same with any number of threads: in int8 a sentence's translation depends on those beside it."""
        # A hypothesis has a score for every piece at each step: short sentences must not be many times as many.
        lengths = [max(len(sources[i]) + 1, _SHORTEST) for i in numbers]
        ceiling = self.tokens // self.search.width
        if self.device.type == "cpu":
            least = _MOST_WORKERS * min(2, sum(lengths) // (_ENOUGH * _MOST_WORKERS))
            batches = evenly_longest_first(lengths, ceiling, least, _MOST_WORKERS)
        else:
            batches = longest_first(lengths, ceiling)
        return deque([numbers[i] for i in rows] for rows in batches)

    def _best(self, sources: list[list[int]]) -> list[Hypothesis] | None:
        """The best hypothesis of each; None where memory has no room for so many."""
        source, lengths = Flat.of(sources).ended()
        self.model.eval()
        try:
            with torch.inference_mode():
                found = self.search.search(self.model, source.to(self.device), lengths.to(self.device), scored=False)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error) or len(sources) == 1:
                raise
            return None
        return [hypotheses[0] for hypotheses in found]


def _best_cut(text: str) -> tuple[int, int] | None:
    """(end of the left part, start of the right one): at a sentence mark, else a clause mark, else a blank.

    Of several, the one nearest to the middle; None when there is none, or when it would leave a side empty.
    """
    middle = len(text) / 2
    for pattern in (_SENTENCE_END, _CLAUSE_END, _BLANK):
        spans = [match.span(match.lastindex or 0) for match in pattern.finditer(text)]
        places = [(start, end) for start, end in spans if start > 0 and end < len(text)]
        if places:
            return min(places, key=lambda span: abs(span[0] - middle))
    return None
