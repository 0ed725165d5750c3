"""The translator: texts in, translations out, one for each, in order."""

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
from tolka.translation.dtypes import check_format, in_format
from tolka.translation.options import DecodingConfig, resolved_split
from tolka.translation.splitting import best_cut, rejoining, sentences

_SHORTEST = 16  # pieces that a sentence counts in a batch, at least
_MOST_WORKERS = 2  # unless told otherwise, as each takes as much memory
_ENOUGH = 4096  # tokens of a batch on a CPU: more are hardly faster, and what is left at the end is harder to divide
Tick = Callable[[float], object]


@dataclass(frozen=True)
class Translation:
    """The translation of one text.

    segments: the parts translated at once, none for a blank text: source ids and target ids, without `</s>`. complete:
    whether every part reached its end. too_long: whether a part was split because it was longer than the model was
    trained for. sentences: how many the source has. split: as `resolved_split` returns it.
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
    """A part of a text that fits the model. glue: what stands between its translation and the one before."""

    glue: str
    ids: list[int]


@dataclass(frozen=True)
class _Source:
    """A text to translate: its parts, its number of sentences, and whether one of them was too long."""

    segments: list[_Segment]
    sentences: int
    too_long: bool


@dataclass(frozen=True)
class _Begun:
    """A batch in progress: the sentences' numbers, their hypotheses, and the token ceiling that it was made with."""

    numbers: list[int]
    found: Future[list[Hypothesis] | None]
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

        unicode: the form that the model reads; see CleaningConfig. split: from `resolved_split`. languages: the codes
        of source and target, for sentence marks and the whitespace between sentences.
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
        self.workers = (workers or min(torch.get_num_threads(), _MOST_WORKERS)) if on_cpu else 1

    @classmethod
    def load(
        cls, folders: Folders, search: SearchConfig | None = None, decoding: DecodingConfig | None = None
    ) -> "Translator":
        """Load a model or a run directory, or several as an ensemble (`models/ensemble.py`).

        Beam search of 5 on the best device unless told otherwise.
        """
        return cls.of(load_ensemble(folders), search or BeamConfig(), decoding or DecodingConfig())

    @classmethod
    def of(cls, saved: SavedModel, search: SearchConfig, decoding: DecodingConfig) -> "Translator":
        """Return a translator for a directory that was read already."""
        use_threads(decoding.threads)
        device = choose_device(decoding.device, "decoding.device")
        max_length = decoding.max_length or saved.sources.longest
        unicode = unicode_form(saved.config)
        check_format(decoding.precision, device, "decoding.precision")
        if decoding.workers > 1 and device.type != "cpu":
            raise ConfigError(f"decoding.workers ({decoding.workers}) is for a CPU, not {device}: leave it out")
        model = in_format(saved.model.to(device), decoding.precision)
        split = resolved_split(decoding.split, saved.sources.several_sentences)
        limits = max_length, decoding.tokens, unicode, decoding.workers
        return cls(model, saved.tokenizer, search, device, *limits, split, languages(saved.config))

    def __repr__(self) -> str:
        model, (source, target) = self.model.architecture, self.languages
        way = f"{source} to {target}, " if source and target else ""
        split = f"split={self.split!r}, max_length={self.max_length}"
        return f"Translator({model}, {way}{self.search}, {self.device}, {split})"

    def __call__(self, texts: str | Iterable[str], tick: Tick = lambda share: None) -> list[str]:
        """Return a translation for each text, in order; a blank text stays blank. A str is one text."""
        return [translation.text for translation in self.translate(texts, tick)]

    def translate(self, texts: str | Iterable[str], tick: Tick = lambda share: None) -> list[Translation]:
        """Return translations with details. tick: called after each batch with its share of the texts."""
        sources = [self._source(text) for text in _listed(texts)]
        rows = [segment.ids for source in sources for segment in source.segments]
        found = iter(self._search(rows, lambda done: tick(done / len(rows) * len(sources))))
        return [self._rejoined(source, list(islice(found, len(source.segments)))) for source in sources]

    def _rejoined(self, source: _Source, found: Sequence[tuple[str, Hypothesis]]) -> Translation:
        """Join the translations of one text's parts."""
        return Translation(
            "".join(segment.glue + text for segment, (text, _) in zip(source.segments, found, strict=True)),
            [(segment.ids, best.tokens) for segment, (_, best) in zip(source.segments, found, strict=True)],
            all(best.finished for _, best in found),
            source.too_long,
            source.sentences,
            self.split,
        )

    def _source(self, text: str) -> _Source:
        """Return the text's parts that fit; none for a blank text, which never reaches the model."""
        text = spelt(text.strip(), self.unicode)
        if not text:
            return _Source([], 0, False)
        found = sentences(text, self.languages[0])
        segments, glue, too_long = list[_Segment](), "", False
        for part in found if self.split == "sentences" else [text]:
            content = part.rstrip()
            segments += (own := list(self._split(content, glue)))
            glue = rejoining(part[len(content) :], True, self.languages[1])
            too_long |= len(own) > 1
        return _Source(segments, len(found), too_long)

    def _split(self, text: str, glue: str) -> Iterator[_Segment]:
        """Return parts with at most max_length subwords each, halved at the best place near the middle.

        A single character is never cut, however many bytes it is spelt in.
        """
        (ids,) = self.tokenizer.encode_source([text])
        cut = best_cut(text) if len(ids) > self.max_length and self.split != "never" else None
        if cut is None:
            yield _Segment(glue, ids)
            return
        yield from self._split(text[: cut.end], glue)
        yield from self._split(text[cut.start :], rejoining(text[cut.end : cut.start], cut.at_mark, self.languages[1]))

    def _search(self, sources: list[list[int]], tick: Tick) -> list[tuple[str, Hypothesis]]:
        """Return translations of id rows, in order, as text and ids; batched by length."""
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
                    self._lower_ceiling(batch, max(len(sources[i]) + 1 for i in batch.numbers))
                    left = self._batches(sources, [*batch.numbers, *chain.from_iterable(left)])
                    continue
                texts = self.tokenizer.decode_target([hypothesis.tokens for hypothesis in best])
                results.update(zip(batch.numbers, zip(texts, best, strict=True), strict=True))
                tick(len(batch.numbers))
        return [results[number] for number in range(len(sources))]

    def _lower_ceiling(self, batch: _Begun, longest: int) -> None:
        """Lower the ceiling after a batch, of sentences up to `longest`, that did not fit into memory."""
        empty_cache(self.device)
        if self.tokens == batch.tokens:  # else another of its size has failed already
            failed = len(batch.numbers) * longest * self.search.width
            self.tokens = max(1, min(self.tokens, failed) // 2)
            say(f"note: out of memory while translating: continuing with decoding.tokens={self.tokens}")

    def rehearse(self, texts: Sequence[str]) -> None:
        """Translate the longest sentences, as many as are decoded at once, to learn whether memory suffices."""
        sources = [segment.ids for text in texts for segment in self._source(text).segments]
        if sources:
            longest = islice(self._batches(sources, range(len(sources))), self.workers)
            self._search([sources[i] for i in chain.from_iterable(longest)], lambda share: None)

    def _batches(self, sources: list[list[int]], numbers: Sequence[int]) -> deque[list[int]]:
        """Return the numbers of the sentences of each batch; on a CPU the same for any number of threads."""
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
        """Return the best hypothesis of each; None where they do not fit into memory together."""
        source, lengths = Flat.of(sources).ended()
        self.model.eval()
        try:
            with torch.inference_mode():
                found = self.search.search(self.model, source.to(self.device), lengths.to(self.device), scored=False)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error) or len(sources) == 1:
                raise
            return None
        if not all(found):
            raise CheckpointError(
                "the model's scores are not finite (NaN or inf), so that no translation is the best: its weights are "
                "too large or damaged; take another checkpoint, or decoding.precision=fp32 if it was another"
            )
        return [hypotheses[0] for hypotheses in found]


def _listed(texts: object) -> list[str]:
    """Return a list of texts; TypeError for anything but a text or a sequence of them."""
    if isinstance(texts, str):
        return [texts]
    if not isinstance(texts, Iterable):
        raise TypeError(f"texts must be a str or several of them, as in ['A sentence.'], not {type(texts).__name__}")
    listed = list(texts)
    for number, text in enumerate(listed):
        if not isinstance(text, str):
            raise TypeError(f"texts[{number}] must be a str, not {type(text).__name__}")
    return listed
