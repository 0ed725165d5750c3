"""The engine that computes with CTranslate2, without torch.

Its beam search keeps and finishes hypotheses as tolka's does (`src/decoding.cc` of CTranslate2): twice beam_size
candidates a step, of which a hypothesis finishes among the first beam_size, until beam_size have. Its length penalty
only sorts them at the end, so that they are ranked here instead, by the rule of `BeamConfig.penalty`. Of those that
finish in the last step it returns only the most likely ones: where another could be better, the sentence is searched
again.
"""

import logging
import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tolka.engines.engine import NOT_FINITE, Engine
from tolka.engines.options import DecodingConfig
from tolka.errors import CheckpointError, ConfigError
from tolka.search.hypothesis import Hypothesis, Wish, check_prefix
from tolka.search.options import BeamConfig, GreedyConfig, SamplingConfig, SearchConfig, Selection
from tolka.system.progress import say
from tolka.tokenizer.special_tokens import BOS, EOS, PAD

_COMPUTE_TYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "int8": "int8"}
_UNRANKED = 1e-30  # a length penalty whose power is 1; without one, a search only ends with its best hypothesis
_NEVER = -1e9  # below it are scores of hypotheses that break off a forced prefix
_NO_MEMORY = ("out of memory", "bad_alloc", "failed to allocate")
_RULES = ("min_length", "no_repeat_ngram", "glossary", "banned")
_CPU_BATCH = 64  # sentences at once on a CPU: larger batches took up to 1.37 times the time on Intel with AMX
_WORKERS = 2  # batches side by side, as BatchDecoder has by default
_PROBED = 64  # subwords of a side, at most, that tell whether the model's scores are finite


@dataclass(frozen=True)
class Vocabulary:
    """Subwords of source and target in the order of their ids, and how many positions the model has."""

    source: Sequence[str]
    target: Sequence[str]
    positions: int


def unsupported(search: SearchConfig) -> str:
    """Return what CTranslate2 cannot do of a search as tolka does it, in words; "" if it can do all of it."""
    if type(search) not in (GreedyConfig, BeamConfig, SamplingConfig):
        return f"CTranslate2 has no search={getattr(search, 'name', type(search).__name__)}"
    for key in _RULES:
        if getattr(search, key):
            return f"CTranslate2 is not used with search.{key}"
    if isinstance(search, SamplingConfig):
        if search.epsilon:
            return "CTranslate2 has no search.epsilon"
        if search.top_k == 1:
            return "CTranslate2 does not sample with search.top_k=1, which is search=greedy"
        if search.top_k and search.top_p < 1.0:
            return "CTranslate2 applies search.top_p to the search.top_k tokens, and tolka to all"
    return ""


def unavailable(decoding: DecodingConfig, dtype: str = "float32") -> str:
    """Return why CTranslate2 does not compute on the device and in the dtype that the options select; "" if it does.

    dtype: as for `CTranslate2Engine.of`.
    """
    import ctranslate2

    try:
        device, index = _device(decoding.device, ctranslate2.get_cuda_device_count())
    except ConfigError as error:
        return str(error)
    if _compute_type(decoding, dtype) in ("default", *ctranslate2.get_supported_compute_types(device, index)):
        return ""
    return (
        f"decoding.precision={decoding.precision} is not available in CTranslate2 on this machine's {device}; "
        "try fp32 or int8"
    )


class CTranslate2Engine(Engine):
    """A model of CTranslate2's with greedy search, beam search or sampling.

    Hypotheses and scores are those of the torch engine but for rounding, with three exceptions: a hypothesis that ends
    right after a forced prefix is only considered where it is the most likely one; `<pad>` and `<s>` are forbidden in a
    second attempt, where they are in a result; and samples depend on what else is translated.
    """

    def __init__(self, translator: Any, vocabulary: Vocabulary, search: SearchConfig, threads: int) -> None:
        """translator: a ctranslate2.Translator. threads: on a CPU; 0 on another device.

        ConfigError for a search that CTranslate2 does not have.
        """
        if reason := unsupported(search):
            raise ConfigError(reason)
        self.translator, self.vocabulary, self.config = translator, vocabulary, search
        self._threads = threads
        self._batch_size = _CPU_BATCH if threads else 0  # 0 = as they are given
        self._ids = {piece: number for number, piece in enumerate(vocabulary.target)}

    @classmethod
    def of(
        cls,
        folder: Path,
        vocabulary: Vocabulary,
        dtype: str,
        search: SearchConfig,
        decoding: DecodingConfig,
        name: Path,
    ) -> "CTranslate2Engine":
        """Load a folder of CTranslate2's on the device and in the dtype that the options select.

        dtype: of the weights in it; if that is not float32, decoding.precision=fp32 keeps it. name: of the model, for
        messages. ConfigError for a device or dtype that is not to be had; CheckpointError where the folder is damaged.
        """
        import ctranslate2

        if reason := unavailable(decoding, dtype):
            raise ConfigError(reason)
        device, index = _device(decoding.device, ctranslate2.get_cuda_device_count())
        kind = _compute_type(decoding, dtype)
        threads = decoding.threads or _default_threads()
        workers = min(threads, _WORKERS)
        at_once = {"inter_threads": workers, "intra_threads": max(1, threads // workers)} if device == "cpu" else {}
        if isinstance(search, SamplingConfig):
            ctranslate2.set_random_seed(search.seed % 2**32)
        ctranslate2.set_log_level(logging.ERROR)  # the note below is its warning, in our words
        try:
            translator = ctranslate2.Translator(str(folder), device, device_index=index, compute_type=kind, **at_once)
        except Exception as error:  # of any kind, where bytes are made up
            raise CheckpointError(f"{name}: CTranslate2 cannot load it ({' '.join(str(error).split())})") from None
        if kind == "default" and not (actual := translator.compute_type).startswith(dtype):
            say(f"note: the weights are in {dtype}, and CTranslate2 computes in {actual} on this {device}")
        engine = cls(translator, vocabulary, search, threads if device == "cpu" else 0)
        if isinstance(search, GreedyConfig):
            engine._check_finite()
        return engine

    def __repr__(self) -> str:
        return f"CTranslate2 ({self.translator.compute_type}), {self.config}, {self.translator.device}"

    @property
    def width(self) -> int:
        return self.config.width

    @property
    def cpu_threads(self) -> int:
        return self._threads

    @property
    def longest_sentence(self) -> int:
        return self.vocabulary.positions - 1

    def selection(self, language: str) -> Selection:
        return self.config.selection(language)

    def longest_translation(self, source_length: int) -> int:
        return min(self.config.limit(source_length + 1), self.vocabulary.positions) - 1

    def translate(
        self, sources: list[list[int]], wishes: Sequence[Wish] = (), scored: bool = False
    ) -> list[list[Hypothesis]] | None:
        limits = [self.longest_translation(len(ids)) + 1 for ids in sources]
        prefixes = [wish.prefix for wish in wishes] or [()] * len(sources)
        for prefix, limit in zip(prefixes, limits, strict=True):
            check_prefix(prefix, limit)
        scored = scored or not isinstance(self.config, GreedyConfig)
        try:
            pools = self._search(sources, prefixes, max(limits), scored)
            special = {number for number, pool in enumerate(pools) if _has_special(pool)}
            for number in special:
                [pools[number]] = self._search(
                    [sources[number]], [prefixes[number]], limits[number], scored, only_subwords=True
                )
            again: dict[tuple[int, bool], list[int]] = {}
            for number, (pool, limit) in enumerate(zip(pools, limits, strict=True)):
                if not self._is_settled(pool, limit):
                    longest = min(limit, max(map(_length, pool)))
                    again.setdefault((longest, number in special), []).append(number)
            for (limit, only_subwords), numbers in again.items():
                texts = [sources[number] for number in numbers], [prefixes[number] for number in numbers]
                found = self._search(*texts, limit, scored, only_subwords, complete=True)
                for number, pool in zip(numbers, found, strict=True):
                    pools[number] = pool
        except (RuntimeError, MemoryError) as error:
            if not _is_out_of_memory(error) or len(sources) == 1:
                raise
            return None
        results = [self._ranked(pool) for pool in pools]
        if not all(results):
            raise CheckpointError(NOT_FINITE)
        return results

    def score(self, sources: list[list[int]], targets: list[list[int]]) -> list[list[float]] | None:
        try:
            found = self.translator.score_batch(
                self._source_pieces(sources), self._target_pieces(targets), max_input_length=0
            )
        except (RuntimeError, MemoryError) as error:
            if not _is_out_of_memory(error) or len(sources) == 1:
                raise
            return None
        return [list(each.log_probs) for each in found]

    def forced_logits(self, source: Sequence[int], target: Sequence[int]) -> list[Any]:
        """Return the logits (V,) of each target token and of `</s>`, given those before it, as arrays."""
        (found,) = self.translator.translate_batch(
            self._source_pieces([source]),
            target_prefix=self._target_pieces([target]),
            beam_size=1,
            max_decoding_length=len(target) + 1,
            min_decoding_length=0,
            max_input_length=0,
            return_logits_vocab=True,
        )
        return [np.asarray(step, dtype=np.float32) for step in found.logits[0]]

    @contextmanager
    def side_by_side(self, count: int) -> Iterator[Executor]:
        pool = ThreadPoolExecutor(count)
        try:
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)

    def free_memory(self) -> None:
        """Do nothing: CTranslate2 releases what it allocated."""

    def _check_finite(self) -> None:
        """Raise CheckpointError if a sentence with subwords of all of the vocabulary has no finite score.

        For greedy search, which looks at no scores: with them it would take up to a third more time.
        """
        sources, targets = (
            range(EOS, len(side), len(side) // _PROBED + 1) for side in (self.vocabulary.source, self.vocabulary.target)
        )
        found = self.score([list(sources)], [list(targets)])
        if found is not None and not all(math.isfinite(value) and value >= _NEVER for value in found[0]):
            raise CheckpointError(NOT_FINITE)

    def _is_settled(self, pool: Sequence[Hypothesis], limit: int) -> bool:
        """Return whether a complete search would have the same result.

        All sentences of a batch have the longest limit at first. And where the last of beam_size hypotheses finish
        together, CTranslate2 returns the most likely ones, with those cut off at the limit, and not the best by score.
        What it leaves out is at most as likely as the least likely one here, and at most as long as the longest.
        """
        if any(_length(each) > limit for each in pool):
            return False
        if not isinstance(self.config, BeamConfig) or len(pool) < self.config.beam_size or self.config.beam_size == 1:
            return True
        least = min(each.log_probability for each in pool) / self.config.penalty(max(map(_length, pool)))
        certain = [each.tokens for each in self._ranked(pool) if each.finished and each.score >= least]
        return len(set(map(self._spelling, certain))) >= self.config.n_best

    def _spelling(self, ids: Sequence[int]) -> str:
        """Return the text of subwords without bytes: where two spellings differ, so do the translations."""
        return "".join(
            self.vocabulary.target[number] for number in ids if not self.vocabulary.target[number].startswith("<0x")
        )

    def _ranked(self, pool: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Return the best hypotheses, best first; of a beam, the unfinished ones only where none is finished."""
        if isinstance(self.config, BeamConfig):
            pool = [each for each in pool if each.finished] or pool
        return sorted(pool, key=lambda each: -each.score)[: self.config.candidate_count]

    def _search(
        self,
        sources: Sequence[Sequence[int]],
        prefixes: Sequence[Sequence[int]],
        limit: int,
        scored: bool,
        only_subwords: bool = False,
        complete: bool = False,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each source, of at most `limit` tokens.

        scored: whether their scores are needed. only_subwords: without `<pad>` and `<s>`. complete: of a beam, all that
        are finished at `limit`, instead of the beam_size most likely ones; the search goes on to there unless twice as
        many are finished before.
        """
        options: dict[str, Any] = {"beam_size": 1, "length_penalty": 0.0}
        if isinstance(self.config, BeamConfig):
            beam_size, patience = self.config.beam_size, 2 if complete and self.config.beam_size > 1 else 1
            options = {"beam_size": beam_size, "num_hypotheses": patience * beam_size, "length_penalty": _UNRANKED}
            options["patience"] = patience
        elif isinstance(self.config, SamplingConfig):
            options |= {
                "num_hypotheses": self.config.n_best,
                "sampling_topk": self.config.top_k,
                "sampling_topp": self.config.top_p,
                "sampling_temperature": self.config.temperature,
            }
        if any(prefixes):
            options["target_prefix"] = self._target_pieces(prefixes)
        if only_subwords:
            options["suppress_sequences"] = [[self.vocabulary.target[number]] for number in (PAD, BOS)]
        found = self.translator.translate_batch(
            self._source_pieces(sources),
            max_decoding_length=limit,
            min_decoding_length=0,
            max_input_length=0,
            max_batch_size=self._batch_size,
            return_end_token=True,
            return_scores=scored,  # in greedy search they take a fifth to a third of the time
            **options,
        )
        begun = self._prefix_scores(sources, prefixes) if scored and any(prefixes) else [0.0] * len(sources)
        return [self._hypotheses(each, before) for each, before in zip(found, begun, strict=True)]

    def _hypotheses(self, result: Any, before: float) -> list[Hypothesis]:
        """Return the hypotheses of a sentence. before: log-probability of its prefix, in nats."""
        pool = []
        for pieces, value in zip(result.hypotheses, result.scores or [math.nan], strict=True):
            if not result.scores or (math.isfinite(value + before) and value >= _NEVER):
                ids, log_p = [self._ids[piece] for piece in pieces], value + before
                is_finished = ids[-1:] == [EOS]
                penalty = self.config.penalty(len(ids)) if isinstance(self.config, BeamConfig) else 1.0
                pool.append(Hypothesis(ids[:-1] if is_finished else ids, log_p, log_p / penalty, is_finished))
        return pool

    def _prefix_scores(self, sources: Sequence[Sequence[int]], prefixes: Sequence[Sequence[int]]) -> list[float]:
        """Return the log-probability of each prefix, which CTranslate2 leaves out of its scores."""
        found = self.translator.score_batch(
            self._source_pieces(sources), self._target_pieces(prefixes), max_input_length=0
        )
        return [sum(each.log_probs[: len(prefix)]) for each, prefix in zip(found, prefixes, strict=True)]

    def _source_pieces(self, rows: Sequence[Sequence[int]]) -> list[list[str]]:
        return [[self.vocabulary.source[number] for number in row] for row in rows]

    def _target_pieces(self, rows: Sequence[Sequence[int]]) -> list[list[str]]:
        return [[self.vocabulary.target[number] for number in row] for row in rows]


def _has_special(pool: Sequence[Hypothesis]) -> bool:
    """Return whether `<pad>` or `<s>` is in a hypothesis."""
    return any(min(each.tokens, default=EOS) < EOS for each in pool)


def _length(hypothesis: Hypothesis) -> int:
    """Return the number of tokens, `</s>` included."""
    return len(hypothesis.tokens) + hypothesis.finished


def _default_threads() -> int:
    """Return the threads to compute with: OMP_NUM_THREADS, or one for each core that this process may use."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdecimal() and int(given):
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _compute_type(decoding: DecodingConfig, dtype: str) -> str:
    """Return CTranslate2's name of the dtype to compute in. dtype: of the weights."""
    return "default" if decoding.precision == "fp32" and dtype != "float32" else _COMPUTE_TYPES[decoding.precision]


def _device(name: str, gpus: int) -> tuple[str, int]:
    """Return CTranslate2's name and number of a device: auto is the first GPU, else the CPU; cpu, cuda, cuda:N."""
    kind, _, number = name.partition(":")
    if name == "auto":
        return ("cuda" if gpus else "cpu"), 0
    if kind not in ("cpu", "cuda") or (number and not (kind == "cuda" and number.isdecimal())):
        raise ConfigError(f"decoding.device ({name}) is no device; allowed: auto, cpu, cuda, cuda:N")
    if kind == "cuda" and int(number or 0) >= gpus:
        raise ConfigError(f"decoding.device is {name}, but CTranslate2 finds {gpus} CUDA devices; try auto")
    return kind, int(number or 0)


def _is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or any(words in str(error) for words in _NO_MEMORY)
