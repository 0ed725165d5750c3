"""The engine that computes with CTranslate2, without torch."""

import logging
import math
import os
from collections.abc import Collection, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tolka.engines.ctranslate2_search import NEVER, CTranslate2Search, Vocabularies, spell, unsupported_reason
from tolka.engines.engine import NOT_FINITE, Engine, Rows
from tolka.engines.options import DecodingConfig
from tolka.errors import CheckpointError, ConfigError
from tolka.search.hypothesis import Hypothesis, Wishes
from tolka.search.options import GreedyConfig, SamplingConfig, SearchConfig
from tolka.system.progress import Say, silent
from tolka.system.workers import cores
from tolka.tokenizer.language_tags import NO_TAGS, Tags
from tolka.tokenizer.special_tokens import EOS

_COMPUTE_TYPES = {"auto": "float32", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "int8": "int8"}
_GPU_FILES = ("/dev/nvidiactl", "/dev/nvhost-gpu", "/dev/kfd", "/dev/dxg")  # NVIDIA, Jetson, AMD, WSL
_CPU_BATCH = 64  # sentences at once on a CPU: larger batches took up to 1.37 times the time on Intel with AMX
_WORKERS = 2  # batches in parallel, as BatchDecoder has
_PROBED = 64  # most subwords of a side in the sentence that tells whether the model's scores are finite


def has_gpu() -> bool:
    """Return whether there seems to be a GPU, which not every build of CTranslate2 can tell."""
    import ctranslate2

    return ctranslate2.get_cuda_device_count() > 0 or any(map(os.path.exists, _GPU_FILES))


def _place(decoding: DecodingConfig, dtype: str) -> tuple[str, int, str]:
    """Return CTranslate2's names of the device, its number and the dtype to compute in. dtype: of the weights."""
    import ctranslate2

    device, index = _device(decoding.device, ctranslate2.get_cuda_device_count())
    supported = ctranslate2.get_supported_compute_types(device, index)
    kind = _compute_type(decoding, dtype, device, supported)
    if kind not in ("default", *supported):
        raise ConfigError(
            f"decoding.precision={decoding.precision} is not available in CTranslate2 on this machine's {device}; "
            "try fp32 or int8"
        )
    return device, index, kind


class CTranslate2Engine(Engine):
    """A model of CTranslate2; `ctranslate2_search.py` says where its results differ from torch's."""

    def __init__(self, translator: Any, vocabulary: Vocabularies, threads: int) -> None:
        """translator: a ctranslate2.Translator. threads: number of them on a CPU; 0 on another device."""
        self.translator, self.vocabulary = translator, vocabulary
        self._threads = threads
        self._batch_size = _CPU_BATCH if threads else 0  # 0 = BatchDecoder's batches

    @classmethod
    def of(
        cls, folder: Path, vocabulary: Vocabularies, dtype: str, decoding: DecodingConfig, name: Path, say: Say = silent
    ) -> "CTranslate2Engine":
        """Load a folder of CTranslate2 on the device and in the dtype of the options.

        dtype: of the weights in it. name: of the model, for messages. say: receives notes. ConfigError for a device or
        dtype that is not available; CheckpointError for a damaged folder.
        """
        import ctranslate2

        device, index, kind = _place(decoding, dtype)
        # BatchDecoder translates two batches in parallel: each has half of the threads.
        variable = os.environ.get("OMP_NUM_THREADS", "")
        threads = decoding.threads or (int(variable) if variable.isdecimal() else 0) or cores()
        workers = min(threads, _WORKERS)
        at_once = {"inter_threads": workers, "intra_threads": max(1, threads // workers)} if device == "cpu" else {}
        level = ctranslate2.get_log_level()
        ctranslate2.set_log_level(logging.ERROR)  # the note below is its warning, in our words
        try:
            translator = ctranslate2.Translator(str(folder), device, device_index=index, compute_type=kind, **at_once)
        except Exception as error:  # damaged bytes raise errors of many kinds
            raise CheckpointError(f"{name}: CTranslate2 cannot load it ({' '.join(str(error).split())})") from None
        finally:
            ctranslate2.set_log_level(level)
        if device == "cuda" and (reason := _failure(translator, vocabulary)):
            if decoding.device != "auto":
                raise ConfigError(f"decoding.device={decoding.device}: CTranslate2 cannot compute on it ({reason})")
            say(f"note: CTranslate2 computes on the CPU, as it cannot on the GPU ({reason})")
            return cls.of(folder, vocabulary, dtype, replace(decoding, device="cpu"), name, say)
        if kind == "default" and not (actual := translator.compute_type).startswith(dtype):
            say(f"note: the weights are in {dtype}, and CTranslate2 computes in {actual} on this {device}")
        return cls(translator, vocabulary, threads if device == "cpu" else 0)

    @property
    def calls_at_once(self) -> int:
        # One is tokenized while the other runs: a tenth more sentences a second for 32 clients of a server.
        return min(self._threads, _WORKERS) or 1

    def __repr__(self) -> str:
        return f"CTranslate2 ({self.translator.compute_type}), {self.translator.device}"

    def lacks(self, search: SearchConfig, *, has_terms: bool = False) -> str:
        if has_terms:
            return "CTranslate2 is used with no glossary and no banned phrases: set decoding.backend=torch"
        return unsupported_reason(search)

    @property
    def cpu_threads(self) -> int:
        return self._threads

    @property
    def longest_sentence(self) -> int:
        return self.vocabulary.positions - 1

    def longest_translation(self, search: SearchConfig, source_length: int) -> int:
        return min(search.limit(source_length + 1), self.vocabulary.positions) - 1

    def translate(
        self, search: SearchConfig, sources: Rows, wishes: Wishes = (), scored: bool = False, tags: Tags = NO_TAGS
    ) -> list[list[Hypothesis]]:
        # Greedy search asks for no scores, which take up to a third more time; other searches drop NaN and inf.
        if isinstance(search, GreedyConfig) and not self._is_finite:
            raise CheckpointError(NOT_FINITE)
        if isinstance(search, SamplingConfig):
            import ctranslate2

            # The seed counts only for threads that have drawn no sample yet.
            ctranslate2.set_random_seed(search.seed % 2**32)
        limits = [self.longest_translation(search, len(ids)) + 1 for ids in sources]
        run = CTranslate2Search(self.translator, self.vocabulary, search, self._batch_size, tags)
        if not all(results := run(sources, limits, wishes, scored)):
            raise CheckpointError(NOT_FINITE)
        return results

    def score(self, sources: Rows, targets: Rows, tags: Tags = NO_TAGS) -> list[list[float]]:
        results = self.translator.score_batch(
            spell(self.vocabulary.source, sources, tags.source),
            spell(self.vocabulary.target, targets, tags.target),
            max_input_length=0,
        )
        return [list(each.log_probs)[len(tags.target) :] for each in results]

    def forced_logits(self, source: list[int], target: list[int]) -> list[Any]:
        """Return the logits (V,) of each target token and of `</s>`, given those before it, as arrays."""
        (result,) = self._force([source], [target], NO_TAGS, "return_logits_vocab")
        return [np.asarray(step, dtype=np.float32) for step in result.logits[0]]

    def attention(self, sources: Rows, targets: Rows, tags: Tags, *, with_gradients: bool) -> tuple[str, list[Any]]:
        if not self.vocabulary.attention:
            raise ConfigError("this folder was exported without attention maps: export the model again")
        results = self._force(sources, targets, tags, "return_attention")
        weights = [np.asarray(each.attention[0], dtype=np.float32) for each in results]
        # CTranslate2 leaves out the last column, that of `</s>`.
        return self.vocabulary.attention, [np.c_[each, (1 - each.sum(axis=1)).clip(min=0)] for each in weights]

    def _force(self, sources: Rows, targets: Rows, tags: Tags, returned: str) -> Any:
        """Return CTranslate2's results of forced decoding. returned: its option for what they shall have."""
        # CTranslate2 returns these of translated tokens only: the target is a forced prefix, and one token follows.
        return self.translator.translate_batch(
            spell(self.vocabulary.source, sources, tags.source),
            target_prefix=spell(self.vocabulary.target, targets, tags.target),
            beam_size=1,
            max_decoding_length=len(tags.target) + max(map(len, targets)) + 1,
            min_decoding_length=0,
            max_input_length=0,
            max_batch_size=self._batch_size,
            return_end_token=True,
            **{returned: True},
        )

    @contextmanager
    def side_by_side(self, count: int) -> Iterator[Executor]:
        pool = ThreadPoolExecutor(count)
        try:
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)

    @cached_property
    def _is_finite(self) -> bool:
        """Whether a sentence of subwords from all over the vocabulary has no NaN or inf as a score."""
        sources, targets = (
            range(EOS, len(side), len(side) // _PROBED + 1) for side in (self.vocabulary.source, self.vocabulary.target)
        )
        (scores,) = self.score([list(sources)], [list(targets)])
        return all(math.isfinite(value) and value >= NEVER for value in scores)


def _failure(translator: Any, vocabulary: Vocabularies) -> str:
    """Return why a translator on a GPU cannot translate, "" if it can: it loads CUDA's libraries only then."""
    try:
        translator.translate_batch(spell(vocabulary.source, [[EOS]]), beam_size=1, max_decoding_length=1)
    except RuntimeError as error:
        return " ".join(str(error).split())
    return ""


def _compute_type(decoding: DecodingConfig, dtype: str, device: str, supported: Collection[str]) -> str:
    """Return CTranslate2's name of the dtype to compute in. dtype: of the weights. supported: by the device."""
    if decoding.precision == "auto" and dtype != "float32":
        return "default"  # weights exported in another dtype keep it
    if decoding.precision == "auto" and device == "cuda":
        return "bfloat16" if "bfloat16" in supported else "float16"
    return _COMPUTE_TYPES[decoding.precision]


def _device(name: str, gpus: int) -> tuple[str, int]:
    """Return CTranslate2's name and number of a device. name: auto (the first GPU, else the CPU), cpu, cuda, cuda:N."""
    kind, _, number = name.partition(":")
    if name == "auto":
        return ("cuda" if gpus else "cpu"), 0
    if kind not in ("cpu", "cuda") or (number and not (kind == "cuda" and number.isdecimal())):
        raise ConfigError(f"decoding.device ({name}) is not a device; allowed: auto, cpu, cuda, cuda:N")
    if kind == "cuda" and int(number or 0) >= gpus:
        raise ConfigError(f"decoding.device is {name}, but CTranslate2 finds {gpus} CUDA devices; try auto")
    return kind, int(number or 0)
