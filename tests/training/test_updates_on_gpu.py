"""What an update makes a GPU do, counted by a device that only counts, and that its results are the CPU's."""

import copy
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from counting_gpu import CUDA, Work

from tolka.data.batch import collate
from tolka.data.loader import Share
from tolka.model_directory.read import ResumeState
from tolka.models.base import Seq2Seq
from tolka.models.rnn.config import PRESETS
from tolka.models.transformer.config import TransformerConfig
from tolka.nn.lora import add_adapters
from tolka.optim.optimizers.base import OPTIMIZERS
from tolka.system.device import Precision
from tolka.training.options import TrainerConfig
from tolka.training.state import Window
from tolka.training.step import TrainStep

SOURCES = [[4, 5, 6, 7, 8], [9, 10], [11], [5, 5, 4, 10, 6, 9, 7]]
TARGETS = [[8, 7, 6], [10, 9, 4, 5, 11, 6], [4], [7, 9]]
TINY = TransformerConfig(d_model=32, heads=2, d_ff=64, layers=2, dropout=0.0)


def _shares(count: int = 1) -> list[Share]:
    batch = collate(SOURCES, TARGETS)
    return [Share(batch, batch.tokens)] * count


def _model(config: object = TINY, prepare: Callable[[Seq2Seq], object] | None = None) -> Seq2Seq:
    torch.manual_seed(0)
    model: Seq2Seq = config.build(100, 100, True).train()  # type: ignore[attr-defined]
    if prepare:
        prepare(model)
    return model


def _step(
    model: Seq2Seq, device: torch.device, precision: str, optimizer: str = "adamw", options: TrainerConfig | None = None
) -> TrainStep:
    options = options or TrainerConfig()
    built = OPTIMIZERS.get(optimizer)().build(model)
    return TrainStep(options, options.objective(model), built, Precision(device, precision))


def _losses(step: TrainStep, updates: int, accumulate: int = 1) -> list[float]:
    group = _shares(accumulate)
    return [step(number + 1, 1e-3, group).nll.item() for number in range(updates)]


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd", "adafactor", "muon"])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("accumulate", [1, 3])
def test_no_update_waits(work: Work, optimizer: str, precision: str, accumulate: int) -> None:
    options = TrainerConfig(ema=0.9)
    step = _step(_model().to(CUDA), CUDA, precision, optimizer, options)
    group, window = _shares(accumulate), Window()
    window.add(step(1, 1e-3, group))
    work.forget()
    window.add(step(2, 1e-3, group))
    assert not work.waits
    assert window.loss is not None


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd", "adafactor", "muon"])
def test_an_optimizer_moves_the_weights_as_on_a_cpu_and_skips_what_is_not_finite(work: Work, optimizer: str) -> None:
    model = _model()
    expected = _losses(_step(copy.deepcopy(model), torch.device("cpu"), "fp32", optimizer), 4)
    on_gpu = copy.deepcopy(model).to(CUDA)
    step = _step(on_gpu, CUDA, "fp32", optimizer)
    found = _losses(step, 3)
    before = {name: value.clone() for name, value in on_gpu.state_dict().items()}
    moments = copy.deepcopy(step.state()[0])
    broken = next(on_gpu.parameters()).register_hook(lambda gradient: gradient * float("nan"))
    result = step(4, 1e-3, _shares())
    broken.remove()
    assert not result.applied
    assert all(torch.equal(value, before[name]) for name, value in on_gpu.state_dict().items())
    after = step.state()[0]
    assert all(torch.equal(after[name], moments[name]) for name in moments if not name.endswith((".step", "rng")))
    found.append(step(4, 1e-3, _shares()).nll.item())
    assert found == pytest.approx(expected, rel=1e-5)


MODELS = {
    "pre": TINY,
    "post, learned": replace(TINY, norm="post", positions="learned"),
    "rotary, rmsnorm, swiglu": replace(TINY, positions="rotary", normalization="rmsnorm", activation="swiglu"),
    "ssru": replace(TINY, decoder="ssru"),
    "halves, gelu, bias": replace(TINY, positions="sinusoidal_halves", activation="gelu", output_bias=True),
    **{name: replace(preset, d_model=32, dropout=0.0) for name, preset in PRESETS.items()},
}


@pytest.mark.parametrize("name", MODELS)
def test_losses_are_those_of_a_cpu(work: Work, name: str) -> None:
    model = _model(MODELS[name])
    expected = _losses(_step(copy.deepcopy(model), torch.device("cpu"), "fp32"), 3)
    assert _losses(_step(copy.deepcopy(model).to(CUDA), CUDA, "fp32"), 3) == pytest.approx(expected, rel=1e-5)
    # bf16 has 8 bits of mantissa.
    assert _losses(_step(model.to(CUDA), CUDA, "bf16"), 3) == pytest.approx(expected, rel=1e-2)


def test_recomputed_layers_adapters_and_accumulation_give_the_losses_of_a_cpu(work: Work) -> None:
    def recompute(model: Seq2Seq) -> None:
        model.recompute = True

    for prepare in (recompute, lambda model: add_adapters(model, 4, 8.0)):
        model = _model(prepare=prepare)
        expected = _losses(_step(copy.deepcopy(model), torch.device("cpu"), "fp32"), 3, accumulate=2)
        for precision, tolerance in (("fp32", 1e-5), ("bf16", 1e-2)):
            step = _step(copy.deepcopy(model).to(CUDA), CUDA, precision)
            assert _losses(step, 3, accumulate=2) == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("optimizer", ["adamw", "sgd", "adafactor", "muon"])
def test_a_state_is_saved_and_loaded(work: Work, optimizer: str, precision: str) -> None:
    options = TrainerConfig(ema=0.9)
    model = _model().to(CUDA)
    step = _step(model, CUDA, precision, optimizer, options)
    _losses(step, 2)
    tensors, facts = step.state()
    assert all(tensor.device.type == "cpu" for tensor in tensors.values())
    saved = ResumeState({name: tensor.clone() for name, tensor in tensors.items()}, copy.deepcopy(facts))
    weights = copy.deepcopy(model.state_dict())
    expected = step(3, 1e-3, _shares()).nll.item(), step(4, 1e-3, _shares()).nll.item()
    again = _model().to(CUDA)
    other = _step(again, CUDA, precision, optimizer, options)
    other.load_state(saved, lambda: again.load_state_dict(weights))
    found = other(3, 1e-3, _shares()).nll.item(), other(4, 1e-3, _shares()).nll.item()
    assert found == expected
