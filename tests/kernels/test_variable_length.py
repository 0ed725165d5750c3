"""Attention over packed rows, as far as a CPU can test a GPU's kernel."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tolka.data.batch import collate
from tolka.kernels import attention, packing
from tolka.kernels.packing import VariableLengthPacking, attend_variable_length, has_variable_length_kernel
from tolka.models.transformer import TransformerConfig


def test_this_torch_has_the_operation_with_a_gradient() -> None:
    """The kernel's shapes, which is all that can be tested without a GPU."""
    rows, seen = (VariableLengthPacking(torch.empty(2, device="meta"), longest) for longest in (3, 4))
    query, key, value = (torch.empty(n, 2, 8, device="meta", requires_grad=True) for n in (5, 5, 5))
    found = attend_variable_length(query, key, value, rows, seen, causal=True)
    assert found.shape == (5, 2, 8)
    assert [each.shape for each in torch.autograd.grad(found.sum(), (query, key, value))] == [(5, 2, 8)] * 3


def test_a_cpu_has_none() -> None:
    assert not has_variable_length_kernel(torch.device("cpu"), torch.bfloat16, 64)


def plain(
    query: Tensor, key: Tensor, value: Tensor, rows: VariableLengthPacking, source: VariableLengthPacking, causal: bool
) -> Tensor:
    """Compute the kernel's result sentence by sentence."""
    lengths = rows.lengths.tolist(), source.lengths.tolist(), source.lengths.tolist()
    sentences = zip(*(torch.split(x, each) for x, each in zip((query, key, value), lengths, strict=True)), strict=True)
    heads_first = ([x.transpose(0, 1) for x in sentence] for sentence in sentences)
    return torch.cat(
        [F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(0, 1) for q, k, v in heads_first]
    )


def missing(*_given: Any) -> Tensor:
    raise NotImplementedError("no such kernel")


@pytest.mark.parametrize(
    "options",
    [{"norm": "pre"}, {"norm": "post", "positions": "learned"}, {"positions": "rotary", "normalization": "rmsnorm"}],
    ids=str,
)
def test_a_model_on_packed_rows_is_the_model(monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model = TransformerConfig(d_model=16, heads=2, layers=2, dropout=0.0, **options).build(12, 12, True).double()
    batch = collate([[4, 5, 6, 7, 8], [9], [5, 4]], [[8, 7], [10, 9, 4, 5, 11, 6], [4]])
    expected = model(batch)
    monkeypatch.setattr(packing, "has_variable_length_kernel", lambda *_asked: True)
    monkeypatch.setattr(attention, "attend_variable_length", plain)
    monkeypatch.setattr(attention, "fused_attention", missing)
    found = model(batch)
    torch.testing.assert_close(found, expected)
    weights = list(model.parameters())
    for one, other in zip(*(torch.autograd.grad((x**3).sum(), weights) for x in (found, expected)), strict=True):
        torch.testing.assert_close(one, other)
    seen = model.inspect(batch)  # padded, as ever
    torch.testing.assert_close(seen.features, expected)
    assert seen.attention["encoder.1.self"].shape == (3, 2, 6, 6)
