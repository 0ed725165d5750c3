"""Translate texts of any number and length: one translation for each, in order."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Generic, TypeVar

from tolka.engines.engine import Engine
from tolka.engines.options import DecodingConfig, resolved_split
from tolka.errors import ConfigError, DataError
from tolka.model_directory.manifest import LengthRatio
from tolka.search.hypothesis import NO_WISH, Rendered
from tolka.system.surrogates import is_utf8, printable
from tolka.text.characters import KEEP, CharacterForm
from tolka.text.direction import UNKNOWN, Direction
from tolka.text.windows import full_windows
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.translation.batch_decoder import BatchDecoder, Tick
from tolka.translation.batching import SharedCalls
from tolka.translation.flags import flags
from tolka.translation.quality import Calibration, Estimate, estimates
from tolka.translation.results import Candidate, Translation
from tolka.translation.scoring import ScoredPair, score_given
from tolka.translation.segments import LengthError, PrefixError, Segment, SegmentedText, Segmenter
from tolka.translation.terminology import Terminology, complaints

if TYPE_CHECKING:
    from tolka.engines.torch_engine import TorchEngine
    from tolka.model_directory.read import Folders, SavedModel
    from tolka.search.base import SearchConfig

_BROKEN = "\N{REPLACEMENT CHARACTER}"  # stands for what could not be read; training text may have it
_ROUNDS = 5  # searches of a segment again, at most, until no banned phrase is in its translation
_MOST_SHARED = 256  # texts that calls of several threads or tasks translate together, at most
_WAIT_SECONDS = 0.002  # of a text given to `translate_async`, for others
E = TypeVar("E", bound=Engine)


@dataclass(frozen=True)
class _Call:
    """What one call of `Translator.translate` asks for; prefixes: one for each text, or none at all."""

    texts: list[str]
    tick: Tick
    scored: bool
    prefixes: Sequence[str]

    @classmethod
    def of(cls, texts: object, tick: Tick, scored: bool, prefixes: Sequence[str]) -> "_Call":
        """Return the call; TypeError for what are no texts, ValueError for another number of prefixes."""
        listed = _as_list(texts)
        if isinstance(prefixes, str):
            raise TypeError(f"prefixes must be several texts, as in [{prefixes!r:.60}]")
        if prefixes and len(prefixes) != len(listed):
            raise ValueError(f"prefixes must be one for each text, and are {len(prefixes)} for {len(listed)}")
        return cls(listed, tick, scored, _checked(prefixes, "prefixes"))


class Translator(Generic[E]):
    """A model with its tokenizer and a search; what computes is its engine.

    translator = tolka.load("runs/sample")
    translator(["I love you.", "A lion sleeps."])  # a list of two translations

    It may be called from several threads and asyncio tasks. Calls that come while another one runs are translated
    together afterwards, up to 256 texts at once; a call with more texts runs by itself.
    """

    def __init__(
        self,
        engine: E,
        tokenizer: Tokenizer,
        max_length: int,
        tokens: int = DecodingConfig.tokens,
        characters: CharacterForm = KEEP,
        split: str = "length",
        direction: Direction = UNKNOWN,
        terminology: Terminology | None = None,
        calibration: Calibration | None = None,
        length_ratio: LengthRatio | None = None,
    ) -> None:
        """max_length: subwords of the longest part given to the model. tokens: see DecodingConfig.

        characters: their form in the model's training text. split: from `resolved_split`.
        direction: to split and join sentences. terminology: terms that translations
        must contain, for a search that considers them, and phrases that they must not. calibration: of the estimates
        of quality. length_ratio: of the training text, for `flags`.
        """
        self.engine = engine
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.characters = characters
        self.split, self.direction, self.terminology = split, direction, terminology
        self.calibration, self.length_ratio = calibration, length_ratio
        self.segmenter = Segmenter(tokenizer, max_length, characters, split, direction, terminology)
        self._decoder = BatchDecoder(engine, tokenizer, tokens, direction[1])
        self._calls = SharedCalls(self._translate, lambda call: len(call.texts), _MOST_SHARED, _WAIT_SECONDS)

    @staticmethod
    def load(
        folders: "Folders", search: "SearchConfig | None" = None, decoding: DecodingConfig | None = None
    ) -> "Translator[TorchEngine]":
        """Load a model or a run directory, or several as an ensemble, to compute with torch.

        The defaults are beam search of 5 on the best device. `tolka.load` also takes models of other programs, and
        CTranslate2 to compute with.
        """
        from tolka.formats.any_model import load_any
        from tolka.search.beam import BeamConfig

        decoding = decoding or DecodingConfig()
        return Translator.of(load_any(folders, to_translate=True), search or BeamConfig(), decoding)

    @staticmethod
    def of(saved: "SavedModel", search: "SearchConfig", decoding: DecodingConfig) -> "Translator[TorchEngine]":
        """Build a translator from a loaded model directory."""
        from tolka.engines.torch_engine import TorchEngine
        from tolka.model_directory.read import character_form, direction_of

        if decoding.backend == "ctranslate2":
            raise ConfigError("decoding.backend=ctranslate2 is not for this: it computes with torch; leave it out")
        max_length = decoding.max_length or saved.sources.longest
        limits = max_length, decoding.tokens, character_form(saved.config)
        engine = TorchEngine.of(saved.model, search, decoding)
        split = resolved_split(decoding.split, saved.sources.several_sentences)
        direction = direction_of(saved.config)
        terminology = Terminology.of(search, saved.tokenizer, limits[2], direction, decoding.line_limit)
        others = terminology, Calibration.of(saved.scores), saved.sources.length_ratio
        return Translator(engine, saved.tokenizer, *limits, split, direction, *others)

    def __repr__(self) -> str:
        direction = f"{self.direction}, " if self.direction.is_known else ""
        return f"Translator({direction}{self.engine}, split={self.split!r}, max_length={self.max_length})"

    @property
    def tokens(self) -> int:
        """The ceiling on a batch, as in DecodingConfig; halved whenever a batch did not fit in memory."""
        return self._decoder.tokens

    def __call__(self, texts: str | Iterable[str], tick: Tick = lambda share: None) -> list[str]:
        """Translate each text, in order; a blank text stays blank. A str is one text. TypeError for other types."""
        return [translation.text for translation in self.translate(texts, tick, scored=False)]

    def translate(
        self,
        texts: str | Iterable[str],
        tick: Tick = lambda share: None,
        scored: bool = True,
        prefixes: Sequence[str] = (),
    ) -> list[Translation]:
        """Translate each text and return details. tick: is called after each batch with its share of the texts.

        scored: whether scores are needed; greedy search is faster without. prefixes: the beginning of each
        translation, "" where it is free; none at all by default. PrefixError if one is longer than its translation may
        be, LengthError if a text is longer than what the engine can compute.
        """
        return self._calls.call(_Call.of(texts, tick, scored, prefixes))

    async def translate_async(
        self, texts: str | Iterable[str], scored: bool = True, prefixes: Sequence[str] = ()
    ) -> list[Translation]:
        """Translate as `translate` does, without blocking the event loop.

        Texts of several tasks are translated together: a call waits 2 ms for others, or until those before it are done.
        """
        call = _Call.of(texts, lambda share: None, scored, prefixes)
        return await asyncio.wrap_future(self._calls.submit(call))

    def stream(
        self, texts: str | Iterable[str], window: int = DecodingConfig.window, scored: bool = True
    ) -> Iterator[Translation]:
        """Yield the translation of each text, in order; read `window` texts at a time, and no more than are needed."""
        for each in full_windows([texts] if isinstance(texts, str) else texts, window):
            yield from self.translate(each, scored=scored)

    def score(self, pairs: Iterable[tuple[str, str]], tick: Tick = lambda share: None) -> list[ScoredPair]:
        """Return the log-probability, in nats, of each target given its source: of the whole and of each token.

        pairs: (source, target). Sentences are scored one by one where texts are translated so and both sides have as
        many; any other pair is scored as a whole, however long it is.
        """
        listed = list(pairs)
        for number, pair in enumerate(listed):
            if isinstance(pair, str) or len(pair) != 2:
                raise TypeError(f"pairs[{number}] must be a source and a target, and not {pair!r:.60}")
        sources, targets = ([pair[side] for pair in listed] for side in (0, 1))
        return score_given(self, _checked(sources, "sources"), _checked(targets, "targets"), tick)

    def align(
        self: "Translator[TorchEngine]", translations: Sequence[Translation | Candidate]
    ) -> list[list[tuple[int, int]]]:
        """Return the word alignment of each translation: (source word, target word), numbered from 0.

        It is read from the attention of the last decoder layer to the source, which another forward pass computes.
        ConfigError for a model without such attention, for an ensemble, and where CTranslate2 computes.
        """
        if not self.engine.has_attention:
            raise ConfigError(
                f"word alignments are read from a model's attention, which {type(self.engine).__name__} does not have: "
                "load the model directory with decoding.backend=torch"
            )
        from tolka.translation.attention_maps import AttentionReader, word_alignment

        return [word_alignment(maps) for maps in AttentionReader(self)(translations)]

    def quality(self, translations: Sequence[Translation]) -> list[Estimate | None]:
        """Return an estimate of the quality of each translation, as tolka.translation.quality describes it."""
        return estimates(self, translations, self.calibration)

    def flags(
        self, sources: Sequence[str], translations: Sequence[Translation], quality: Sequence[Estimate | None] = ()
    ) -> list[list[str]]:
        """Return what a person should check in each translation, as tolka.translation.flags describes it.

        quality: from `quality`; without it, no translation is flagged for it.
        """
        estimated = quality or [None] * len(sources)
        each = zip(sources, translations, estimated, strict=True)
        return [flags(source, translation, estimate, self.length_ratio) for source, translation, estimate in each]

    def _translate(self, calls: Sequence[_Call]) -> list[list[Translation]]:
        """Translate the texts of several calls together."""
        texts = [
            self.segmenter.segmented(text, prefix)
            for call in calls
            for text, prefix in zip(call.texts, call.prefixes or [""] * len(call.texts), strict=True)
        ]
        self._check_lengths(texts)
        segments = [segment for text in texts for segment in text.segments]
        share = len(texts) / max(1, len(segments))
        # Of several calls each learns of its progress at its end.
        tick: Tick = (lambda count: calls[0].tick(count * share)) if len(calls) == 1 else (lambda count: None)
        scored = any(call.scored for call in calls)
        found = self._decoder.translate(segments, tick, scored)
        results = iter(self._without_banned(segments, found, scored))
        joined = iter([self._join(text, list(islice(results, len(text.segments)))) for text in texts])
        for call in calls if len(calls) > 1 else ():
            call.tick(len(call.texts))
        return [list(islice(joined, len(call.texts))) for call in calls]

    def _check_lengths(self, texts: Sequence[SegmentedText]) -> None:
        """Raise LengthError for a segment that is too long, PrefixError for a prefix longer than its translation."""
        for number, text in enumerate(texts):
            self._check_sentence(number, max((len(segment.ids) for segment in text.segments), default=0))
            if text.segments and (prefix := text.segments[0].wish.prefix):
                longest = self.engine.longest_translation(len(text.segments[0].ids))
                if longest is not None and len(prefix) > longest:
                    raise PrefixError(number, len(prefix), longest)

    def _check_sentence(self, number: int, length: int) -> None:
        """Raise LengthError if a sentence of a text is too long for the engine."""
        longest = self.engine.longest_sentence
        if longest is not None and length > longest:
            raise LengthError(number, length, longest)

    def _join(self, text: SegmentedText, results: Sequence[Sequence[Rendered]]) -> Translation:
        """Join the translations of a text's segments: the best ones of all, then the second ones, and so on.

        A segment with fewer of them has its last one in all further places. Of equal texts, the first one is kept.
        """
        candidates = dict[str, Candidate]()
        for place in range(max(map(len, results), default=1)):
            chosen = [each[min(place, len(each) - 1)] for each in results]
            pairs = list(zip(text.segments, chosen, strict=True))
            parts = [(segment, self._without_broken(segment, part)) for segment, (part, _) in pairs]
            joined = "".join(segment.separator + part for segment, part in parts)
            candidate = Candidate(
                joined,
                [(segment.ids, hypothesis.tokens) for segment, (_, hypothesis) in pairs],
                sum(hypothesis.score for _, hypothesis in chosen),
                all(hypothesis.finished for _, hypothesis in chosen),
                sum(hypothesis.log_probability for _, hypothesis in chosen),
                *complaints(self.terminology, joined, [(segment.matches, part) for segment, part in parts]),
            )
            candidates.setdefault(joined, candidate)
        return Translation(list(candidates.values()), text.too_long, text.sentences, self.split)

    def _without_broken(self, segment: Segment, part: str) -> str:
        """Return the translation of a segment without U+FFFD, unless its source or prefix has that."""
        if _BROKEN not in part:
            return part
        given = self.tokenizer.decode_source([segment.ids]) + self.tokenizer.decode_target([segment.wish.prefix])
        return part if _BROKEN in "".join(given) else part.replace(_BROKEN, "")

    def _without_banned(
        self, segments: Sequence[Segment], results: list[list[Rendered]], scored: bool
    ) -> list[list[Rendered]]:
        """Translate segments again whose translations spell a banned phrase in other subwords, banning those too."""
        if self.terminology is None:
            return results
        for _ in range(_ROUNDS):
            again = dict[int, Segment]()
            for number, (segment, found) in enumerate(zip(segments, results, strict=True)):
                parts = [self.terminology.banned_spellings(text, each.tokens) for text, each in found]
                spellings = dict.fromkeys(chain.from_iterable(parts))
                if new := tuple(each for each in spellings if each not in segment.wish.banned):
                    wish = replace(segment.wish, banned=(*segment.wish.banned, *new))
                    again[number] = replace(segment, wish=wish)
            if not again:
                break
            segments = [again.get(number, segment) for number, segment in enumerate(segments)]
            found_again = self._decoder.translate(list(again.values()), lambda share: None, scored)
            for number, found in zip(again, found_again, strict=True):
                results[number] = found
        return results

    def token_scores(
        self, pairs: Sequence[tuple[list[int], list[int]]], tick: Tick = lambda share: None
    ) -> list[list[float]]:
        """Return the log-probability, in nats, of each target token and of `</s>`, for segments of ids, in order.

        tick: is called after each batch with the number of its segments. LengthError if one is too long.
        """
        for number, (source, target) in enumerate(pairs):
            self._check_sentence(number, max(len(source), len(target)))
        return self._decoder.token_scores(pairs, tick)

    def rehearse(self, texts: Sequence[str]) -> None:
        """Translate the longest texts, one batch per worker, to check that they fit in memory."""
        segments = [replace(each, wish=NO_WISH) for text in texts for each in self.segmenter.segmented(text).segments]
        if segments:
            self._decoder.translate(self._decoder.longest(segments), lambda share: None, scored=False)


def _as_list(texts: object) -> list[str]:
    """Return the texts as a list; TypeError unless they are a str or an iterable of them."""
    if isinstance(texts, str):
        return _checked([texts], "texts")
    if not isinstance(texts, Iterable):
        raise TypeError(f"texts must be a str or several of them, as in ['A sentence.'], not {type(texts).__name__}")
    return _checked(list(texts), "texts")


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
