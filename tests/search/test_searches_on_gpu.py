"""What a search makes a GPU do, counted by a device that only counts, and that its translations are the CPU's."""

import copy
import random
from dataclasses import replace
from typing import Any

import pytest
import torch
from counting_gpu import CUDA, Work

from tolka.engines.torch_engine import TorchEngine, convert_model
from tolka.models.base import Seq2Seq
from tolka.models.ensemble import Ensemble
from tolka.models.rnn.config import PRESETS
from tolka.models.transformer.config import TransformerConfig
from tolka.search.beam import BeamConfig
from tolka.search.greedy import GreedyConfig
from tolka.search.hypothesis import Wish
from tolka.search.options import DiverseConfig, SamplingConfig, SearchConfig

TINY = TransformerConfig(d_model=32, heads=2, d_ff=64, layers=2)
SIX = replace(TINY, layers=6)
RANDOM = random.Random(0)
SOURCES = [[RANDOM.randint(4, 99) for _ in range(RANDOM.randint(2, 14))] for _ in range(24)]
SHORT: dict[str, Any] = {"max_length_factor": 1.0, "max_length_extra": 5}


def _model(config: object) -> Seq2Seq:
    torch.manual_seed(0)
    model: Seq2Seq = config.build(100, 100, True).eval()  # type: ignore[attr-defined]
    with torch.no_grad():
        for weight in model.logits_parameters():
            weight[2] *= 1.5  # so that hypotheses end
    return model


def _translations(search: SearchConfig, model: Seq2Seq, device: torch.device, wish: Wish) -> list[list[list[int]]]:
    found = TorchEngine(model, device).translate(search, SOURCES, [wish] * len(SOURCES) if wish else ())
    assert found is not None
    return [[hypothesis.tokens for hypothesis in hypotheses] for hypotheses in found]


SEARCHES: dict[str, tuple[SearchConfig, Wish]] = {
    "greedy": (GreedyConfig(**SHORT), Wish()),
    "greedy, rules": (GreedyConfig(no_repeat_ngram=2, min_length=3, **SHORT), Wish()),
    "beam": (BeamConfig(**SHORT), Wish()),
    "beam, n-best": (BeamConfig(n_best=3, **SHORT), Wish()),
    "beam, rules": (BeamConfig(no_repeat_ngram=2, min_length=3, **SHORT), Wish()),
    "beam, prefix": (BeamConfig(**SHORT), Wish(prefix=(8,))),
    "beam, terms": (BeamConfig(**SHORT), Wish(terms=(((5, 9), (6,)),))),
    "beam, banned": (BeamConfig(**SHORT), Wish(banned=((4, 5), (7,)))),
    "diverse": (DiverseConfig(beam_size=4, groups=2, **SHORT), Wish()),
    "sampling": (SamplingConfig(n_best=3, **SHORT), Wish()),
    "sampling of likely ones": (SamplingConfig(n_best=2, top_p=0.9, top_k=10, **SHORT), Wish()),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_translations_are_those_of_a_cpu(work: Work, name: str) -> None:
    model, (search, wish) = _model(TINY), SEARCHES[name]
    expected = _translations(search, model, torch.device("cpu"), wish)
    assert _translations(search, copy.deepcopy(model).to(CUDA), CUDA, wish) == expected


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize(
    "options", [{}, {"positions": "rotary"}, {"positions": "learned"}, {"decoder": "ssru"}], ids=str
)
def test_half_precision_decodes(work: Work, options: dict[str, Any], dtype: str) -> None:
    model = convert_model(_model(replace(TINY, **options)).to(CUDA), dtype)
    assert len(_translations(BeamConfig(**SHORT), model, CUDA, Wish())) == len(SOURCES)


@pytest.mark.parametrize("name", ["rnn", "gru_attention", "lstm_attention", "ssru"])
def test_recurrent_models_decode(work: Work, name: str) -> None:
    model = _model(replace(TINY, decoder="ssru") if name == "ssru" else replace(PRESETS[name], d_model=32))
    expected = _translations(BeamConfig(**SHORT), model, torch.device("cpu"), Wish())
    assert _translations(BeamConfig(**SHORT), model.to(CUDA), CUDA, Wish()) == expected


def test_an_ensemble_decodes_and_scores(work: Work) -> None:
    models = [_model(TINY), _model(replace(TINY, layers=1))]
    expected = _translations(BeamConfig(**SHORT), Ensemble(models), torch.device("cpu"), Wish())
    on_gpu = Ensemble([copy.deepcopy(model).to(CUDA) for model in models])
    assert _translations(BeamConfig(**SHORT), on_gpu, CUDA, Wish()) == expected
    scores = TorchEngine(models[0], torch.device("cpu")).score(SOURCES, SOURCES)
    found = TorchEngine(copy.deepcopy(models[0]).to(CUDA), CUDA).score(SOURCES, SOURCES)
    assert scores is not None
    assert found is not None
    expected_scores = pytest.approx([value for line in scores for value in line], rel=1e-4)
    assert [value for line in found for value in line] == expected_scores


# Measured, for 6 + 6 layers, with what encoding and the end of sentences take. More than these is a step back.
MOST = {"greedy": (140, 1.3), "beam": (200, 2.0), "diverse": (285, 2.0), "sampling": (160, 2.2)}


@pytest.mark.parametrize("name", MOST)
def test_launches_and_waits_of_a_step(work: Work, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    model, steps = _model(SIX).to(CUDA), 0
    step = type(model).step

    def counted(*given: Any) -> Any:
        nonlocal steps
        steps += 1
        return step(*given)

    monkeypatch.setattr(type(model), "step", counted)
    work.forget()
    _translations(SEARCHES[name][0], model, CUDA, Wish())
    launches, waits = work.launches.total() / steps, work.waits.total() / steps
    print(f"{name}: {launches:.1f} launches and {waits:.2f} waits a step, {steps} steps")
    assert launches <= MOST[name][0]
    assert waits <= MOST[name][1]
