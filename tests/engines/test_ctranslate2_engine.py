"""The CTranslate2 engine, with a model whose answers are written by hand."""

from pathlib import Path
from typing import Any

import pytest
from copying_model import TOKENIZER
from fake_ctranslate2 import VOCABULARY, FakeTranslator

from tolka.engines.ctranslate2_engine import CTranslate2Engine, _compute_type, _device
from tolka.engines.options import DecodingConfig
from tolka.errors import CheckpointError, ConfigError
from tolka.search.options import BeamConfig, GreedyConfig
from tolka.text.direction import UNKNOWN
from tolka.translation.batch_decoder import BatchDecoder
from tolka.translation.request import ResolvedRequest
from tolka.translation.segments import Segment

A, B = 4, 5
FINITE = [-1.0] * len(VOCABULARY.target)


def failing(error: Exception) -> FakeTranslator:
    """A model whose searches and scores raise an error."""
    translator = FakeTranslator()

    def fail(*arguments: Any, **options: Any) -> Any:
        raise error

    translator.translate_batch = translator.score_batch = fail  # type: ignore[method-assign]
    return translator


def test_ids_become_subwords_and_come_back_as_ids() -> None:
    translator = FakeTranslator([[("▁b </s>", -1.0)]], token_scores=FINITE)
    results = CTranslate2Engine(translator, VOCABULARY, 1).translate(GreedyConfig(), [[A, B]])
    assert [each.tokens for each in results[0]] == [[B]]
    assert translator.calls[0]["sources"] == [["▁a", "▁b"]]


@pytest.mark.parametrize("error", [RuntimeError("CUDA failed with error out of memory"), MemoryError()])
@pytest.mark.parametrize("count", [1, 2])
def test_a_batch_that_does_not_fit_is_tried_in_halves_and_a_single_sentence_an_error(
    error: Exception, count: int
) -> None:
    translator = failing(error)
    decoder = BatchDecoder(CTranslate2Engine(translator, VOCABULARY, 0), TOKENIZER, 1000)
    with pytest.raises(type(error)):
        decoder.translate([Segment("", [A])] * count, ResolvedRequest(BeamConfig(), UNKNOWN), lambda share: None)
    assert decoder.tokens == (1000 if count == 1 else 2 * 5)
    with pytest.raises(type(error)):
        decoder.token_scores([([A], [A])] * count, UNKNOWN, lambda share: None)


def test_other_errors_are_raised() -> None:
    decoder = BatchDecoder(CTranslate2Engine(failing(RuntimeError("no such layer")), VOCABULARY, 1), TOKENIZER, 1000)
    with pytest.raises(RuntimeError, match="no such layer"):
        decoder.translate([Segment("", [A])] * 2, ResolvedRequest(BeamConfig(), UNKNOWN), lambda share: None)


def test_greedy_search_checks_once_that_scores_are_finite() -> None:
    with pytest.raises(CheckpointError, match="the model's scores are not finite"):
        CTranslate2Engine(FakeTranslator(), VOCABULARY, 1).translate(GreedyConfig(), [[A]])
    answer = [[("▁a </s>", -1.0)]]
    translator = FakeTranslator(answer, answer, token_scores=FINITE)
    engine = CTranslate2Engine(translator, VOCABULARY, 1)
    for _ in range(2):
        engine.translate(GreedyConfig(), [[A]])
    assert translator.scored == 1


def test_a_beam_without_a_finite_score_is_a_damaged_model() -> None:
    translator = FakeTranslator([[("▁a </s>", float("nan"))]])
    with pytest.raises(CheckpointError, match="the model's scores are not finite"):
        CTranslate2Engine(translator, VOCABULARY, 1).translate(BeamConfig(), [[A]])


def test_terms_are_refused() -> None:
    engine = CTranslate2Engine(FakeTranslator(), VOCABULARY, 1)
    assert engine.lacks(BeamConfig()) == ""
    assert "no glossary and no banned phrases: set decoding.backend=torch" in engine.lacks(BeamConfig(), has_terms=True)


def test_positions_limit_sources_and_translations() -> None:
    """Ten positions, of which one is that of the end."""
    engine = CTranslate2Engine(FakeTranslator(), VOCABULARY, 1)
    search = BeamConfig(max_length_factor=2.0, max_length_extra=3)
    assert (engine.longest_sentence, engine.longest_translation(search, 2)) == (9, 8)
    assert engine.longest_translation(search, 5) == 9


def test_batches_are_smaller_on_a_cpu_alone() -> None:
    for threads, batch_size in ((4, 64), (0, 0)):
        translator = FakeTranslator([[("▁a </s>", -1.0)]])
        engine = CTranslate2Engine(translator, VOCABULARY, threads)
        engine.translate(BeamConfig(beam_size=1), [[A]])
        assert (engine.cpu_threads, translator.calls[0]["max_batch_size"]) == (threads, batch_size)


def test_devices_are_named_as_ctranslate2_does() -> None:
    assert [_device("auto", 0), _device("auto", 2), _device("cuda:1", 2)] == [("cpu", 0), ("cuda", 0), ("cuda", 1)]
    with pytest.raises(ConfigError, match="finds 1 CUDA devices"):
        _device("cuda:1", 1)
    with pytest.raises(ConfigError, match=r"decoding\.device \(cpu:0\) is not a device"):
        _device("cpu:0", 0)


def test_fp32_keeps_the_dtype_of_an_exported_model() -> None:
    assert _compute_type(DecodingConfig(), "float32", "cpu", ["float32"]) == "float32"
    assert _compute_type(DecodingConfig(), "bfloat16", "cpu", ["float32"]) == "default"
    assert _compute_type(DecodingConfig(precision="int8"), "int8", "cpu", ["int8"]) == "int8"


def test_auto_is_half_precision_on_a_gpu() -> None:
    assert _compute_type(DecodingConfig(), "float32", "cuda", ["bfloat16", "float16"]) == "bfloat16"
    assert _compute_type(DecodingConfig(), "float32", "cuda", ["float16", "float32"]) == "float16"


def test_without_the_libraries_of_cuda_it_computes_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """CTranslate2 finds the GPU without them, and fails in the first translation."""

    class OnDevice(FakeTranslator):
        def __init__(self, folder: str, device: str, **_: Any) -> None:
            super().__init__([[("▁a </s>", -1.0)]])
            self.device = device

        def translate_batch(self, *arguments: Any, **options: Any) -> Any:
            if self.device == "cuda":
                raise RuntimeError("Library libcublas.so.12 is not found or cannot be loaded")
            return super().translate_batch(*arguments, **options)

    monkeypatch.setattr("ctranslate2.Translator", OnDevice)
    monkeypatch.setattr("ctranslate2.get_cuda_device_count", lambda: 1)
    monkeypatch.setattr("ctranslate2.get_supported_compute_types", lambda *_: ["float16", "float32"])
    notes: list[str] = []
    arguments = Path("model"), VOCABULARY, "float32"
    engine = CTranslate2Engine.of(*arguments, DecodingConfig(threads=2), Path("model"), notes.append)
    assert engine.cpu_threads == 2
    assert "computes on the CPU" in notes[0]
    assert "libcublas.so.12" in notes[0]
    with pytest.raises(ConfigError, match=r"decoding\.device=cuda: .*libcublas\.so\.12"):
        CTranslate2Engine.of(*arguments, DecodingConfig(device="cuda"), Path("model"), notes.append)
