"""Tests specific to the Transformer: sizes, sharing, initialisation, errors."""

import dataclasses
import math
from typing import Any

import pytest
import torch
from rows import each_row

from tolka.data.batch import collate
from tolka.errors import ConfigError
from tolka.kernels import packing
from tolka.kernels.packing import Packing
from tolka.losses.cross_entropy import Objective
from tolka.models.transformer.config import TransformerConfig
from tolka.nn.positions import LearnedPositions
from tolka.options.parsing import build


def first(layers: Any) -> Any:
    """Return the first layer of a stack, whose parts a ModuleList does not know."""
    return layers[0]


def test_the_paper_s_base_model_has_its_parameters() -> None:
    """Counted by hand: per layer 4 (D^2 + D) attention, 2 D F + F + D feed-forward, 2 D per norm; no final norms."""
    d, f, v, n = 512, 2048, 37000, 6
    attention, feedforward, norm = 4 * (d * d + d), 2 * d * f + f + d, 2 * d
    expected = n * (attention + feedforward + 2 * norm) + n * (2 * attention + feedforward + 3 * norm) + v * d
    model = TransformerConfig(d_model=d, heads=8, layers=n, norm="post").build(v, v, shared=True)
    assert model.parameter_count() == expected  # 63 million, the paper's 65 with its vocabulary


@each_row(
    ("sharing", "shared", "one"),
    [
        ("auto", True, ["source", "target", "output"]),
        ("auto", False, ["target", "output"]),
        ("all", True, ["source", "target", "output"]),
        ("source_target", True, ["source", "target"]),
        ("target_output", True, ["target", "output"]),
        ("target_output", False, ["target", "output"]),
        ("source_output", True, ["source", "output"]),
        ("none", True, []),
        ("none", False, []),
    ],
)
def test_embeddings_are_shared_as_asked(sharing: str, shared: bool, one: list[str]) -> None:
    """one: those that have one matrix."""
    model = TransformerConfig(d_model=8, heads=2, layers=1, share_embeddings=sharing).build(11, 11, shared)
    weights = {name: getattr(model, f"{name}_embedding").weight for name in ("source", "target", "output")}
    for name, weight in weights.items():
        alike = [other for other, candidate in weights.items() if candidate is weight]
        assert alike == (one if name in one else [name])


@pytest.mark.parametrize("sharing", ["all", "source_target", "source_output"])
def test_two_vocabularies_share_no_matrix(sharing: str) -> None:
    with pytest.raises(ConfigError, match=f"share_embeddings={sharing} needs one vocabulary: set tokenizer.shared=t"):
        TransformerConfig(share_embeddings=sharing).build(11, 11, shared=False)


@each_row(
    ("sharing", "source_size"),
    [
        *((sharing, 11) for sharing in ("auto", "all", "source_target", "target_output", "source_output", "none")),
        *((sharing, 13) for sharing in ("auto", "target_output", "none")),
    ],
)
def test_every_sharing_trains_and_decodes(sharing: str, source_size: int) -> None:
    """Parameter counts with one vocabulary of 11, and with two of 13 and 11."""
    torch.manual_seed(0)
    config = TransformerConfig(d_model=8, heads=2, layers=1, share_embeddings=sharing)
    model = config.build(source_size, 11, shared=source_size == 11)
    batch = collate([[4, source_size - 1]], [[10, 5]])
    Objective(model.train(), 0.1)(batch).loss.backward()
    assert [name for name, parameter in model.named_parameters() if parameter.grad is None] == []
    with torch.no_grad():
        features, _ = model.eval().step(batch.target_in[:, :1], model.start(batch.source, batch.source_lengths))
        torch.testing.assert_close(features[0], model(batch)[:1])
        assert model.logits(features).shape == (1, 1, 11)


def test_xavier_as_if_the_fused_matrices_were_separate() -> None:
    torch.manual_seed(0)
    model = TransformerConfig(d_model=64, heads=4, layers=1, d_v=8).build(11, 11, True)
    weight = first(model.encoder).attention.query_key_value.weight  # 64 + 64 rows of keys, 32 of values
    memory = first(model.decoder).cross.key_value.weight
    parts = ((weight[:64], 64), (weight[64:128], 64), (weight[128:], 32), (memory[:64], 64), (memory[64:], 32))
    for part, rows in parts:
        bound = math.sqrt(6 / (64 + rows))
        assert bound * 0.98 < part.abs().max().item() <= bound
    assert first(model.encoder).attention.query_key_value.bias.abs().max() == 0
    norm = first(model.encoder).around_attention.norm
    assert (norm.weight.min(), norm.weight.max(), norm.bias.abs().max()) == (1, 1, 0)


def test_kaiming_everywhere_but_in_the_embeddings() -> None:
    torch.manual_seed(0)
    model = TransformerConfig(d_model=64, heads=4, layers=1, initialization="kaiming").build(400, 400, True)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2 and "embedding" not in name:
            bound = math.sqrt(6 / parameter.size(1))
            assert bound * 0.98 < parameter.abs().max().item() <= bound, name
    assert model.target_embedding.weight.std().item() == pytest.approx(1 / 8, rel=0.02)


def test_depths_and_widths_are_those_asked_for() -> None:
    model = TransformerConfig(d_model=16, heads=2, layers=3, decoder_layers=1, d_ff=40, d_v=3).build(9, 9, True)
    assert (len(model.encoder), len(model.decoder)) == (3, 1)
    assert first(model.encoder).feedforward.inner.weight.shape == (40, 16)
    assert first(model.decoder).cross.output.weight.shape == (16, 2 * 3)
    follows = TransformerConfig(d_model=16, heads=2, layers=2).build(9, 9, True)
    assert (len(follows.decoder), first(follows.encoder).feedforward.inner.weight.shape) == (2, (64, 16))


def test_learned_positions_reach_as_far_as_asked() -> None:
    config = TransformerConfig(d_model=16, heads=2, layers=1, positions="learned", max_positions=7)
    model = config.build(9, 9, True)
    for positions in (model.source_positions, model.target_positions):
        assert isinstance(positions, LearnedPositions)
        assert positions.embedding.weight.shape == (7, 16)


@pytest.mark.parametrize("kind", ["attention_dropout", "activation_dropout"])
def test_each_kind_of_dropout_acts_alone(kind: str) -> None:
    """With all others off, a training pass differs from one without dropout, and an eval pass does not."""
    torch.manual_seed(0)
    options = {"dropout": 0.0, kind: 0.5}
    model = TransformerConfig(d_model=16, heads=2, layers=4, **options).build(9, 9, True)  # type: ignore[arg-type]
    plain = TransformerConfig(d_model=16, heads=2, layers=4, dropout=0.0).build(9, 9, True)
    plain.load_state_dict(model.state_dict())
    batch = collate([[4, 5, 6]], [[7, 8]])
    assert not torch.allclose(model.train()(batch), plain(batch))
    torch.testing.assert_close(model.eval()(batch), plain(batch))


def test_each_rate_reaches_its_own_place() -> None:
    config = TransformerConfig(
        d_model=16,
        heads=2,
        layers=1,
        dropout=0.1,
        attention_dropout=0.3,
        activation_dropout=0.4,
    )
    model = config.build(9, 9, True)
    layer = first(model.decoder)
    assert model.dropout.p == 0.1
    assert (layer.attention.dropout_rate, layer.cross.dropout_rate, first(model.encoder).attention.dropout_rate) == (
        0.3,
        0.3,
        0.3,
    )
    assert (layer.feedforward.dropout.p, first(model.encoder).feedforward.dropout.p) == (0.4, 0.4)
    assert (layer.around_attention.dropout.p, layer.around_feedforward.dropout.p) == (0.1, 0.1)


def test_spelt_out_says_what_follows_from_what() -> None:
    short = TransformerConfig(d_model=32, heads=4, layers=2, dropout=0.3).resolved(shared=True)
    assert (short.d_v, short.d_ff, short.decoder_layers, short.share_embeddings) == (8, 128, 2, "all")
    assert short == short.resolved(shared=True)
    assert TransformerConfig().resolved(shared=False).share_embeddings == "target_output"


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_norm_stands_where_it_should(norm: str) -> None:
    """Around a sub-layer that returns zeros, pre-norm leaves x unchanged and post-norm normalises it."""
    torch.manual_seed(0)
    layer = first(TransformerConfig(d_model=16, heads=2, layers=1, norm=norm, dropout=0.0).build(9, 9, True).encoder)
    for module in (layer.attention.output, layer.feedforward.outer):
        torch.nn.init.zeros_(module.weight)
    x, rows = torch.randn(3, 16) * 5 + 2, Packing(torch.tensor([3]), 3)
    expected = x if norm == "pre" else torch.nn.functional.layer_norm(x, (16,))
    torch.testing.assert_close(layer(x, rows), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"norm": "pre"},
        {"norm": "post", "positions": "learned", "max_positions": 3},
        {"positions": "rotary", "d_v": 3, "normalization": "rmsnorm", "activation": "swiglu"},
    ],
    ids=str,
)
def test_rows_of_padding_or_idle_ones_change_nothing(monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model = TransformerConfig(d_model=16, heads=2, layers=2, dropout=0.0, **options).build(12, 12, True).double()
    batch = collate([[4, 5, 6, 7, 8], [9], [5, 4]], [[8, 7], [10, 9, 4, 5, 11, 6], [4]])
    found, computed = [], []
    output: Any = model.output_embedding
    first(model.encoder).feedforward.register_forward_hook(lambda _layer, _inputs, result: computed.append(len(result)))
    first(model.decoder).feedforward.register_forward_hook(lambda _layer, _inputs, result: computed.append(len(result)))
    for worth, compiled in ((0.01, False), (1.0, False), (1.0, True)):
        monkeypatch.setattr(packing, "_WORTH_PACKING", worth)
        monkeypatch.setattr(packing, "row_counts_are_compiled", lambda compiled=compiled: compiled)
        features = model(batch)
        weights = [weight for weight in model.parameters() if weight is not output.weight]
        found.append([features, *torch.autograd.grad((features**3).sum(), [*weights, output.weight])])
    assert computed == [11, 12, 18, 21, 16, 16]
    for packed, padded, filled in zip(*found, strict=True):
        torch.testing.assert_close(packed, padded)
        torch.testing.assert_close(packed, filled)


def test_the_look_ahead_mask_hides_the_future() -> None:
    torch.manual_seed(0)
    model = TransformerConfig(d_model=16, heads=2, layers=2).build(9, 9, True).eval()
    one, other = (model(collate([[4, 5]], [[4, 5, last]])) for last in (6, 8))
    torch.testing.assert_close(one[:3], other[:3])
    assert not torch.allclose(one[3], other[3])


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_word_order_matters_by_positions_alone(positions: str) -> None:
    torch.manual_seed(0)
    model = TransformerConfig(d_model=16, heads=2, layers=1, positions=positions).build(9, 9, True).eval()
    assert not torch.allclose(model(collate([[4, 5]], [[6]])), model(collate([[5, 4]], [[6]])))


def test_rotary_positions_act_in_self_attention_only() -> None:
    """Without self-attention the order has no effect: it is neither in the embeddings nor in cross-attention."""
    torch.manual_seed(0)
    model = TransformerConfig(d_model=16, heads=2, layers=2, positions="rotary").build(9, 9, True).eval()
    for layer in (*model.encoder, *model.decoder):
        torch.nn.init.zeros_(layer.attention.output.weight)
    one, other = model(collate([[4, 5, 6]], [[7, 8]])), model(collate([[6, 4, 5]], [[8, 7]]))
    torch.testing.assert_close(one[0], other[0])
    torch.testing.assert_close(one[1:], other[1:].flip(0))


def test_rotary_encoder_sees_distances_only() -> None:
    """The ratio of a word's weights on two words is the same at the start and after others."""
    torch.manual_seed(0)
    config = TransformerConfig(d_model=16, heads=2, layers=1, positions="rotary")
    model = config.build(9, 9, True).double().eval()
    near, far = (
        model.inspect(collate([source], [[4]])).attention["encoder.0.self"] for source in ([4, 5], [8, 8, 4, 5])
    )
    ratio = near[0, :, 0, 0] / near[0, :, 0, 1]  # of the two words' weights; the softmax' denominators differ
    torch.testing.assert_close(far[0, :, 2, 2] / far[0, :, 2, 3], ratio)


@each_row(
    ("options", "complaint"),
    [
        ({"d_model": 10, "heads": 4}, r"model.d_model \(10\) must be a multiple of model.heads \(4\)"),
        ({"layers": 0}, r"model.layers \(0\) must be at least 1"),
        ({"dropout": 1.0}, r"model.dropout \(1.0\) must be at least 0 and below 1"),
        ({"norm": "prae"}, r"model.norm \('prae'\) is unknown. Did you mean 'pre'\?"),
        ({"activation": "rellu"}, "Did you mean 'relu'"),
        ({"d_ff": -1}, r"model.d_ff \(-1\) must be 0"),
        ({"activation": "swiglue"}, "Did you mean 'swiglu'"),
        ({"positions": "rotatory"}, "Did you mean 'rotary'"),
        ({"normalization": "rms"}, r"model.normalization \('rms'\) is unknown. Did you mean 'rmsnorm'"),
        ({"initialization": "kaimming"}, "Did you mean 'kaiming'"),
        (
            {"d_model": 12, "heads": 4, "positions": "rotary"},
            r"model.positions=rotary.*model.d_model / model.heads \(12 / 4 = 3\) must be even",
        ),
    ],
)
def test_complaints_name_the_key(options: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        TransformerConfig(**options)  # type: ignore[arg-type]


def test_rmsnorm_stands_where_layernorm_did() -> None:
    """Per normalisation one bias less: 2 an encoder layer, 3 a decoder layer, and each stack's last."""
    norms = 2 * 2 + 2 * 3 + 2
    counts = {}
    for kind in ("layernorm", "rmsnorm"):
        model = TransformerConfig(d_model=16, heads=2, layers=2, normalization=kind).build(9, 9, True)
        names = [type(m).__name__ for m in model.modules() if type(m).__name__ in ("LayerNorm", "RMSNorm")]
        assert names == [{"layernorm": "LayerNorm", "rmsnorm": "RMSNorm"}[kind]] * norms
        counts[kind] = model.parameter_count()
    assert counts["layernorm"] - counts["rmsnorm"] == norms * 16


def test_swiglu_s_parameters() -> None:
    """At d_model 24 the matrices are as many numbers; the inner biases are 2 * 64 instead of 96."""
    counts = {
        activation: TransformerConfig(d_model=24, heads=2, layers=1, activation=activation)
        .build(9, 9, True)
        .parameter_count()
        for activation in ("relu", "swiglu")
    }
    assert counts["swiglu"] - counts["relu"] == 2 * (2 * 64 - 96)  # two feed-forward sub-layers


def test_an_older_model_still_fits() -> None:
    """An old configuration lacks newer options, whose defaults keep its behaviour; weights have the same names."""
    first = ["d_model", "heads", "d_v", "d_ff", "layers", "decoder_layers", "norm", "activation", "positions"]
    first += ["max_positions", "share_embeddings", "dropout", "attention_dropout", "activation_dropout", "name"]
    config = TransformerConfig(layers=1)
    stored = {key: value for key, value in dataclasses.asdict(config).items() if key in first}
    assert build(TransformerConfig, stored, "model") == config
    encoder = ["attention.query_key_value", "attention.output", "feedforward.inner", "feedforward.outer"]
    encoder += ["around_attention.norm", "around_feedforward.norm"]
    decoder = [*encoder, "cross.query", "cross.key_value", "cross.output", "around_cross.norm"]
    modules = [f"encoder.0.{name}" for name in encoder] + [f"decoder.0.{name}" for name in decoder]
    expected = {f"{name}.{kind}" for name in (*modules, "encoder_norm", "decoder_norm") for kind in ("weight", "bias")}
    expected |= {f"{kind}_embedding.weight" for kind in ("source", "target", "output")}
    assert set(config.build(9, 9, True).state_dict()) == expected
