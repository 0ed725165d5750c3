"""Rows for new subwords."""

import torch

from tolka.models.embeddings import with_new_rows


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
