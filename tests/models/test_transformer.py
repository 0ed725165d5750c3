"""What is the Transformer's own: sizes, sharing, initialisation, complaints."""

import math

import pytest
import torch

from tolka.batch import collate
from tolka.errors import ConfigError
from tolka.models.transformer import TransformerConfig


def test_the_paper_s_base_model_has_its_parameters() -> None:
    """Counted by hand: per layer 4 (D^2 + D) attention, 2 D F + F + D feed-forward, 2 D per norm; no final norms."""
    d, f, v, n = 512, 2048, 37000, 6
    attention, feedforward, norm = 4 * (d * d + d), 2 * d * f + f + d, 2 * d
    expected = n * (attention + feedforward + 2 * norm) + n * (2 * attention + feedforward + 3 * norm) + v * d
    model = TransformerConfig(d_model=d, heads=8, layers=n, norm="post").build(v, v, shared=True)
    assert model.parameter_count() == expected  # 63 million, the paper's 65 with its vocabulary


@pytest.mark.parametrize(
    ("sharing", "shared", "matrices"),
    [
        ("auto", True, 1),
        ("auto", False, 2),
        ("all", True, 1),
        ("decoder", True, 2),
        ("none", True, 3),
        ("none", False, 3),
    ],
)
def test_embeddings_are_shared_as_asked(sharing: str, shared: bool, matrices: int) -> None:
    model = TransformerConfig(d_model=8, heads=2, layers=1, share_embeddings=sharing).build(11, 11, shared)
    unique = {id(m.weight) for m in (model.source_embedding, model.target_embedding, model.output_embedding)}
    assert len(unique) == matrices


def test_xavier_as_if_the_fused_matrices_were_separate() -> None:
    torch.manual_seed(0)
    model = TransformerConfig(d_model=64, heads=4, layers=1, d_v=8).build(11, 11, True)
    weight = model.encoder[0].attention.query_key_value.weight  # 64 + 64 rows of keys, 32 of values
    for part, rows in ((weight[:64], 64), (weight[64:128], 64), (weight[128:], 32)):
        bound = math.sqrt(6 / (64 + rows))
        assert bound * 0.98 < part.abs().max().item() <= bound
    assert model.encoder[0].attention.query_key_value.bias.abs().max() == 0
    norm = model.encoder[0].around_attention.norm
    assert (norm.weight.min(), norm.weight.max(), norm.bias.abs().max()) == (1, 1, 0)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_norm_stands_where_it_should(norm: str) -> None:
    """A sub-layer that gives zeros: pre-norm leaves x as it is, post-norm normalises it."""
    torch.manual_seed(0)
    layer = TransformerConfig(d_model=16, heads=2, layers=1, norm=norm, dropout=0.0).build(9, 9, True).encoder[0]
    for module in (layer.attention.output, layer.feedforward.outer):
        torch.nn.init.zeros_(module.weight)
    x = torch.randn(1, 3, 16) * 5 + 2
    expected = x if norm == "pre" else torch.nn.functional.layer_norm(x, (16,))
    torch.testing.assert_close(layer(x, None), expected, rtol=1e-4, atol=1e-4)


def test_the_look_ahead_mask_hides_the_future() -> None:
    torch.manual_seed(0)
    model = TransformerConfig(d_model=16, heads=2, layers=2).build(9, 9, True).eval()
    one, other = (model(collate([[4, 5]], [[4, 5, last]])) for last in (6, 8))
    torch.testing.assert_close(one[:3], other[:3])
    assert not torch.allclose(one[3], other[3])


def test_word_order_matters_by_positions_alone() -> None:
    torch.manual_seed(0)
    model = TransformerConfig(d_model=16, heads=2, layers=1).build(9, 9, True).eval()
    assert not torch.allclose(model(collate([[4, 5]], [[6]])), model(collate([[5, 4]], [[6]])))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"d_model": 10, "heads": 4}, r"model.d_model \(10\) must be a multiple of model.heads \(4\)"),
        ({"layers": 0}, r"model.layers \(0\) must be at least 1"),
        ({"dropout": 1.0}, r"model.dropout \(1.0\) must be at least 0 and below 1"),
        ({"norm": "prae"}, r"model.norm \('prae'\) is unknown. Did you mean 'pre'\?"),
        ({"activation": "rellu"}, "Did you mean 'relu'"),
        ({"d_ff": -1}, r"model.d_ff \(-1\) must be 0"),
    ],
)
def test_complaints_name_the_key(options: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        TransformerConfig(**options)  # type: ignore[arg-type]


def test_sharing_all_needs_one_vocabulary() -> None:
    with pytest.raises(ConfigError, match="share_embeddings=all needs one vocabulary"):
        TransformerConfig(share_embeddings="all").build(9, 9, shared=False)
