"""Minimum Bayes risk: the choice, compared with a plain double loop over sacrebleu."""

import random
from pathlib import Path
from typing import Any

import pytest
from rows import each_row
from sacrebleu import sentence_chrf

from tolka.engines.options import DecodingConfig
from tolka.errors import ConfigError
from tolka.model_directory.read import load_model
from tolka.search.base import SearchConfig
from tolka.search.beam import BeamConfig
from tolka.search.hypothesis import Hypothesis
from tolka.search.mbr import MbrConfig
from tolka.search.sampling import SamplingConfig
from tolka.translation.results import Translation
from tolka.translation.translator import Translator

TEXTS = ["lantern kettle harbour .", "", "ferry .", "walnut velvet copper orchid saddle pebble ."]


def means(texts: list[str]) -> list[float]:
    """The mean chrF2 of each text against all others, by their places, so that equal texts count several times."""
    others = [[text for place, text in enumerate(texts) if place != number] for number in range(len(texts))]
    return [
        sum(sentence_chrf(text, [one]).score for one in rest) / len(rest)
        for text, rest in zip(texts, others, strict=True)
    ]


@each_row("seed", range(5))
def test_it_is_the_plain_double_loop(seed: int) -> None:
    draw = random.Random(seed)
    words = ["a", "old", "boat", "drifts", "home", "slowly", "."]
    texts = [" ".join(draw.choices(words, k=draw.randint(1, 6))) for _ in range(12)]
    texts += draw.sample(texts, 4)
    hypotheses = [Hypothesis([number], -number / 8, -number / 8, True) for number in range(len(texts))]
    chosen = MbrConfig(n_best=5).selection("en").select(texts, hypotheses)
    expected = means(texts)
    order = sorted(range(len(texts)), key=lambda number: (-round(expected[number], 9), number))
    different = list(dict.fromkeys(texts[number] for number in order))[:5]
    assert [text for text, _ in chosen] == different
    for text, hypothesis in chosen:
        assert texts.index(text) == hypothesis.tokens[0]  # the most likely one of several with this text
        assert hypothesis.score == pytest.approx(expected[texts.index(text)])
        assert hypothesis.log_probability == -hypothesis.tokens[0] / 8


def test_one_that_came_twice_supports_itself() -> None:
    hypotheses = [Hypothesis([], 0.0, 0.0, True)] * 3
    [(text, _)] = MbrConfig().selection("").select(["xyz", "ab", "ab"], hypotheses)
    assert text == "ab"


def test_a_single_hypothesis_is_chosen() -> None:
    [(text, hypothesis)] = MbrConfig().selection("").select(["ab"], [Hypothesis([7], -1.0, -1.0, False)])
    assert (text, hypothesis.tokens) == ("ab", [7])
    assert hypothesis.score == pytest.approx(100)


def translated(folder: Path, search: SearchConfig) -> list[Translation]:
    return Translator.of(load_model(folder), search, DecodingConfig(device="cpu")).translate(TEXTS)


@pytest.mark.parametrize("candidates", ["sampling", "beam"])
def test_it_chooses_among_the_candidates_of_another_search(trained: Path, candidates: str) -> None:
    of_both: dict[str, Any] = {"max_length_factor": 0.0, "max_length_extra": 7}
    searches = {
        "sampling": SamplingConfig(n_best=9, seed=3, temperature=0.5, **of_both),
        "beam": BeamConfig(beam_size=9, n_best=9, **of_both),
    }
    options: dict[str, Any] = {"seed": 3, "temperature": 0.5, "epsilon": 0.0} if candidates == "sampling" else {}
    config = MbrConfig(samples=9, candidates=candidates, n_best=2, **options, **of_both)
    assert (config.width, config.returned) == (9, 2)
    translator = Translator.of(load_model(trained), searches[candidates], DecodingConfig(device="cpu"))
    for source, found in zip(TEXTS, translated(trained, config), strict=True):
        if not source:
            assert not found.text
            continue
        (pool,) = translator.engine.translate(searches[candidates], translator.tokenizer.encode_source([source])) or [
            []
        ]
        texts = translator.tokenizer.decode_target([each.tokens for each in pool])
        if candidates == "beam":  # a sample counts as often as it was drawn, and a hypothesis of a beam once
            chosen = searches["beam"].selection("").select(texts, pool)
            texts, pool = [text for text, _ in chosen], [each for _, each in chosen]
        expected = means(texts)
        assert found.score == pytest.approx(max(expected))
        assert expected[texts.index(found.text)] == pytest.approx(max(expected))  # several may be as good
        assert len(found.candidates) == min(2, len(set(texts)))
        assert found.candidates[0].log_probability == pytest.approx(
            pool[texts.index(found.text)].log_probability, abs=1e-4
        )


@each_row(
    ("options", "complaint"),
    [
        ({"samples": 1}, "search.samples (1) must be at least 2"),
        ({"samples": 5000}, "search.samples (5000) must be at most 1024"),
        ({"n_best": 33}, "search.n_best (33) must be at most search.samples (32): raise that too"),
        ({"candidates": "beams"}, "search.candidates ('beams') is unknown. Did you mean 'beam'?"),
        ({"temperature": 0.0}, "search.temperature is 0"),
        ({"candidates": "beam", "top_p": 0.9}, "search.top_p (0.9) has no effect with search.candidates=beam"),
        ({"candidates": "beam", "seed": 2}, "search.seed (2) has no effect with search.candidates=beam"),
        ({"glossary": "terms.tsv"}, "search.glossary (terms.tsv) needs beam search"),
    ],
)
def test_bad_options(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError) as error:
        MbrConfig(**options)
    assert complaint in str(error.value)
