"""The plain Transformer, an oracle for the fast one, is itself compared with PyTorch's and MarianMT."""

import math
import random
from dataclasses import replace
from typing import Any

import pytest
import torch
from oracle import VOCABULARY, assert_equal_training, perturb, random_batch
from rows import each_row
from torch import Tensor, nn

from tolka.data.batch import BOS, EOS, PAD, Batch
from tolka.kernels import packing
from tolka.models.transformer.config import TransformerConfig
from tolka.models.transformer.model import Transformer
from tolka.models.transformer.options import TransformerOptions
from tolka.models.transformer.plain import PlainTransformer, sinusoids
from tolka.search.greedy import GreedyConfig


def sinusoids_in_halves(length: int, width: int) -> Tensor:
    """Marian's table: all sines before all cosines, with angles in float64: (L, D)."""
    angles = torch.arange(length)[:, None].double() / 10000.0 ** (torch.arange(0, width, 2).double() / width)
    return torch.cat([angles.sin(), angles.cos()[:, : width // 2]], dim=1).float()


class PlainMarian(PlainTransformer):
    """The plain Transformer with Marian's positions."""

    def embed(self, ids: Tensor, embedding: nn.Embedding) -> Tensor:
        x: Tensor = embedding(ids) * self.scale
        return x + sinusoids_in_halves(*x.shape[1:]).to(x)


def make_plain(config: TransformerOptions, source_vocabulary: int = VOCABULARY) -> PlainTransformer:
    """Return the plain model of a fast one's config, in float64, with the positions that it has."""
    kind = PlainMarian if config.positions == "sinusoidal_halves" else PlainTransformer
    return kind(replace(config, positions="sinusoidal"), source_vocabulary, VOCABULARY).double()


def random_config(draw: random.Random) -> TransformerConfig:
    """Draw any sizes and options that the plain model has, without dropout."""
    heads = draw.randint(1, 4)
    return TransformerConfig(
        d_model=heads * draw.randint(1, 6),
        heads=heads,
        d_v=draw.randint(0, 5),
        d_ff=draw.randint(0, 20),
        layers=draw.randint(1, 3),
        decoder_layers=draw.randint(0, 3),
        norm=draw.choice(["pre", "post"]),
        normalization=draw.choice(["layernorm", "rmsnorm"]),
        activation=draw.choice(["relu", "gelu", "swish"]),
        positions=draw.choice(["sinusoidal", "sinusoidal_halves"]),
        scale_embeddings=draw.choice([True, False]),
        output_bias=draw.choice([True, False]),
        share_embeddings=draw.choice(["all", "source_target", "target_output", "source_output", "none"]),
        dropout=0.0,
    )


def both(config: TransformerConfig, seed: int) -> tuple[Transformer, PlainTransformer]:
    """The fast and the plain model in float64, with the same perturbed weights."""
    torch.manual_seed(seed)
    fast = config.build(VOCABULARY, VOCABULARY, shared=True).double()
    perturb(fast, seed)
    plain = make_plain(fast.config)
    plain.load_state_dict(fast.state_dict())
    return fast, plain


def logits_of(plain: PlainTransformer, batch: Batch) -> Tensor:
    """Return the logits (N, V) of the valid target tokens."""
    return batch.valid(plain(batch.source, batch.source_lengths, batch.target_in))


@pytest.mark.parametrize("packs_from", [0.0, 2.0], ids=["packed", "padded"])
@pytest.mark.parametrize("seed", range(25))
def test_the_fast_model_s_logits_loss_and_gradients(
    seed: int, packs_from: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "_WORTH_PACKING", packs_from)  # the share of padding
    draw = random.Random(seed)
    fast, plain = both(random_config(draw), seed)
    batch = random_batch(draw)
    logits = logits_of(plain, batch)
    assert_equal_training(fast, batch, logits, dict(plain.named_parameters()))
    torch.testing.assert_close(fast.logits(fast.inspect(batch).features), logits, rtol=0, atol=1e-9)


def translate_greedily(plain: PlainTransformer, source: Tensor, limit: int) -> list[int]:
    """Decode one sentence (S,) greedily without a cache; never <pad> or <s>."""
    tokens = [BOS]
    while len(tokens) <= limit and tokens[-1] != EOS:
        logits = plain(source[None], torch.tensor([len(source)]), torch.tensor([tokens]))[0, -1]
        tokens.append(max((i for i in range(VOCABULARY) if i not in (PAD, BOS)), key=lambda i: logits[i].item()))
    return tokens[1:]


@pytest.mark.slow
def test_the_fast_model_s_greedy_translation() -> None:
    """Equal token by token, though the fast model has caches and translates several sentences at once."""
    ended = []
    for seed in range(12):
        draw = random.Random(seed)
        fast, plain = both(random_config(draw), seed)
        batch = random_batch(draw)
        search = GreedyConfig(max_length_factor=1.0, max_length_extra=6)
        with torch.no_grad():
            found = search.build().search(fast.eval(), batch.source, batch.source_lengths)
            for (hypothesis,), source, length in zip(found, batch.source, batch.source_lengths.tolist(), strict=True):
                expected = translate_greedily(plain, source[:length], limit=length + 6)
                assert hypothesis.tokens + [EOS] * hypothesis.finished == expected
                ended.append(hypothesis.finished)
    assert {True, False} == set(ended)


def test_two_vocabularies() -> None:
    config = TransformerConfig(d_model=8, heads=2, layers=1, dropout=0.0)
    fast = config.build(VOCABULARY + 5, VOCABULARY, shared=False).double()
    plain = make_plain(fast.config, VOCABULARY + 5)
    plain.load_state_dict(fast.state_dict())
    batch = random_batch(random.Random(0))
    assert_equal_training(fast, batch, logits_of(plain, batch), dict(plain.named_parameters()))


def test_sinusoids_by_hand() -> None:
    table = sinusoids(40, 5)
    for pos in (0, 1, 39):
        slow, slower = pos / 10000 ** (2 / 5), pos / 10000 ** (4 / 5)
        expected = [math.sin(pos), math.cos(pos), math.sin(slow), math.cos(slow), math.sin(slower)]
        assert table[pos].tolist() == pytest.approx(expected, abs=1e-5)


def _copy(target: Any, *sources: Any) -> None:
    """Copy stacked weights and biases of modules into a module, under these names or in_proj_*."""
    prefix = "in_proj_" if isinstance(target, nn.MultiheadAttention) else ""
    for kind in ("weight", "bias"):
        getattr(target, prefix + kind).copy_(torch.cat([getattr(source, kind) for source in sources]))


@torch.no_grad()
def torch_transformer(plain: PlainTransformer, config: TransformerConfig) -> nn.Transformer:
    """PyTorch's own, float64, with the plain model's weights."""
    theirs = nn.Transformer(
        config.d_model,
        config.heads,
        config.layers,
        config.decoder_layers,
        config.d_ff,
        dropout=0.0,
        activation=config.activation,
        batch_first=True,
        norm_first=config.norm == "pre",
        dtype=torch.float64,
    )
    mine: Any
    for mine, layer in zip(plain.encoder, theirs.encoder.layers, strict=True):
        _copy(layer.norm2, mine.around_feedforward.norm)
    for mine, layer in zip(plain.decoder, theirs.decoder.layers, strict=True):
        _copy(layer.multihead_attn, mine.cross.query, mine.cross.key_value)
        _copy(layer.multihead_attn.out_proj, mine.cross.output)
        _copy(layer.norm2, mine.around_cross.norm)
        _copy(layer.norm3, mine.around_feedforward.norm)
    for mine, layer in zip(
        [*plain.encoder, *plain.decoder], [*theirs.encoder.layers, *theirs.decoder.layers], strict=True
    ):
        _copy(layer.self_attn, mine.attention.query_key_value)
        _copy(layer.self_attn.out_proj, mine.attention.output)
        _copy(layer.norm1, mine.around_attention.norm)
        _copy(layer.linear1, mine.feedforward.inner)
        _copy(layer.linear2, mine.feedforward.outer)
    if config.norm == "pre":
        _copy(theirs.encoder.norm, plain.encoder_norm)
        _copy(theirs.decoder.norm, plain.decoder_norm)
    else:  # PyTorch's has a second norm at the end there, which the paper's does not have
        theirs.encoder.norm = theirs.decoder.norm = None
    return theirs


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_equals_torch_s_transformer(norm: str, activation: str) -> None:
    config = TransformerConfig(
        d_model=12, heads=3, layers=2, decoder_layers=3, d_ff=20, norm=norm, activation=activation, dropout=0.0
    )
    _, plain = both(config, 0)
    batch = random_batch(random.Random(1))
    padding = batch.source == PAD
    assert padding.any()
    features = torch_transformer(plain, config)(
        plain.embed(batch.source, plain.source_embedding),
        plain.embed(batch.target_in, plain.target_embedding),
        tgt_mask=torch.ones(batch.target_in.size(1), batch.target_in.size(1), dtype=torch.bool).triu(1),
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
    )
    expected = batch.valid(features @ plain.output_embedding.weight.T)
    torch.testing.assert_close(logits_of(plain, batch), expected, rtol=0, atol=1e-9)


def test_sinusoids_in_halves_by_hand() -> None:
    table = sinusoids_in_halves(40, 5)
    for pos in (0, 1, 39):
        slow, slower = pos / 10000 ** (2 / 5), pos / 10000 ** (4 / 5)
        expected = [math.sin(pos), math.sin(slow), math.sin(slower), math.cos(pos), math.cos(slow)]
        assert table[pos].tolist() == pytest.approx(expected, abs=1e-7)


@torch.no_grad()
def marian(plain: PlainTransformer, config: TransformerConfig) -> Any:
    """transformers' MarianMT, float64, with the plain model's weights; its positions are its own."""
    transformers = pytest.importorskip("transformers")
    options = {
        "d_model": config.d_model,
        "scale_embedding": config.scale_embeddings,
        "activation_function": config.activation,
    }
    options |= {f"{side}_attention_heads": config.heads for side in ("encoder", "decoder")}
    options |= {f"{side}_ffn_dim": config.d_ff for side in ("encoder", "decoder")}
    options |= {"encoder_layers": config.layers, "decoder_layers": config.decoder_layers}
    options |= {"dropout": 0.0, "vocab_size": VOCABULARY, "max_position_embeddings": 32}
    options |= {"pad_token_id": PAD, "eos_token_id": EOS, "decoder_start_token_id": BOS, "forced_eos_token_id": EOS}
    theirs = transformers.MarianMTModel(transformers.MarianConfig(**options)).double().eval()
    theirs.model.shared.weight.copy_(plain.target_embedding.weight)
    assert plain.output_bias is not None
    theirs.final_logits_bias.copy_(plain.output_bias[None])
    mine: Any
    for stack, layers in ((theirs.model.encoder, plain.encoder), (theirs.model.decoder, plain.decoder)):
        for mine, layer in zip(layers, stack.layers, strict=True):
            _split_into(layer.self_attn, mine.attention.query_key_value)
            _copy(layer.self_attn.out_proj, mine.attention.output)
            _copy(layer.self_attn_layer_norm, mine.around_attention.norm)
            _copy(layer.fc1, mine.feedforward.inner)
            _copy(layer.fc2, mine.feedforward.outer)
            _copy(layer.final_layer_norm, mine.around_feedforward.norm)
            if hasattr(mine, "cross"):
                _copy(layer.encoder_attn.q_proj, mine.cross.query)
                _split_into(layer.encoder_attn, mine.cross.key_value)
                _copy(layer.encoder_attn.out_proj, mine.cross.output)
                _copy(layer.encoder_attn_layer_norm, mine.around_cross.norm)
    return theirs


def _split_into(attention: Any, fused: nn.Linear) -> None:
    """A fused projection of (queries,) keys and values into separate ones."""
    names = ("q_proj", "k_proj", "v_proj")[-(fused.out_features // fused.in_features) :]
    for kind in ("weight", "bias"):
        for name, part in zip(names, getattr(fused, kind).chunk(len(names)), strict=True):
            getattr(getattr(attention, name), kind).copy_(part)


@pytest.mark.slow
@each_row("scaled", [True, False])
@each_row("activation", ["swish", "relu", "gelu"])
def test_equals_marian(activation: str, scaled: bool) -> None:
    config = TransformerConfig(
        d_model=12,
        heads=3,
        layers=2,
        decoder_layers=3,
        d_ff=20,
        norm="post",
        activation=activation,
        positions="sinusoidal_halves",
        scale_embeddings=scaled,
        output_bias=True,
        share_embeddings="all",
        dropout=0.0,
    )
    _, plain = both(config, 0)
    batch = random_batch(random.Random(1))
    found = marian(plain, config)(
        input_ids=batch.source, attention_mask=(batch.source != PAD).long(), decoder_input_ids=batch.target_in
    )
    torch.testing.assert_close(logits_of(plain, batch), batch.valid(found.logits), rtol=0, atol=1e-9)


def test_a_start_from_zeros_is_a_row_of_zeros() -> None:
    config = TransformerConfig(d_model=12, heads=3, layers=1, share_embeddings="none", dropout=0.0)
    fast, plain = both(config, 0)
    fast.config = replace(fast.config, decoder_start="zero")
    with torch.no_grad():
        plain.target_embedding.weight[BOS] = 0.0
    batch = random_batch(random.Random(1))
    torch.testing.assert_close(fast.logits(fast(batch)), logits_of(plain, batch), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "option", [{"positions": "rotary"}, {"positions": "learned"}, {"decoder": "ssru"}, {"decoder_start": "eos"}]
)
def test_refuses_what_it_does_not_show(option: dict[str, Any]) -> None:
    config = replace(TransformerConfig().resolved(shared=True), **option)
    with pytest.raises(AssertionError, match="not the paper's"):
        PlainTransformer(config, VOCABULARY, VOCABULARY)
