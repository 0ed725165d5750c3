"""Rows for new subwords."""

import pytest
import torch

from tolka.data.batch import collate
from tolka.models.base import ModelConfig
from tolka.models.embeddings import with_new_rows
from tolka.models.new_rows import NewRows
from tolka.models.rnn import RnnConfig
from tolka.models.transformer import TransformerConfig
from tolka.nn.lora import merged_state
from tolka.training.finetuning import FinetuningConfig


def test_new_rows_are_the_means_of_the_rows_that_spell_them() -> None:
    matrix, bias = torch.arange(24.0).reshape(8, 3), torch.arange(8.0)
    state = {"target_embedding.weight": matrix, "output_bias": bias, "encoder.weight": torch.ones(8, 8)}
    new = with_new_rows(state, [], [[4, 6], [5, 3, 5, 7]])  # 3 is <unk>, which is left out
    expected = torch.stack([(matrix[4] + matrix[6]) / 2, (2 * matrix[5] + matrix[7]) / 3])
    torch.testing.assert_close(new["target_embedding.weight"], torch.cat([matrix, expected]))
    torch.testing.assert_close(new["output_bias"][8:], torch.tensor([5.0, 17 / 3]))
    assert new["encoder.weight"] is state["encoder.weight"]


def test_a_matrix_of_several_names_stays_one() -> None:
    matrix, other = torch.randn(8, 3), torch.randn(9, 3)
    tied = {"target_embedding.weight": matrix, "output_embedding.weight": matrix, "source_embedding.weight": other}
    new = with_new_rows(tied, [[4], [5]], [[3]])
    assert new["target_embedding.weight"] is new["output_embedding.weight"]
    torch.testing.assert_close(new["source_embedding.weight"][9:], other[4:6])
    assert new["target_embedding.weight"].shape == (9, 3)


def test_wholly_unknown_subwords_start_near_the_mean_and_differ() -> None:
    """The mean is that of ordinary subwords: <pad> and its like are far from them."""
    torch.manual_seed(1)
    matrix = torch.cat([torch.full((4, 16), 1e6), 5 + torch.randn(4000, 16)])
    rows = with_new_rows({"source_embedding.weight": matrix}, [[3], [3, 3]] * 100, [])["source_embedding.weight"][-200:]
    torch.testing.assert_close(rows.mean(), torch.tensor(5.0), atol=0.05, rtol=0)
    assert 0.08 < rows.std(0).mean() < 0.12
    assert len(rows.unique(dim=0)) == 200


@pytest.mark.parametrize("config", [TransformerConfig(d_model=8, heads=2, layers=1), RnnConfig(8, attention="general")])
@pytest.mark.parametrize("shared", [True, False])
def test_new_rows_compute_as_the_merged_embedding_does(config: ModelConfig, shared: bool) -> None:
    """The logits, and the gradient of the new rows; the old ones have none."""
    torch.manual_seed(0)
    sizes = (11, 11, True) if shared else (11, 12, False)
    model, plain = (config.build(*sizes).eval().double() for _ in range(2))
    FinetuningConfig(lora_rank=2).apply(model, (3, 3) if shared else (3, 2))
    embeddings = {name: part for name, part in model.named_modules() if isinstance(part, NewRows)}
    assert [len(part.lora_rows) for part in embeddings.values()] == ([3] if shared else [2, 3])
    for weight in model.parameters():
        if weight.requires_grad:
            torch.nn.init.normal_(weight, std=0.3)
    plain.load_state_dict(merged_state(model))
    batch = collate([[4, 5, 10], [7]], [[8, 9], [10, 4]])
    for each in (model, plain):
        each.logits(each(batch)).square().sum().backward()
    torch.testing.assert_close(model.logits(model(batch)), plain.logits(plain(batch)))
    for name, part in embeddings.items():
        merged = plain.get_submodule(name).weight.grad
        assert isinstance(merged, torch.Tensor)
        assert part.weight.grad is None
        torch.testing.assert_close(part.lora_rows.grad, merged[-len(part.lora_rows) :])
