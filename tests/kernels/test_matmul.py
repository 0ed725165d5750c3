"""Matrix multiplication by oneDNN against torch's own, and where it is used."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tolka.kernels import matmul as products
from tolka.kernels.matmul import matmul, onednn_is_faster, rounded_row_count, row_counts_are_compiled
from tolka.nn.linear import FusedLinear

pytestmark = pytest.mark.skipif(
    not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="this build of torch has no oneDNN"
)


@pytest.fixture
def by_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behave as on a processor for which oneDNN is the faster library."""
    monkeypatch.setattr(products, "onednn_is_faster", lambda: True)


@pytest.fixture
def chosen_anew() -> Iterator[None]:
    """Decide anew which library is faster, before and after the test."""
    onednn_is_faster.cache_clear()
    yield
    onednn_is_faster.cache_clear()


def leaves(shape: tuple[int, ...], width: int, biased: bool = True) -> list[Tensor]:
    """x `shape`, weight (width, I) and bias (width,)."""
    torch.manual_seed(0)
    shapes = [shape, (width, shape[-1]), *([(width,)] if biased else [])]
    return [torch.randn(each, requires_grad=True) for each in shapes]


@pytest.mark.usefixtures("by_onednn")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("shape", "width", "biased"),
    [
        ((70, 48), 32, True),
        ((70, 32), 48, False),
        ((5, 14, 32), 1024, True),  # wide: the gradient of its weights is made another way
        ((70, 1024), 32, True),
        ((2, 3, 5, 8), 1, False),
        ((1, 8), 8, True),
    ],
)
def test_results_and_gradients_are_torchs(
    shape: tuple[int, ...], width: int, biased: bool, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    given = leaves(shape, width, biased)
    found, expected = matmul(*given), F.linear(*given)
    assert found.grad_fn is not None
    assert "_Matmul" in found.grad_fn.name()
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    upstream = torch.randn_like(expected)
    ours, theirs = (torch.autograd.grad(each, given, upstream) for each in (found, expected))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("by_onednn")
def test_what_follows_may_happen_in_place() -> None:
    x, weight, bias = leaves((6, 8), 4)
    found = torch.autograd.grad(torch.relu_(matmul(x, weight, bias)).sum(), (x, weight, bias))
    expected = torch.autograd.grad(torch.relu(F.linear(x, weight, bias)).sum(), (x, weight, bias))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.usefixtures("by_onednn")
def test_what_is_at_rest_gets_no_gradient() -> None:
    x, weight, bias = leaves((6, 8), 4)
    matmul(x, weight.requires_grad_(False), bias).sum().backward()
    assert weight.grad is None
    assert x.grad is not None
    assert bias.grad is not None


@pytest.mark.usefixtures("by_onednn")
def test_elsewhere_torch_chooses() -> None:
    x, weight, _ = leaves((6, 8), 4)

    def is_ours(*given: Tensor) -> bool:
        made_by = matmul(*given).grad_fn
        return made_by is not None and "_Matmul" in made_by.name()

    assert is_ours(x, weight)
    assert not is_ours(x[0], weight)
    assert matmul(x[:0], weight).shape == (0, 4)
    assert not is_ours(x.double(), weight.double())
    with torch.autocast("cpu", torch.bfloat16):
        assert not is_ours(x, weight)
        assert row_counts_are_compiled()


@pytest.mark.usefixtures("by_onednn")
@pytest.mark.parametrize("shape", [(5, 8), (2, 3, 8), (16, 8)])
def test_without_a_gradient_in_few_numbers_of_rows(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    x, weight, bias = leaves(shape, 4)
    fill, rows = products.with_padding_rows, []

    def watched(x: Tensor) -> Tensor:
        found = fill(x)
        rows.append(len(found))
        return found

    monkeypatch.setattr(products, "with_padding_rows", watched)
    with torch.no_grad():
        torch.testing.assert_close(matmul(x, weight, bias), F.linear(x, weight, bias))
        assert not rows, "so small a matmul is as fast elsewhere"
        monkeypatch.setattr(products, "_MIN_MULTIPLICATIONS", 0)
        torch.testing.assert_close(matmul(x, weight, bias), F.linear(x, weight, bias))
        assert rows in ([8], [16])
        assert not row_counts_are_compiled()


def test_linear_layers_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, seen = FusedLinear(4, [2, 3]), []
    monkeypatch.setattr("tolka.nn.linear.matmul", lambda *given: seen.append(given))
    x = torch.randn(2, 4)
    layer(x)
    assert seen == [(x, layer.weight, layer.bias)]


@pytest.mark.usefixtures("chosen_anew")
@pytest.mark.parametrize(
    ("capability", "maker", "ours"),
    [
        ("AVX512", "AuthenticAMD", True),
        ("AVX2", "AuthenticAMD", False),  # as far as MKL goes
        ("AVX512", "GenuineIntel", False),
        ("AVX512", None, False),
    ],
)
def test_which_processors_it_is_for(
    capability: str, maker: str | None, ours: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for library in (torch.backends.mkl, torch.backends.mkldnn):
        monkeypatch.setattr(library, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    facts = tmp_path / "cpuinfo"
    if maker:
        facts.write_text(f"processor\t: 0\nvendor_id\t: {maker}\n", encoding="utf-8")
    monkeypatch.setattr(products, "_CPU_INFO", facts)
    assert onednn_is_faster() is ours


def test_few_numbers_of_rows_near_to_every_other() -> None:
    found = {count: rounded_row_count(count) for count in range(1, 20_000)}
    assert all(count <= rounded <= max(count + 7, count * 17 / 16) for count, rounded in found.items())
    assert all(rounded_row_count(rounded) == rounded for rounded in found.values())
    assert len({rounded for rounded in found.values() if 2048 < rounded <= 4096}) == 16
