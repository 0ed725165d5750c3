"""What only a CUDA device can show; run with -m gpu."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from tolka.data.batch import collate
from tolka.data.buckets import BatchingConfig
from tolka.data.loader import Loader, Share
from tolka.data.store import TokenStore
from tolka.kernels.half_weights import half_weights
from tolka.losses.cross_entropy import Objective
from tolka.models.rnn.config import PRESETS
from tolka.models.transformer import TransformerConfig
from tolka.optim.optimizers.base import OPTIMIZERS
from tolka.optim.optimizers.of_torch import AdamWConfig, SGDConfig
from tolka.search.beam import BeamConfig
from tolka.search.greedy import GreedyConfig
from tolka.search.hypothesis import Wish
from tolka.search.options import BeamOptions, DiverseConfig
from tolka.system.device import Precision, choose_device
from tolka.training.memory import fewest_batches
from tolka.training.options import TrainerConfig
from tolka.training.precision import choose_precision
from tolka.training.state import Window
from tolka.training.step import TrainStep

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
SOURCES = [[4, 5, 6, 7, 8], [9, 10], [11], [5, 5, 4, 10, 6, 9, 7]]
TARGETS = [[8, 7, 6], [10, 9, 4, 5, 11, 6], [4], [7, 9]]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"norm": "post", "positions": "learned"},
        {"positions": "rotary", "normalization": "rmsnorm", "activation": "swiglu"},
    ],
    ids=str,
)
def test_the_gpu_computes_what_the_cpu_does(options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model = TransformerConfig(d_model=32, layers=2, **options).build(12, 12, True).eval()
    batch = collate(SOURCES, TARGETS)
    with torch.no_grad():
        expected = model(batch)
        device = choose_device("auto")
        torch.testing.assert_close(model.to(device)(batch.to(device)).cpu(), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_recurrent_model_s_loss_and_gradients_are_the_cpu_s(preset: str) -> None:
    torch.manual_seed(0)
    model = replace(PRESETS[preset], d_model=32, dropout=0.0).build(12, 12, True)
    objective, batch = Objective(model, 0.1), collate(SOURCES, TARGETS)
    expected = objective(batch)
    gradients = torch.autograd.grad(expected.loss, list(model.parameters()))
    found = objective.to("cuda")(batch.to(torch.device("cuda")))
    assert found.loss.item() == pytest.approx(expected.loss.item(), rel=1e-3)
    for one, other in zip(torch.autograd.grad(found.loss, list(model.parameters())), gradients, strict=True):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd", "adafactor", "muon"])
def test_no_update_waits_for_the_gpu(optimizer: str, precision: str) -> None:
    torch.manual_seed(0)
    device, config = choose_device("cuda"), TrainerConfig(ema=0.9)
    model = TransformerConfig(d_model=32, heads=2, layers=2).build(12, 12, True).to(device)
    step = TrainStep(
        config, config.objective(model), OPTIMIZERS.get(optimizer)().build(model), Precision(device, precision)
    )
    batch, window = collate(SOURCES, TARGETS), Window()
    shares = [Share(batch, batch.tokens)] * 2
    for number in range(1, 3):
        window.add(step(number, 1e-3, shares))
    torch.cuda.set_sync_debug_mode("error")
    try:
        window.add(step(3, 1e-3, shares))
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert window.loss is not None


@pytest.mark.parametrize("name", ["bf16", "fp16"])
def test_packed_rows_give_the_gradients_of_padded_ones(name: str) -> None:
    """Flash attention over packed sentences, with half weights, beside attention over padded ones in fp32."""
    torch.manual_seed(0)
    device = choose_device("cuda")
    model = TransformerConfig(d_model=64, heads=2, layers=2, dropout=0.0).build(12, 12, True).to(device)
    objective, batch = Objective(model, 0.1), collate(SOURCES, TARGETS).to(device)
    expected = torch.autograd.grad(objective(batch).loss, list(model.parameters()))
    with half_weights([model], Precision(device, name).dtype):
        objective(batch).loss.backward()
    for weight, other in zip(model.parameters(), expected, strict=True):
        assert weight.grad is not None
        assert torch.nn.functional.cosine_similarity(weight.grad.flatten(), other.flatten(), dim=0) > 0.99


@pytest.mark.parametrize("options", [{}, {"positions": "rotary", "normalization": "rmsnorm"}], ids=str)
def test_half_precision_comes_close_to_what_the_cpu_computes(options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    device = torch.device("cuda")
    model = TransformerConfig(d_model=32, heads=2, layers=2, dropout=0.0, **options).build(12, 12, True)
    objective, batch = Objective(model, 0.1), collate(SOURCES, TARGETS)
    expected = objective(batch)
    gradients = torch.autograd.grad(expected.loss, list(model.parameters()))
    objective.to(device)
    with Precision(device, "bf16").autocast():
        found = objective(batch.to(device))
    assert found.loss.item() == pytest.approx(expected.loss.item(), rel=0.02)
    for one, other in zip(torch.autograd.grad(found.loss, list(model.parameters())), gradients, strict=True):
        assert torch.nn.functional.cosine_similarity(one.cpu().flatten(), other.flatten(), dim=0) > 0.99


def test_a_step_in_bf16_learns_by_heart() -> None:
    torch.manual_seed(0)
    device, config = torch.device("cuda"), TrainerConfig()
    model = TransformerConfig(d_model=32, heads=2, layers=2, dropout=0.0).build(12, 12, True).to(device)
    step = TrainStep(config, config.objective(model), SGDConfig().build(model), Precision(device, "bf16"))
    batch = collate(SOURCES, TARGETS)
    made = [step(number, 1.0, [Share(batch, batch.tokens)]) for number in range(1, 300)]
    assert made[-1].nll.item() / batch.tokens < 0.3 * made[0].nll.item() / batch.tokens


def test_beam_of_one_equals_greedy_on_the_gpu() -> None:
    torch.manual_seed(0)
    model = TransformerConfig(d_model=32, layers=2).build(12, 12, True).cuda().eval()
    batch = collate(SOURCES, TARGETS).to(torch.device("cuda"))
    with torch.no_grad():
        greedy = GreedyConfig().build().search(model, batch.source, batch.source_lengths)
        beam = BeamConfig(beam_size=1).build().search(model, batch.source, batch.source_lengths)
    assert [h[0].tokens for h in greedy] == [h[0].tokens for h in beam]


@pytest.mark.parametrize(
    ("config", "wish"),
    [
        (BeamConfig(), Wish()),
        (DiverseConfig(beam_size=4, groups=2), Wish()),
        (BeamConfig(no_repeat_ngram=2, min_length=3), Wish()),
        (BeamConfig(), Wish(prefix=(8, 7))),
        (BeamConfig(), Wish(terms=(((5, 9), (6,)),))),
        (BeamConfig(), Wish(banned=((4, 5), (7,)))),
    ],
    ids=["beam", "diverse", "rules", "prefix", "terms", "banned"],
)
def test_each_search_finds_on_the_gpu_what_it_finds_on_the_cpu(config: BeamOptions, wish: Wish) -> None:
    torch.manual_seed(0)
    model, search = TransformerConfig(d_model=32, layers=2).build(12, 12, True).eval(), config.build()
    batch, wishes = collate(SOURCES, TARGETS), [wish] * len(SOURCES)
    with torch.inference_mode():
        expected = search.search(model, batch.source, batch.source_lengths, wishes=wishes)
        batch = batch.to(torch.device("cuda"))
        found = search.search(model.cuda(), batch.source, batch.source_lengths, wishes=wishes)
    assert [[each.tokens for each in of] for of in found] == [[each.tokens for each in of] for of in expected]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_on_the_gpu_is_the_cpu_s(smoothing: float) -> None:
    torch.manual_seed(0)
    model = TransformerConfig(d_model=32, layers=2, dropout=0.0).build(12, 12, True)
    objective, batch = Objective(model, smoothing), collate(SOURCES, TARGETS)
    expected = objective(batch).loss.item()
    sums = objective.to("cuda")(batch.to(torch.device("cuda")))
    sums.loss.backward()
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters() if p.grad is not None)
    assert sums.loss.item() == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd", "adafactor", "muon"])
def test_each_optimiser_lowers_the_loss(optimizer: str) -> None:
    torch.manual_seed(0)
    device = torch.device("cuda")
    model = TransformerConfig(d_model=32, layers=1, dropout=0.0).build(12, 12, True).to(device)
    objective, batch = Objective(model, 0.0), collate(SOURCES, TARGETS).to(device)
    steps = OPTIMIZERS.get(optimizer)().build(model)
    losses = []
    for _ in range(30):
        steps.zero_grad()
        sums = objective(batch)
        (sums.loss / sums.tokens).backward()
        steps.step()
        losses.append(sums.loss.item())
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16"])
def test_each_precision_learns_by_heart(name: str) -> None:
    torch.manual_seed(0)
    device = torch.device("cuda")
    model = TransformerConfig(d_model=32, layers=1, dropout=0.0).build(12, 12, True).to(device)
    objective, precision = Objective(model, 0.0), Precision(device, name)
    optimizer = AdamWConfig(lr=0.003).build(model)
    scaler = torch.amp.GradScaler("cuda", enabled=precision.needs_scaler)
    batch = collate(SOURCES, TARGETS).to(device)
    for _ in range(200):
        optimizer.zero_grad()
        with precision.autocast():
            sums = objective(batch)
        scaler.scale(sums.loss / sums.tokens).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    assert sums.nll.item() / sums.tokens < 0.1


def test_auto_precision_is_half_on_a_gpu() -> None:
    device = torch.device("cuda")
    model = TransformerConfig(d_model=32, layers=1).build(12, 12, True).to(device)
    chosen, _ = choose_precision("auto", device, Objective(model, 0.0), lambda: collate(SOURCES, TARGETS))
    assert chosen.name in ("bf16", "fp16")


def test_mt_train_on_the_gpu(tmp_path: Path) -> None:
    from tolka.api.train import train
    from tolka.config.command_line import train_config

    result = train(
        train_config(
            [
                *("experiment=sample", f"run.dir={tmp_path / 'run'}", f"run.prepared={tmp_path / 'prepared'}"),
                *("trainer.device=cuda", "trainer.updates=100", "trainer.validate_every=100", "scheduler.warmup=50"),
            ]
        )
    )
    assert result.state.update == 100
    assert [test.name for test in result.tests] == ["test_fresh", "test_unseen"]


def test_a_model_is_chosen_for_the_gpu(tmp_path: Path) -> None:
    from tolka.api.train import train
    from tolka.config.command_line import train_config

    for side in ("en", "de"):
        lines = [f"{word} {number} {side}" for number in range(60) for word in ("one", "two", "three", "four")]
        (tmp_path / f"text.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = [
        "corpus=files",
        "model=auto",
        "corpus.valid=auto",
        f"corpus.train={tmp_path / 'text'}",
        "corpus.source=en",
        "corpus.target=de",
    ]
    result = train(train_config([*settings, f"run.dir={tmp_path / 'run'}", "trainer.max_minutes=0.3"]))
    assert result.state.update > 0
    chosen = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text(encoding="utf-8"))
    assert (chosen["scheduler"]["name"], chosen["trainer"]["patience"]) == ("wsd", 4)


def test_a_bad_update_leaves_the_weights_alone_and_nobody_waits() -> None:
    """The fused optimiser reads on the device that the gradient is NaN or inf."""
    torch.manual_seed(0)
    device = torch.device("cuda")
    model = TransformerConfig(d_model=32, layers=1, dropout=0.0).build(12, 12, True).to(device)
    step = TrainStep(TrainerConfig(), Objective(model, 0.0), AdamWConfig().build(model), Precision(device, "fp32"))
    batch = collate(SOURCES, TARGETS)
    assert not step.waits

    def weights() -> list[torch.Tensor]:
        return [weight.detach().clone() for weight in model.parameters()]

    assert step(1, 1e-3, [Share(batch, batch.tokens)]).applied
    before = weights()
    spoilt = next(model.parameters()).register_hook(lambda gradient: gradient * float("nan"))
    assert not step(2, 1e-3, [Share(batch, batch.tokens)]).applied
    assert all(torch.equal(one, other) for one, other in zip(before, weights(), strict=True))
    spoilt.remove()
    assert step(3, 1e-3, [Share(batch, batch.tokens)]).applied
    assert not all(torch.equal(one, other) for one, other in zip(before, weights(), strict=True))


def test_an_update_goes_in_as_few_batches_as_the_device_has_room_for() -> None:
    device = torch.device("cuda")
    rows = [[4 + (i * j) % 900 for j in range(60)] for i in range(4096)]
    store = TokenStore.from_rows(rows, rows)
    loader = Loader(store, BatchingConfig(tokens=4096 * 61, max_length=64), seed=1)
    model = TransformerConfig(d_model=256, layers=2).build(1000, 1000, True).to(device)
    step = TrainStep(TrainerConfig(), Objective(model, 0.1), AdamWConfig().build(model), Precision(device, "fp32"))
    total = torch.cuda.get_device_properties(device).total_memory
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(min(1.0, 3e9 / total))
    try:
        batches = fewest_batches(step, loader, 4096 * 61, least=65)
        assert batches > 1
        assert loader.tokens * batches >= 4096 * 61
        fresh = TrainStep(TrainerConfig(), Objective(model, 0.1), AdamWConfig().build(model), step.precision)
        largest = loader.largest()
        assert all(fresh(number, 1e-3, [Share(largest, largest.tokens)]).splits == 0 for number in (1, 2))
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def test_deterministic_runs_are_alike_and_go_on_exactly(tmp_path: Path) -> None:
    """Two trainings, and one in two parts, with dropout on: the same weights, bit for bit."""
    settings = [
        *(
            "experiment=sample",
            f"run.prepared={tmp_path / 'prepared'}",
            "trainer.device=cuda",
            "trainer.precision=fp32",
        ),
        *("trainer.deterministic=true", "trainer.validate_every=20", "scheduler.warmup=10", "corpus.test=[]"),
    ]

    def trained(name: str, *updates: int) -> bytes:
        for number in updates:
            code = "from tolka.cli import mt_train; mt_train()"
            command = [sys.executable, "-c", code, *settings, f"trainer.updates={number}"]
            subprocess.run([*command, f"run.dir={tmp_path / name}"], check=True, capture_output=True)
        return (tmp_path / name / "last" / "model.safetensors").read_bytes()

    assert trained("a", 40) == trained("b", 40) == trained("c", 20, 40)
