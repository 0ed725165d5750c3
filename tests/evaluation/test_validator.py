"""Validation of a model that cannot translate, and the time of a validation."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from tolka.engines.options import DecodingConfig
from tolka.evaluation.perplexity import PerplexityMeter
from tolka.evaluation.validator import Validator
from tolka.metrics.options import MetricsConfig
from tolka.search.greedy import GreedyConfig
from tolka.system.device import Precision
from tolka.text.direction import Direction
from tolka.text.pairs import Pair
from tolka.translation.opening import open_model


def test_a_model_without_finite_scores_has_an_nll_only(trained: Path) -> None:
    """By the nll the training goes back to an earlier state."""
    translator = open_model(trained, GreedyConfig(), DecodingConfig(device="cpu", backend="torch"))
    pairs = [Pair("lantern kettle .", "ferry .")]
    meter = PerplexityMeter(pairs, translator.tokenizer, 1000)
    own, precision = translator.direction, Precision(torch.device("cpu"), "fp32")
    validator = Validator({own: pairs}, translator, {own: meter}, precision, MetricsConfig(), "bleu", 0)
    assert {"nll", "bleu", "chrf"} <= validator(1).values.keys()
    with torch.no_grad():
        next(translator.engine.model.parameters()).fill_(math.nan)
    found = validator(1)
    assert list(found.values) == ["nll"]
    assert math.isnan(found.values["nll"])


def test_a_tenth_of_the_sentences_tell_how_long_a_validation_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a second a sentence, of which three of thirty are translated."""
    now, translated = 0.0, list[str]()
    monkeypatch.setattr("time.perf_counter", lambda: now)

    def translator(texts: list[str], *_: Any) -> list[str]:
        nonlocal now
        now += 0.5 * len(texts)
        translated.extend(texts)
        return texts

    stand_in: Any = translator
    sets = {Direction("en", "de"): [Pair(str(n), "x") for n in range(30)]}
    precision = Precision(torch.device("cpu"), "fp32")
    assert Validator(sets, stand_in, {}, precision, MetricsConfig(), "bleu", 0).seconds() == 15.0
    assert translated == ["0", "10", "20"]
