"""Translate texts of any number and length: one translation for each, in order."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import chain, islice

import torch

from tolka.data.batch import Flat
from tolka.data.buckets import evenly_longest_first, longest_first
from tolka.errors import CheckpointError, ConfigError
from tolka.model_directory.read import Folders, SavedModel, languages, load_ensemble, unicode_form
from tolka.models.base import Seq2Seq
from tolka.search.base import Hypothesis, SearchConfig
from tolka.search.beam import BeamConfig
from tolka.system.device import choose_device, use_threads
from tolka.system.memory import empty_cache, is_out_of_memory
from tolka.system.progress import say
from tolka.system.threads import side_by_side
from tolka.text.normalization import spelt
from tolka.text.tokenizer.tokenizer import Tokenizer
from tolka.translation.dtypes import check_dtype, convert_model
from tolka.translation.options import DecodingConfig, resolved_split
from tolka.translation.splitting import best_cut, sentences, separator_between

_MIN_LENGTH = 16  # subwords that a sentence counts in a batch, at least
_DEFAULT_WORKERS = 2  # at most, as each takes as much memory
_CPU_BATCH_TOKENS = 4096  # larger batches are hardly faster, and harder to balance between workers at the end
Tick = Callable[[float], object]


@dataclass(frozen=True)
class Translation:
    """The translation of one text.

    segments: the parts that the model translated, none for a blank text: source ids and target ids, without `</s>`.
    complete: whether every part ended with `</s>`. too_long: whether a part was split because it was longer than
    max_length. sentences: how many the source has. split: how it was split, from `resolved_split`.
    """

    text: str
    segments: list[tuple[list[int], list[int]]] = field(repr=False)
    complete: bool
    too_long: bool = False
    sentences: int = 1
    split: str = "length"

    @property
    def parts(self) -> int:
        """Number of segments."""
        return len(self.segments)


@dataclass(frozen=True)
class _Segment:
    """A part of a text of at most max_length. separator: what joins its translation to the one before."""

    separator: str
    ids: list[int]


@dataclass(frozen=True)
class _Source:
    """A text split into segments: how many sentences it has, and whether one of them was too long."""

    segments: list[_Segment]
    sentences: int
    too_long: bool


@dataclass(frozen=True)
class _PendingBatch:
    """A batch that is being translated: its segments' numbers, their hypotheses, its ceiling of tokens."""

    numbers: list[int]
    hypotheses: Future[list[Hypothesis] | None]
    tokens: int


class Translator:
    """A model with its tokenizer and a search.

    translator = Translator.load("runs/sample")
    translator(["I love you.", "A lion sleeps."])  # a list of two translations
    """

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
        split: str = "length",
        languages: tuple[str, str] = ("", ""),
    ) -> None:
        """max_length: subwords of the longest part given to the model. tokens, workers: see DecodingConfig.

        unicode: Unicode form of the model's training text, from CleaningConfig. split: from `resolved_split`.
        languages: the codes of source and target, to split and join sentences.
        """
        self.model = model
        self.tokenizer = tokenizer
        self.search = search
        self.device = device
        self.max_length = max_length
        self.tokens = tokens
        self.unicode = unicode
        self.split, self.languages = split, languages
        on_cpu = device.type == "cpu"
        self.workers = (workers or min(torch.get_num_threads(), _DEFAULT_WORKERS)) if on_cpu else 1

    @classmethod
    def load(
        cls, folders: Folders, search: SearchConfig | None = None, decoding: DecodingConfig | None = None
    ) -> "Translator":
        """Load a model or a run directory, or several as an ensemble.

        The defaults are beam search of 5 on the best device.
        """
        return cls.of(load_ensemble(folders), search or BeamConfig(), decoding or DecodingConfig())

    @classmethod
    def of(cls, saved: SavedModel, search: SearchConfig, decoding: DecodingConfig) -> "Translator":
        """Build a translator from a loaded model directory."""
        use_threads(decoding.threads)
        device = choose_device(decoding.device, "decoding.device")
        max_length = decoding.max_length or saved.sources.longest
        unicode = unicode_form(saved.config)
        check_dtype(decoding.precision, device, "decoding.precision")
        if decoding.workers > 1 and device.type != "cpu":
            raise ConfigError(f"decoding.workers ({decoding.workers}) is for a CPU, not {device}: leave it out")
        model = convert_model(saved.model.to(device), decoding.precision)
        split = resolved_split(decoding.split, saved.sources.several_sentences)
        limits = max_length, decoding.tokens, unicode, decoding.workers
        return cls(model, saved.tokenizer, search, device, *limits, split, languages(saved.config))

    def __repr__(self) -> str:
        model, (source, target) = self.model.architecture, self.languages
        direction = f"{source} to {target}, " if source and target else ""
        split = f"split={self.split!r}, max_length={self.max_length}"
        return f"Translator({model}, {direction}{self.search}, {self.device}, {split})"

    def __call__(self, texts: str | Iterable[str], tick: Tick = lambda share: None) -> list[str]:
        """Translate each text, in order; a blank text stays blank. A str is one text. TypeError for other types."""
        return [translation.text for translation in self.translate(texts, tick)]

    def translate(self, texts: str | Iterable[str], tick: Tick = lambda share: None) -> list[Translation]:
        """Translate each text and return details. tick: is called after each batch with its share of the texts."""
        sources = [self._segment(text) for text in _as_list(texts)]
        rows = [segment.ids for source in sources for segment in source.segments]
        results = iter(self._translate_rows(rows, lambda count: tick(count / len(rows) * len(sources))))
        return [self._join(source, list(islice(results, len(source.segments)))) for source in sources]

    def _join(self, source: _Source, results: Sequence[tuple[str, Hypothesis]]) -> Translation:
        """Join the translations of a text's segments."""
        return Translation(
            "".join(segment.separator + text for segment, (text, _) in zip(source.segments, results, strict=True)),
            [(segment.ids, best.tokens) for segment, (_, best) in zip(source.segments, results, strict=True)],
            all(best.finished for _, best in results),
            source.too_long,
            source.sentences,
            self.split,
        )

    def _segment(self, text: str) -> _Source:
        """Split a text into segments; none for a blank text, which never reaches the model."""
        text = spelt(text.strip(), self.unicode)
        if not text:
            return _Source([], 0, False)
        parts = sentences(text, self.languages[0])
        segments, separator, too_long = list[_Segment](), "", False
        for part in parts if self.split == "sentences" else [text]:
            content = part.rstrip()
            segments += (own := list(self._split(content, separator)))
            separator = separator_between(part[len(content) :], True, self.languages[1])
            too_long |= len(own) > 1
        return _Source(segments, len(parts), too_long)

    def _split(self, text: str, separator: str) -> Iterator[_Segment]:
        """Split at the best place near the middle until each part has at most max_length subwords.

        A single character is never split, however many subwords it has.
        """
        (ids,) = self.tokenizer.encode_source([text])
        cut = best_cut(text) if len(ids) > self.max_length and self.split != "never" else None
        if cut is None:
            yield _Segment(separator, ids)
            return
        yield from self._split(text[: cut.end], separator)
        separator = separator_between(text[cut.end : cut.start], cut.at_mark, self.languages[1])
        yield from self._split(text[cut.start :], separator)

    def _translate_rows(self, sources: list[list[int]], tick: Tick) -> list[tuple[str, Hypothesis]]:
        """Translate rows of ids in batches of similar length; return text and hypothesis of each, in order."""
        results: dict[int, tuple[str, Hypothesis]] = {}
        remaining = self._batches(sources, range(len(sources)))
        workers = max(1, min(self.workers, len(remaining)))
        queued = 2 * workers if workers > 1 else 1  # two per worker, so that none idles
        pending: deque[_PendingBatch] = deque()
        with side_by_side(workers) as threads:
            while remaining or pending:
                while remaining and len(pending) < queued:
                    numbers = remaining.popleft()
                    hypotheses = threads.submit(self._search_best, [sources[i] for i in numbers])
                    pending.append(_PendingBatch(numbers, hypotheses, self.tokens))
                batch = pending.popleft()
                best = batch.hypotheses.result()
                if best is None:
                    self._reduce_batches(batch, max(len(sources[i]) + 1 for i in batch.numbers))
                    remaining = self._batches(sources, [*batch.numbers, *chain.from_iterable(remaining)])
                    continue
                texts = self.tokenizer.decode_target([hypothesis.tokens for hypothesis in best])
                results.update(zip(batch.numbers, zip(texts, best, strict=True), strict=True))
                tick(len(batch.numbers))
        return [results[number] for number in range(len(sources))]

    def _reduce_batches(self, batch: _PendingBatch, longest: int) -> None:
        """Halve the ceiling of tokens after a batch that did not fit in memory. longest: of its sentences."""
        empty_cache(self.device)
        if self.tokens == batch.tokens:  # else another batch of its size has already failed
            failed = len(batch.numbers) * longest * self.search.width
            self.tokens = max(1, min(self.tokens, failed) // 2)
            say(f"note: out of memory while translating: continuing with decoding.tokens={self.tokens}")

    def rehearse(self, texts: Sequence[str]) -> None:
        """Translate the longest texts, one batch per worker, to check that they fit in memory."""
        sources = [segment.ids for text in texts for segment in self._segment(text).segments]
        if sources:
            longest = islice(self._batches(sources, range(len(sources))), self.workers)
            self._translate_rows([sources[i] for i in chain.from_iterable(longest)], lambda share: None)

    def _batches(self, sources: list[list[int]], numbers: Sequence[int]) -> deque[list[int]]:
        """Return the numbers of the sentences of each batch; on a CPU independent of the number of threads."""
        # Each hypothesis has logits of the whole vocabulary: a batch must not have too many short sentences.
        lengths = [max(len(sources[i]) + 1, _MIN_LENGTH) for i in numbers]
        ceiling = self.tokens // self.search.width
        if self.device.type == "cpu":
            least = _DEFAULT_WORKERS * min(2, sum(lengths) // (_CPU_BATCH_TOKENS * _DEFAULT_WORKERS))
            batches = evenly_longest_first(lengths, ceiling, least, _DEFAULT_WORKERS)
        else:
            batches = longest_first(lengths, ceiling)
        return deque([numbers[i] for i in rows] for rows in batches)

    def _search_best(self, sources: list[list[int]]) -> list[Hypothesis] | None:
        """Return the best hypothesis of each source; None if they do not fit in memory."""
        source, lengths = Flat.of(sources).ended()
        self.model.eval()
        try:
            with torch.inference_mode():
                results = self.search.search(self.model, source.to(self.device), lengths.to(self.device), scored=False)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error) or len(sources) == 1:
                raise
            return None
        if not all(results):
            raise CheckpointError(
                "the model's scores are not finite (NaN or inf), so that no translation is the best: its weights are "
                "too large or damaged; take another checkpoint, or decoding.precision=fp32 if it was another"
            )
        return [hypotheses[0] for hypotheses in results]


def _as_list(texts: object) -> list[str]:
    """Return the texts as a list; TypeError unless it is a str or an iterable of them."""
    if isinstance(texts, str):
        return [texts]
    if not isinstance(texts, Iterable):
        raise TypeError(f"texts must be a str or several of them, as in ['A sentence.'], not {type(texts).__name__}")
    listed = list(texts)
    for number, text in enumerate(listed):
        if not isinstance(text, str):
            raise TypeError(f"texts[{number}] must be a str, not {type(text).__name__}")
    return listed
