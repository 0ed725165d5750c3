"""What only a CUDA device can show; run with -m gpu."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tolka.batch import collate
from tolka.data.buckets import BatchingConfig
from tolka.data.loader import Loader
from tolka.data.store import TokenStore
from tolka.losses import Objective
from tolka.models.base import ModelConfig
from tolka.models.captured import CapturedModel
from tolka.models.rnn import RnnConfig
from tolka.models.transformer import TransformerConfig
from tolka.nn.variable_length import has_packed_attention
from tolka.runtime import Precision, choose_device
from tolka.search.base import SearchConfig
from tolka.search.beam import BeamConfig
from tolka.search.greedy import GreedyConfig
from tolka.training.compilation import compile_layers
from tolka.training.graphs import CapturedPasses
from tolka.training.memory import fewest_batches
from tolka.training.optim import OPTIMIZERS, AdamWConfig, SGDConfig
from tolka.training.options import TrainerConfig
from tolka.training.precision import choose_precision
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


@pytest.mark.parametrize("options", [{}, {"positions": "rotary", "normalization": "rmsnorm"}], ids=str)
def test_packed_rows_in_half_precision_are_what_the_cpu_computes(options: dict[str, Any]) -> None:
    """The kernel for sentences of unlike length is in use: widths of 16 a head, bf16."""
    torch.manual_seed(0)
    device = torch.device("cuda")
    assert has_packed_attention(torch.device("cuda", 0), torch.bfloat16, 16, 16)
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


def stepping(dropout: float = 0.0, **options: Any) -> tuple[TrainStep, list[torch.Tensor]]:
    """A step in bf16, and its weights."""
    torch.manual_seed(0)
    device = torch.device("cuda")
    model = TransformerConfig(d_model=32, heads=2, layers=2, dropout=dropout).build(12, 12, True).to(device)
    config = TrainerConfig(**options)
    optimizer = SGDConfig().build(model)
    return TrainStep(config, config.objective(model), optimizer, Precision(device, "bf16")), list(model.parameters())


def test_captured_passes_move_the_weights_as_plain_ones() -> None:
    """Three shapes of batch, several to an update, each replayed more than once."""
    batches = [collate(SOURCES, TARGETS), collate(SOURCES[:2], TARGETS[:2]), collate([[4] * 30] * 3, [[5] * 20] * 3)]
    (plain, expected), (captured, found) = stepping(), stepping(cuda_graphs=True)
    for number in range(1, 7):
        group = batches[number % 3 :] + batches[:1]
        one, other = plain(number, 0.1, group), captured(number, 0.1, group)
        assert other.nll.item() == pytest.approx(one.nll.item(), rel=0.02)
    for weight, same in zip(found, expected, strict=True):
        assert torch.nn.functional.cosine_similarity(weight.flatten(), same.flatten(), dim=0) > 0.999


@pytest.mark.parametrize("options", [{}, {"positions": "rotary"}, {"positions": "learned"}], ids=str)
def test_a_captured_pass_outlives_longer_sentences(options: dict[str, Any]) -> None:
    """Which make new tables of positions; the one that was captured stays where it is."""
    torch.manual_seed(0)
    device = torch.device("cuda")
    model = TransformerConfig(d_model=32, heads=2, layers=2, dropout=0.0, **options).build(12, 12, True).to(device)
    captured = CapturedPasses(Objective(model, 0.1), Precision(device, "bf16"))
    batch = collate(SOURCES, TARGETS)
    captured.clear_gradients()
    before = captured(batch, 0.1)
    with torch.no_grad():
        long = torch.full((1, 900), 4, device=device)
        model.start(long, torch.tensor([900], device=device))
    filling = [torch.full((256, 256), 7.0, device=device) for _ in range(64)]
    after = captured(batch, 0.1)
    assert before is not None
    assert after is not None
    assert after.item() == pytest.approx(before.item(), rel=1e-3)
    assert (len(captured._captured), len(filling)) == (1, 64)


def test_captured_passes_draw_new_masks_each_time() -> None:
    captured, weights = stepping(dropout=0.5, cuda_graphs=True)
    nlls = [captured(number, 0.0, [collate(SOURCES, TARGETS)]).nll.item() for number in range(1, 5)]
    assert len(set(nlls)) == 4
    assert all(weight.isfinite().all() for weight in weights)


@pytest.mark.parametrize("cuda_graphs", [False, True])
def test_compiled_layers_learn_by_heart(cuda_graphs: bool) -> None:
    step, _ = stepping(cuda_graphs=cuda_graphs)
    compile_layers(step.objective.model, torch.device("cuda"))
    batch = collate(SOURCES, TARGETS)
    made = [step(number, 1.0, [batch]) for number in range(1, 300)]
    assert made[-1].nll.item() / batch.tokens < 0.3 * made[0].nll.item() / batch.tokens


def test_beam_of_one_equals_greedy_on_the_gpu() -> None:
    torch.manual_seed(0)
    model = TransformerConfig(d_model=32, layers=2).build(12, 12, True).cuda().eval()
    batch = collate(SOURCES, TARGETS).to(torch.device("cuda"))
    with torch.no_grad():
        greedy = GreedyConfig().search(model, batch.source, batch.source_lengths)
        beam = BeamConfig(beam_size=1).search(model, batch.source, batch.source_lengths)
    assert [h[0].tokens for h in greedy] == [h[0].tokens for h in beam]


@pytest.mark.parametrize("search", [GreedyConfig(), BeamConfig(beam_size=3)], ids=["greedy", "beam"])
@pytest.mark.parametrize(
    "config",
    [
        TransformerConfig(d_model=32, layers=2),
        TransformerConfig(d_model=32, layers=2, positions="rotary"),
        TransformerConfig(d_model=32, layers=2, positions="learned"),
        RnnConfig(d_model=32, attention="dot", bidirectional=True),
        RnnConfig(d_model=32, cell="gru", attention="additive", input_feeding=True),
    ],
    ids=["sinusoidal", "rotary", "learned", "lstm", "gru"],
)
def test_captured_steps_find_what_plain_ones_do(config: ModelConfig, search: SearchConfig) -> None:
    """Batches of several shapes, twice; between them a longer sentence makes new tables of positions."""
    torch.manual_seed(0)
    device = torch.device("cuda")
    model = config.build(12, 12, True).to(device).eval()
    captured = CapturedModel(model, device)
    batches = [[[4 + (i * j) % 8 for j in range(1 + i % 20)] for i in range(count)] for count in (40, 3, 40, 1, 17)]
    agree, sentences = 0, 0
    for rows in (*batches, [[5] * 300], *batches):
        batch = collate(rows, rows).to(device)
        with torch.inference_mode():
            expected = search.search(model, batch.source, batch.source_lengths)
            found = search.search(captured, batch.source, batch.source_lengths)
        agree += sum(one[0].tokens == other[0].tokens for one, other in zip(found, expected, strict=True))
        sentences += len(rows)
        for one, other in zip(found, expected, strict=True):
            assert one[0].score == pytest.approx(other[0].score, rel=2e-2, abs=2e-2)
    assert agree >= 0.9 * sentences  # kernels differ by shape in the last bits
    assert any(step.recording is not None for step in captured._steps.values())


def test_the_features_of_captured_steps_are_those_of_plain_ones() -> None:
    """The same tokens are given to both, in several shapes in turn, more of them than a device has streams to deal out;
    memory does not grow with each."""
    torch.manual_seed(0)
    device = torch.device("cuda")
    model = TransformerConfig(d_model=32, layers=2, positions="rotary").build(12, 12, True).to(device).eval()
    captured, reserved = CapturedModel(model, device), []
    for sentences in (300, 200, 100, 60, 30, 10, 5, 2, 1) * 2:
        for width in (10, 20, 40, 80):
            rows = [[4 + i % 8] * width for i in range(sentences)]
            batch = collate(rows, rows).to(device)
            with torch.inference_mode():
                one, other = (each.start(batch.source, batch.source_lengths) for each in (model, captured))
                for place in range(40):
                    token = batch.source[:, place % width][:, None]
                    expected, one = model.step(token, one)
                    found, other = captured.step(token, other)
                    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)
            reserved.append(torch.cuda.memory_reserved(device))
    assert sum(step.recording is not None for step in captured._steps.values()) > 32
    assert reserved[-1] < 1.5 * reserved[0] + 2e8


def test_after_a_full_memory_steps_are_captured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    device = torch.device("cuda")
    model = TransformerConfig(d_model=32, layers=1).build(12, 12, True).to(device).eval()
    captured, batch = CapturedModel(model, device), collate(SOURCES, TARGETS).to(device)
    real, fails = type(model).step, [True]

    def step(self: Any, *given: Any) -> Any:
        if torch.cuda.is_current_stream_capturing() and fails.pop():
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(self, *given)

    monkeypatch.setattr(type(model), "step", step)
    with torch.inference_mode():
        with pytest.raises(torch.OutOfMemoryError):
            GreedyConfig().search(captured, batch.source, batch.source_lengths)
        captured.forget()
        torch.cuda.empty_cache()
        fails.extend([False] * 100)
        found = GreedyConfig().search(captured, batch.source, batch.source_lengths)
        expected = GreedyConfig().search(model, batch.source, batch.source_lengths)
    assert [one[0].tokens for one in found] == [one[0].tokens for one in expected]


def test_captured_steps_in_half_precision_end_as_plain_ones(tmp_path: Path) -> None:
    """A model that has learnt something; what it says in bf16, with and without."""
    from tolka.api import train
    from tolka.decoding import DecodingConfig
    from tolka.overrides import train_config
    from tolka.translator import Translator

    folders = [f"run.dir={tmp_path / 'run'}", f"run.prepared={tmp_path / 'prepared'}"]
    more = ["trainer.device=cuda", "trainer.updates=100", "trainer.validate_every=100", "scheduler.warmup=50"]
    train(train_config(["experiment=sample", *folders, *more]))
    words = ["boat", "ferry", "bird", "harbour", "garden", "letter", "window", "teacher", "river", "bread"]
    texts = [f"the {one} is near the {other} ." for one in words for other in words]
    said = []
    for graphs in (False, True):
        decoding = DecodingConfig(device="cuda", precision="bf16", cuda_graphs=graphs)
        translator = Translator.load(tmp_path / "run", GreedyConfig(), decoding)
        said.append(translator(texts))
    assert isinstance(translator.model, CapturedModel)
    assert any(step.recording is not None for step in translator.model._steps.values())
    assert sum(one == other for one, other in zip(*said, strict=True)) >= 0.8 * len(texts)  # bf16 has many ties


@pytest.mark.parametrize(
    "options",
    [{"r_drop": 5.0}, {"simcut": 3.0, "simcut_words": 0.3}, {"word_dropout": 0.3}, {"label_smoothing": 0.0}],
    ids=str,
)
def test_the_loss_on_the_gpu_is_the_cpu_s_where_no_chance_is_in_it(options: dict[str, Any]) -> None:
    """Without dropout R-Drop's passes agree; dropped words are drawn on the device, so those only must be finite."""
    torch.manual_seed(0)
    model = TransformerConfig(d_model=32, layers=2, dropout=0.0).build(12, 12, True)
    objective = TrainerConfig(**options).objective(model)
    batch = collate(SOURCES, TARGETS)
    expected = objective(batch).loss.item()
    sums = objective.to("cuda")(batch.to(torch.device("cuda")))
    sums.loss.backward()
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters() if p.grad is not None)
    if "simcut" not in options and "word_dropout" not in options:
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
    from tolka.api import train
    from tolka.overrides import train_config

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


def test_a_bad_update_leaves_the_weights_alone_and_nobody_waits() -> None:
    """The fused optimiser reads on the device that the gradient is no number."""
    torch.manual_seed(0)
    device = torch.device("cuda")
    model = TransformerConfig(d_model=32, layers=1, dropout=0.0).build(12, 12, True).to(device)
    step = TrainStep(TrainerConfig(), Objective(model, 0.0), AdamWConfig().build(model), Precision(device, "fp32"))
    batch = collate(SOURCES, TARGETS)
    assert not step.waits

    def weights() -> list[torch.Tensor]:
        return [weight.detach().clone() for weight in model.parameters()]

    assert step(1, 1e-3, [batch]).sound
    before = weights()
    spoilt = next(model.parameters()).register_hook(lambda gradient: gradient * float("nan"))
    assert not step(2, 1e-3, [batch]).sound
    assert all(torch.equal(one, other) for one, other in zip(before, weights(), strict=True))
    spoilt.remove()
    assert step(3, 1e-3, [batch]).sound
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
        fit = fewest_batches(step, loader, 4096 * 61, least=65)
        assert fit.batches > 1
        assert fit.tokens * fit.batches >= 4096 * 61
        fresh = TrainStep(TrainerConfig(), Objective(model, 0.1), AdamWConfig().build(model), step.precision)
        assert all(fresh(number, 1e-3, [loader.largest()]).splits == 0 for number in (1, 2))
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
            code = "import sys; from tolka.cli.train import main; sys.exit(main())"
            command = [sys.executable, "-c", code, *settings, f"trainer.updates={number}"]
            subprocess.run([*command, f"run.dir={tmp_path / name}"], check=True, capture_output=True)
        return (tmp_path / name / "last" / "model.safetensors").read_bytes()

    assert trained("a", 40) == trained("b", 40) == trained("c", 20, 40)
