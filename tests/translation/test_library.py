"""What a Translator does for programs: streams, scores and alignments."""

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from tolka.engines.options import DecodingConfig
from tolka.engines.torch_engine import TorchEngine
from tolka.errors import ConfigError
from tolka.formats.any_model import load_any
from tolka.search.greedy import GreedyConfig
from tolka.translation.opening import open_model
from tolka.translation.translator import Translator

TEXTS = ["lantern kettle harbour .", "", "ferry .", "walnut velvet copper orchid saddle pebble ."]


@pytest.fixture
def loaded(trained: Path) -> Translator[TorchEngine]:
    limited = GreedyConfig(max_length_factor=0.0, max_length_extra=9)
    return open_model(trained, limited, DecodingConfig(device="cpu"))


def test_a_stream_reads_no_more_than_a_window(loaded: Translator[TorchEngine]) -> None:
    read: list[int] = []

    def texts() -> Iterator[str]:
        for number in range(1_000_000):
            read.append(number)
            yield TEXTS[number % len(TEXTS)]

    found = loaded.stream(texts(), window=4)
    assert not read
    expected = loaded(TEXTS)
    assert [next(found).text for _ in range(4)] == expected
    assert len(read) == 4
    assert next(found).text == expected[0]
    assert len(read) == 8


def test_a_stream_of_a_single_text(loaded: Translator[TorchEngine]) -> None:
    assert [each.text for each in loaded.stream("ferry .")] == loaded("ferry .")
    assert list(loaded.stream([])) == []


def test_scores_of_pairs_are_those_of_the_search(loaded: Translator[TorchEngine]) -> None:
    found = loaded.translate(TEXTS)
    finished = [(text, each) for text, each in zip(TEXTS, found, strict=True) if each.complete and text]
    for (_, each), scored in zip(finished, loaded.score((text, each.text) for text, each in finished), strict=True):
        ids = loaded.tokenizer.encode_target([each.text])[0]
        assert len(scored.token_scores) == len(ids) + 1
        assert scored.score == pytest.approx(math.fsum(scored.token_scores))
        if ids == each.segments[0][1]:  # the model may spell a word in other subwords
            assert scored.score == pytest.approx(each.score, abs=1e-4)
    [blank] = loaded.score([("", "")])
    assert (blank.score, blank.token_scores) == (0, [])


def test_alignments_have_a_source_word_for_each_target_word(loaded: Translator[TorchEngine]) -> None:
    found = loaded.translate(TEXTS)
    for text, each, alignment in zip(TEXTS, found, loaded.align(found), strict=True):
        assert [target for _, target in alignment] == list(range(len(each.text.split())))
        assert all(source < len(text.split()) for source, _ in alignment)


def test_an_ensemble_has_no_alignment(trained: Path) -> None:
    both = load_any([trained, trained])
    together = Translator.of(both, GreedyConfig(), DecodingConfig(device="cpu"))
    with pytest.raises(ConfigError):
        together.align(together.translate(["ferry ."]))
