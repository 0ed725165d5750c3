"""Translate texts of any number and length: one translation for each, in order."""

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from tolka.engines.engine import Engine
from tolka.engines.options import DecodingConfig, resolved_split
from tolka.errors import ConfigError, DataError
from tolka.model_directory.facts import ModelFacts
from tolka.model_directory.verify import QUALITY, LengthRatio
from tolka.search.hypothesis import Rendered, check_prefix
from tolka.search.options import BeamConfig, SamplingConfig, SearchConfig
from tolka.system.progress import Say, silent
from tolka.system.surrogates import is_utf8, printable
from tolka.text.characters import CharacterForm
from tolka.text.direction import Direction, is_named
from tolka.text.windows import full_windows
from tolka.tokenizer.language_tags import check_known, tags_of
from tolka.translation.attention_maps import AttentionMap, attention_maps, word_alignment
from tolka.translation.batch_decoder import BatchDecoder, Tick
from tolka.translation.batching import SharedCalls
from tolka.translation.flags import flags
from tolka.translation.quality import Calibration, Estimate, estimate, features_of
from tolka.translation.request import Request, ResolvedRequest
from tolka.translation.results import Candidate, Translation
from tolka.translation.scoring import ScoredPair, score_given
from tolka.translation.segments import Segment, SegmentedText, Segmenter, TextError
from tolka.translation.terminology import Terminology

if TYPE_CHECKING:
    from tolka.engines.torch_engine import TorchEngine
    from tolka.model_directory.read import SavedModel

_MAX_REPEATS = 5  # further searches for a segment in whose translation a banned phrase was spelt otherwise
_MAX_TERMINOLOGIES = 8  # glossaries of the latest requests that are cached
_MAX_SHARED = 256  # texts that calls of several threads or tasks translate together
_WAIT_SECONDS = 0.002  # of a text given to `translate_async`, for others
E = TypeVar("E", bound=Engine)


@dataclass(frozen=True)
class _Call:
    """One call of `Translator.translate`."""

    texts: list[str]
    request: ResolvedRequest
    tick: Tick


class Translator(Generic[E]):
    """A model with its tokenizer, on an engine that computes; a `Request` may come with each call.

        translator = tolka.load("runs/sample")
        translator(["I love you.", "A lion sleeps."])  # a list of two translations

    It may be called from several threads and asyncio tasks; those that wait for one another share batches, up to 256
    texts at once, if their requests are alike. It can be pickled where it was loaded from a folder, which unpickling
    loads again.
    """

    def __init__(
        self, engine: E, facts: ModelFacts, request: Request, decoding: DecodingConfig | None = None, say: Say = silent
    ) -> None:
        """request: the defaults of a call. say: receives notes."""
        decoding = decoding or DecodingConfig()
        self.engine, self.tokenizer, self._facts, self._decoding = engine, facts.tokenizer, facts, decoding
        self._characters, self.directions, self.verdict = facts.characters, facts.directions, facts.verdict
        # Segments longer than any source in the training text are split: the model has not learnt such lengths.
        self.max_length = min(decoding.max_length or facts.sources.longest, engine.longest_sentence or sys.maxsize)
        if decoding.max_length > self.max_length:
            say(
                f"note: decoding.max_length={decoding.max_length} is {self.max_length}, as CTranslate2 has no more "
                "positions"
            )
        self.split = resolved_split(decoding.split, facts.sources.several_sentences)
        self._calibrations = Calibration.by_direction({QUALITY: facts.quality})
        self.request = request.resolved(ResolvedRequest(BeamConfig(), facts.usual_direction))
        # A model of many languages may be opened without a direction, which then comes with each call.
        if not self.tokenizer.languages or all(map(is_named, self.request.direction)):
            self._check_request(self.request)
        self.loaded_by: Callable[[], Translator[E]] | None = None
        self.with_torch: Callable[[], Translator[Any]] | None = None
        """loads the model with torch, for requests that the engine does not support"""
        self._decoder = BatchDecoder(engine, self.tokenizer, decoding.batch_tokens(engine.gpu_memory), say)
        self.window = decoding.window_lines(on_gpu=engine.gpu_memory > 0)
        self._terminologies: list[Terminology] = []
        self._calls = SharedCalls(
            self._translate, lambda call: len(call.texts), _MAX_SHARED, _WAIT_SECONDS, engine.calls_at_once
        )

    @staticmethod
    def of(
        saved: "SavedModel", search: SearchConfig, decoding: DecodingConfig, say: Say = silent
    ) -> "Translator[TorchEngine]":
        """Build a translator from a loaded model directory."""
        from tolka.engines.torch_engine import TorchEngine

        if decoding.backend == "ctranslate2":
            raise ConfigError("decoding.backend=ctranslate2 is not for this: it computes with torch; leave it out")
        direction = saved.facts.direction(decoding.source, decoding.target)
        request = Request.of(search, direction, decoding.line_limit)
        return Translator(TorchEngine.of(saved.model, decoding), saved.facts, request, decoding, say)

    def __repr__(self) -> str:
        direction = f"{self.direction}, " if self.direction.is_known else ""
        search = self.request.search
        return f"Translator({direction}{self.engine}, {search}, split={self.split!r}, max_length={self.max_length})"

    def __reduce__(self) -> "tuple[Callable[[], Translator[E]], tuple[()]]":
        """Return the call that loads the translator again; TypeError if the model was not loaded from a folder."""
        if self.loaded_by is None:
            raise TypeError("this translator's model is only in memory: pickle one that tolka.load has loaded")
        return self.loaded_by, ()

    @property
    def tokens(self) -> int:
        """The ceiling on a batch, as in DecodingConfig; halved after each batch that did not fit in memory."""
        return self._decoder.tokens

    @property
    def direction(self) -> Direction:
        """The direction of a call that names none."""
        return self.request.direction

    def for_direction(self, direction: Direction) -> "Translator[E]":
        """Return a translator of the same model, whose calls that name no direction are in this one; loads nothing.

        ConfigError for a direction that the model does not have.
        """
        request = Request(self.request.search, direction, self.request.glossary, self.request.banned)
        other = Translator(self.engine, self._facts, request, self._decoding)
        other._check_request(other.request)
        # One ceiling on batches, and one queue of calls, for one engine.
        other._decoder, other._calls, other.with_torch = self._decoder, self._calls, self.with_torch
        if self.loaded_by is not None:
            other.loaded_by = partial(_loaded_for, self.loaded_by, direction)
        return other

    @property
    def characters(self) -> CharacterForm:
        """The form of characters in the training text of this direction."""
        return self._characters.of(self.direction)

    @property
    def length_ratio(self) -> LengthRatio | None:
        """The ratio of lengths in the training text of this direction, if it is known."""
        return self._facts.sources.length_ratios.get(self.direction)

    @property
    def calibration(self) -> Calibration | None:
        """The calibration of quality estimates for this direction, if there is one."""
        return self._calibrations.get(str(self.direction)) or self._calibrations.get("")

    def __call__(
        self, texts: str | Iterable[str], request: Request | None = None, tick: Tick = lambda share: None
    ) -> list[str]:
        """Translate each text, in order; a blank text stays blank. A str is one text. TypeError for other types."""
        call = self._call(texts, request, tick)
        # Only texts are returned: greedy search is faster without scores.
        unscored = replace(call, request=replace(call.request, scored=False))
        return [translation.text for translation in self._calls.call(unscored)]

    def translate(
        self, texts: str | Iterable[str], request: Request | None = None, tick: Tick = lambda share: None
    ) -> list[Translation]:
        """Translate each text and return details. tick: receives each batch's share of the texts.

        request: options that differ from the translator's. ConfigError for options that the model or its engine does
        not support, TextError for a prefix that is longer than its translation may be, and for a text that is longer
        than the engine can compute.
        """
        return self._calls.call(self._call(texts, request, tick))

    async def translate_async(self, texts: str | Iterable[str], request: Request | None = None) -> list[Translation]:
        """Translate as `translate` does, without blocking the event loop; calls of several tasks share batches.

        A call waits 2 ms for others, or until those before it have finished.
        """
        return await asyncio.wrap_future(self._calls.submit(self._call(texts, request, lambda share: None)))

    def stream(
        self,
        texts: str | Iterable[str],
        window: int = 0,
        request: Request | None = None,
        tick: Tick = lambda share: None,
    ) -> Iterator[Translation]:
        """Yield the translation of each text, in order; at most `window` texts are read ahead, 0 = decoding.window.

        request, tick: as for `translate`, without prefixes.
        """
        for each in full_windows([texts] if isinstance(texts, str) else texts, window or self.window):
            yield from self.translate(each, request, tick=tick)

    def score(self, pairs: Iterable[tuple[str, str]], tick: Tick = lambda share: None) -> list[ScoredPair]:
        """Return the log-probability, in nats, of each target given its source: of the whole and of each token.

        pairs: (source, target), as `score_given` takes them.
        """
        listed = list(pairs)
        for number, pair in enumerate(listed):
            if isinstance(pair, str) or len(pair) != 2:
                raise TypeError(f"pairs[{number}] must be a source and a target, and not {pair!r:.60}")
        sources, targets = ([pair[side] for pair in listed] for side in (0, 1))
        texts = _checked(sources, "sources"), _checked(targets, "targets")
        return score_given(self._segmenter(self.request), self, *texts, tick)

    def align(self, translations: Sequence[Translation | Candidate]) -> list[list[tuple[int, int]]]:
        """Return the word alignment of each translation: (source word, target word), numbered from 0.

        It comes from the last decoder layer's cross-attention, in another forward pass. ConfigError for a model without
        cross-attention and for an ensemble.
        """
        return [word_alignment(maps) for maps in self.attention(translations)]

    def attention(
        self, translations: Sequence[Translation | Candidate], *, with_gradients: bool = True
    ) -> list[list[AttentionMap]]:
        """Return the attention maps of each translation, one for each segment: means over the heads.

        with_gradients: of a model without cross-attention, whether they are gradients, and not a ConfigError, which an
        ensemble raises in any case.
        """
        model = self.engine, self.tokenizer, self.direction
        return attention_maps(*model, translations, self.tokens, with_gradients=with_gradients)

    def quality(self, translations: Sequence[Translation]) -> list[Estimate | None]:
        """Return an estimate of the quality of each translation; see tolka.translation.quality.

        None for that of a blank text.
        """
        return [None if each is None else estimate(each, self.calibration) for each in features_of(self, translations)]

    def flags(
        self, sources: Sequence[str], translations: Sequence[Translation], quality: Sequence[Estimate | None] = ()
    ) -> list[list[str]]:
        """Return the flags of each translation, for a person to check; see tolka.translation.flags.

        quality: from `quality`; without it, no translation has the flag low_confidence.
        """
        estimated = quality or [None] * len(sources)
        triples = zip(sources, translations, estimated, strict=True)
        return [flags(source, translation, estimate, self.length_ratio) for source, translation, estimate in triples]

    def _call(self, texts: object, request: Request | None, tick: Tick) -> _Call:
        """Return the call; TypeError unless texts are texts, ValueError unless each has a prefix or none has."""
        if request is not None and not isinstance(request, Request):
            raise TypeError(f"request must be a tolka.Request, not {type(request).__name__}")
        resolved = self.request if request is None else request.resolved(self.request)
        self._check_request(resolved)
        # Between two others no text need have been there. A tag of the same language is scored, to begin another as it.
        source, target = resolved.direction
        if source and source == target and self.directions and resolved.direction not in self.directions:
            self._refuse(resolved.direction)
        if not isinstance(texts, Iterable):
            kind = type(texts).__name__
            raise TypeError(f"texts must be a str or several of them, as in ['A sentence.'], not {kind}")
        listed = _checked([texts] if isinstance(texts, str) else list(texts), "texts")
        prefixes = _checked(resolved.prefixes, "prefixes")
        if prefixes and len(prefixes) != len(listed):
            raise ValueError(f"prefixes must be one for each text, and are {len(prefixes)} for {len(listed)}")
        return _Call(listed, resolved, tick)

    def _check_request(self, request: ResolvedRequest) -> None:
        """Raise ConfigError for a direction or a search that the model or its engine does not have."""
        if self.tokenizer.languages:
            self.tokenizer.tags(request.direction)
            # Of the target alone there may be a tag; a source that no text had would be translated all the same.
            known = {*self.tokenizer.languages, *chain.from_iterable(self.directions)}
            check_known("source", request.direction.source, known)
        elif self.directions and request.direction not in self.directions:
            if typed := self.tokenizer.typed_tags:
                tags_of(request.direction, {}, typed, "target")  # raises its ConfigError
            else:
                self._refuse(request.direction)
        if (reason := self._lacks(request)) and self.with_torch is None:
            raise ConfigError(reason)

    def _lacks(self, request: ResolvedRequest) -> str:
        return self.engine.lacks(request.search, has_terms=bool(request.glossary or request.banned))

    def _refuse(self, direction: Direction) -> NoReturn:
        known = ", ".join(map(str, self.directions))
        raise ConfigError(f"the model does not translate from {direction}; it knows: {known}")

    def _terminology(self, request: ResolvedRequest) -> Terminology:
        """Return the terms and banned phrases of a request, as the tokenizer spells them."""
        terms, form = (request.glossary, request.banned), self._characters.of(request.direction)
        kept = (known for known in self._terminologies if known.terms == terms and known.characters == form)
        terminology = next(kept, None)
        if terminology is None:  # its trees and spellings take longer than a sentence's translation
            terminology = Terminology(*terms, self.tokenizer, form)
            # A new list, since other threads may be reading the old one.
            self._terminologies = [terminology, *self._terminologies[: _MAX_TERMINOLOGIES - 1]]
        return terminology

    def _segmenter(self, request: ResolvedRequest) -> Segmenter:
        """Return the segmenter for the texts of a request."""
        limits = self.tokenizer, self.max_length, self._characters.of(request.direction), self.split
        return Segmenter(*limits, request.direction, self._terminology(request))

    def _translate(self, calls: Sequence[_Call]) -> list[list[Translation]]:
        """Translate the texts of several calls, those with like requests together."""
        results: dict[int, list[Translation]] = {}
        for number, call in enumerate(calls):
            if number not in results:
                alike = [n for n, each in enumerate(calls) if n not in results and each.request == call.request]
                # With torch a seed gives the same samples whatever else is translated.
                is_for_torch = self._lacks(call.request) or isinstance(call.request.search, SamplingConfig)
                translator = self.with_torch() if self.with_torch and is_for_torch else self
                results |= zip(alike, translator._translate_alike([calls[n] for n in alike]), strict=True)
        return [results[number] for number in range(len(calls))]

    def _translate_alike(self, calls: Sequence[_Call]) -> list[list[Translation]]:
        """Translate the texts of calls with like requests."""
        request = replace(calls[0].request, scored=any(call.request.scored for call in calls))
        segmenter = self._segmenter(request)
        texts = [
            segmenter.segment(text, prefix)
            for call in calls
            for text, prefix in zip(call.texts, call.request.prefixes or [""] * len(call.texts), strict=True)
        ]
        self._check_lengths(texts, request.search)
        segments = [segment for text in texts for segment in text.segments]
        share = len(texts) / max(1, len(segments))
        # The segments of several calls are mixed in batches: each call is told once, at the end.
        tick: Tick = (lambda count: calls[0].tick(count * share)) if len(calls) == 1 else (lambda count: None)
        hypotheses = self._decoder.translate(segments, request, tick)
        if request.banned:
            hypotheses = self._without_banned(segments, hypotheses, request)
        remaining = iter(hypotheses)
        translations = [segmenter.join(text, list(islice(remaining, len(text.segments)))) for text in texts]
        for call in calls if len(calls) > 1 else ():
            call.tick(len(call.texts))
        ordered = iter(translations)
        return [list(islice(ordered, len(call.texts))) for call in calls]

    def _check_lengths(self, texts: Sequence[SegmentedText], search: SearchConfig) -> None:
        """Raise TextError for a segment that is too long, and for a prefix longer than its translation."""
        for number, text in enumerate(texts):
            self._check_sentence(number, max((len(segment.ids) for segment in text.segments), default=0))
            # Only the first segment has a prefix.
            if text.segments and (prefix := text.segments[0].wish.prefix):
                longest = self.engine.longest_translation(search, len(text.segments[0].ids))
                try:
                    check_prefix(prefix, longest + 1)
                except DataError as error:
                    raise TextError(number, str(error), of_prefix=True) from None

    def _check_sentence(self, number: int, length: int) -> None:
        """Raise TextError if a sentence of a text is too long for the engine."""
        longest = self.engine.longest_sentence
        if longest is not None and length > longest:
            raise TextError(
                number,
                f"a sentence of {length} subwords is too long for CTranslate2, which takes at most {longest} with this "
                "model: leave out decoding.split=never, so that lines are cut, or give shorter ones (--score cuts "
                "none), or take decoding.backend=torch, with a model directory",
            )

    def _without_banned(
        self, segments: Sequence[Segment], results: list[list[Rendered]], request: ResolvedRequest
    ) -> list[list[Rendered]]:
        """Translate segments again whose translations spell a banned phrase in other subwords than the tokenizer's.

        Each such spelling is banned as well; there are far too many to ban all of them beforehand.
        """
        terminology = self._terminology(request)
        for _ in range(_MAX_REPEATS):
            again = dict[int, Segment]()
            for number, (segment, rendered) in enumerate(zip(segments, results, strict=True)):
                of_each = [terminology.banned_spellings(text, hypothesis.tokens) for text, hypothesis in rendered]
                spellings = dict.fromkeys(chain.from_iterable(of_each))
                if new := tuple(each for each in spellings if each not in segment.wish.banned):
                    wish = replace(segment.wish, banned=(*segment.wish.banned, *new))
                    again[number] = replace(segment, wish=wish)
            if not again:
                break
            segments = [again.get(number, segment) for number, segment in enumerate(segments)]
            repeated = self._decoder.translate(list(again.values()), request, lambda share: None)
            for number, rendered in zip(again, repeated, strict=True):
                results[number] = rendered
        return results

    def token_scores(
        self, pairs: Sequence[tuple[list[int], list[int]]], tick: Tick = lambda share: None
    ) -> list[list[float]]:
        """Return the log-probability, in nats, of each target token and of `</s>`, for segments of ids, in order.

        tick: receives the number of each batch's segments. TextError if one is too long for the engine.
        """
        for number, (source, target) in enumerate(pairs):
            self._check_sentence(number, max(len(source), len(target)))
        return self._decoder.token_scores(pairs, self.direction, tick)

    def rehearse(self, texts: Sequence[str], request: Request | None = None) -> None:
        """Translate the longest segments, one batch per worker, to check that they fit in memory."""
        resolved = self._call([], request, lambda share: None).request
        segmenter = self._segmenter(replace(resolved, glossary=(), banned=()))
        segments = [each for text in texts for each in segmenter.segment(text).segments]
        self._decoder.rehearse(segments, replace(resolved, scored=False))


def _loaded_for(load: Callable[[], Translator[E]], direction: Direction) -> Translator[E]:
    """Load a translator again as `for_direction` returned it."""
    return load().for_direction(direction)


def _checked(texts: Sequence[str], name: str) -> list[str]:
    """Return the texts; TypeError unless each is a str, DataError for half a character. name: of their argument."""
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{name}[{number}] must be a str, not {type(text).__name__}")
        if not is_utf8(text):
            raise DataError(
                f"{name}[{number}] ('{printable(text):.60}') has half a character in it, a lone surrogate: "
                "read the text as UTF-8, or replace it"
            )
    return list(texts)
