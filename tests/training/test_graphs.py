"""Passes that are captured once for a shape of batch; what is CUDA's own is in test_gpu.py."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tape import Recorder
from trainer_bench import Bench

from tolka.batch import Batch, collate
from tolka.data.buckets import BatchingConfig
from tolka.data.loader import Loader
from tolka.data.store import TokenStore
from tolka.errors import ConfigError, TolkaError
from tolka.losses import Objective
from tolka.models.rnn import RnnConfig
from tolka.models.transformer import TransformerConfig
from tolka.overrides import train_config
from tolka.runtime import Precision
from tolka.training import graphs
from tolka.training.graphs import CapturedPasses, check_graphs, shape_for
from tolka.training.optim import SGDConfig

CPU = Precision(torch.device("cpu"), "fp32")
BATCHES = [
    collate([[4, 5, 6], [7]], [[8, 9], [10, 4, 5]]),
    collate([[4, 5, 6, 7], [7, 5]], [[8], [10, 4]]),
    collate([[4] * 20], [[5] * 18]),
]


def rows(lengths: list[int]) -> list[list[int]]:
    return [[4] * length for length in lengths]


@pytest.fixture
def recorder(recorder: Recorder) -> Recorder:
    """On a CPU a pass looks at lengths, to see what there is to gain by packing."""
    recorder.may_read = True
    return recorder


@given(
    st.lists(st.tuples(st.integers(0, 70), st.integers(0, 70)), min_size=1, max_size=60),
)
def test_every_batch_can_be_filled_up(lengths: list[tuple[int, int]]) -> None:
    batch = collate(rows([one for one, _ in lengths]), rows([other for _, other in lengths]))
    shape = sentences, sources, targets, longest = shape_for(batch)
    filled = batch.filled(*shape)
    assert filled.source.shape == filled.target_in.shape == filled.target_out.shape == (sentences, longest)
    assert (len(filled.source_positions), len(filled.target_positions)) == (sources, targets)
    assert int(filled.source_lengths.sum()) == sources


def test_few_shapes_serve_many_batches_and_little_is_added() -> None:
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(3, 60, (40_000,), generator=generator)
    noise = torch.randint(-2, 3, (40_000,), generator=generator)
    store = TokenStore.from_rows(rows(lengths.tolist()), rows((lengths + noise).tolist()))
    loader = Loader(store, BatchingConfig(tokens=8192, max_length=100), seed=1)
    batches = [loader.batch(0, number) for number in range(len(loader.plan(0)))]
    shapes = [shape_for(batch) for batch in batches]
    assert len(batches) > 150
    assert len(set(shapes)) < 60
    targets = sum(batch.tokens for batch in batches)
    assert sum(shape[2] for shape in shapes) < 1.07 * targets


def made(**options: Any) -> Objective:
    torch.manual_seed(0)
    model = TransformerConfig(d_model=16, heads=2, layers=1, **options).build(12, 12, True)
    return Objective(model, label_smoothing=0.1)


def test_the_gradient_of_several_batches_is_that_of_plain_passes(recorder: Recorder) -> None:
    expected, found = made(dropout=0.0), made(dropout=0.0)
    captured = CapturedPasses(found, CPU)
    for batches in (BATCHES[:2], BATCHES[1:], BATCHES[:1]):
        tokens = sum(batch.tokens for batch in batches)
        expected.zero_grad()
        captured.clear_gradients()
        for batch in batches:
            sums = expected(batch)
            (sums.loss / tokens).backward()
            nll = captured(batch, 1 / tokens)
            assert nll is not None
            torch.testing.assert_close(nll, sums.nll.detach())
        for one, other in zip(expected.parameters(), found.parameters(), strict=True):
            torch.testing.assert_close(other.grad, one.grad)
    assert (recorder.made, recorder.played) == (2, 5)  # the first two batches have one shape


def test_where_there_are_as_many_as_may_be_nothing_is_done(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "_MOST", 1)
    captured = CapturedPasses(made(), CPU)
    captured.clear_gradients()
    assert captured(BATCHES[0], 1.0) is not None
    assert captured(BATCHES[1], 1.0) is not None
    assert captured(BATCHES[2], 1.0) is None
    assert (recorder.made, recorder.played) == (1, 2)


def test_a_run_with_them_is_the_run_without(recorder: Recorder, tmp_path: Path) -> None:
    """Moving average and all else that stands around a pass included."""
    options: dict[str, Any] = {"updates": 8, "accumulate": 2, "dropout": 0.0, "ema": 0.9, "optimizer": SGDConfig()}
    plain = Bench(tmp_path / "plain", **options)
    captured = Bench(tmp_path / "captured", cuda_graphs=True, **options)
    plain.trainer.fit()
    captured.trainer.fit()
    for one, other in zip(plain.model.parameters(), captured.model.parameters(), strict=True):
        torch.testing.assert_close(other, one)
    assert recorder.played > recorder.made > 0


def test_what_cannot_be_captured_is_said(tiny: list[str], recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"needs a CUDA device that calculates in bf16, not cpu in fp32: leave it"):
        check_graphs(CPU, TransformerConfig())
    gpu = Precision(torch.device("cuda"), "bf16")
    monkeypatch.setattr(graphs, "has_packed_attention", lambda *_asked: False)
    with pytest.raises(ConfigError, match=r"none for keys of 12 and values of 16 numbers a head"):
        check_graphs(gpu, TransformerConfig(d_model=24, heads=2, d_v=16))
    monkeypatch.setattr(graphs, "has_packed_attention", lambda *_asked: True)
    check_graphs(gpu, TransformerConfig())
    with pytest.raises(ConfigError, match="is for a Transformer"):
        check_graphs(gpu, RnnConfig())
    for more in (["trainer.r_drop=5"], ["trainer.recompute=true"], ["model.layerdrop=0.2"]):
        with pytest.raises(ConfigError, match=r"trainer\.cuda_graphs"):
            train_config([*tiny, "trainer.cuda_graphs=true", *more])

    with pytest.raises(ConfigError, match=r"trainer\.cuda_graphs speed up a Transformer's"):
        train_config(["model=lstm", "trainer.cuda_graphs=true"])

    first = RuntimeError("operation not permitted when stream is capturing\nsecond line")
    last = RuntimeError("the capture was broken off by an earlier error")
    last.__context__ = first
    recorder.errors.append(last)
    with pytest.raises(TolkaError, match=r"over 4 sentences cannot be captured \(operation not permitted when"):
        CapturedPasses(made(), CPU)(BATCHES[0], 1.0)


def test_a_batch_that_memory_cannot_capture_is_halved(recorder: Recorder, tmp_path: Path) -> None:
    recorder.errors.append(torch.OutOfMemoryError("CUDA out of memory"))
    bench = Bench(tmp_path, updates=3, cuda_graphs=True)
    state = bench.trainer.fit()
    assert (state.update, state.splits) == (3, 1)


def test_a_filled_batch_counts_its_own_tokens_alone() -> None:
    batch: Batch = BATCHES[0]
    filled = batch.filled(5, 16, 20, 8)
    objective = made(dropout=0.0)
    found, expected = objective(filled), objective(batch)
    assert (filled.tokens, len(filled.targets)) == (7, 20)
    torch.testing.assert_close(found.loss, expected.loss)
    weights = list(objective.parameters())
    for one, other in zip(*(torch.autograd.grad(sums.loss, weights) for sums in (found, expected)), strict=True):
        torch.testing.assert_close(one, other)
    assert filled.source_lengths.tolist() == [4, 2, 8, 2, 0]
    assert filled.target_lengths.tolist() == [3, 4, 8, 5, 0]
    for shape in ((1, 16, 20, 8), (3, 16, 20, 8), (5, 7, 20, 8), (5, 16, 20, 3)):
        with pytest.raises(ValueError, match=rf"2 sentences of \d tokens cannot be {shape[0]} of .* {shape[3]} each"):
            batch.filled(*shape)
