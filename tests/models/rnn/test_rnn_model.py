"""Tests specific to the recurrent models: context, terms of the output, input feeding, errors."""

import random
from typing import Any, cast

import pytest
import rnn_oracle
import torch
from oracle import VOCABULARY, assert_equal_training, perturb, random_batch
from rows import each_row

from tolka.data.batch import collate
from tolka.errors import ConfigError
from tolka.models.rnn.config import RnnConfig
from tolka.models.rnn.model import RecurrentSeq2Seq

BATCH = collate([[4, 5, 6, 7], [8, 9]], [[5, 6, 7], [8]])


def make(**options: Any) -> RecurrentSeq2Seq:
    torch.manual_seed(0)
    return RnnConfig(**{"d_model": 8, **options}).build(11, 11, True).double().eval()


@pytest.mark.slow
@each_row("seed", range(3))
@each_row("attention", ["none", "dot", "general", "additive"])
@each_row("cell", ["rnn", "lstm", "gru"])
def test_logits_loss_and_gradients_of_a_loop_over_cells(cell: str, attention: str, seed: int) -> None:
    """The equations, one cell at a time, with any sizes, lengths and options."""
    draw = random.Random(f"{cell} {attention} {seed}")
    config = RnnConfig(
        cell=cell,
        attention=attention,
        d_model=2 * draw.randint(1, 5),
        hidden=2 * draw.randint(0, 5),
        layers=draw.randint(1, 3),
        bidirectional=draw.random() < 0.5,
        input_feeding=attention != "none" and draw.random() < 0.5,
        token_term=draw.random() < 0.5,
        share_embeddings=draw.choice(["all", "source_target", "target_output", "source_output", "none"]),
        dropout=0.0,
    )
    model, batch = config.build(VOCABULARY, VOCABULARY, shared=True).double(), random_batch(draw)
    perturb(model, seed)
    logits = rnn_oracle.logits(model, batch)
    assert_equal_training(model, batch, logits, dict(model.named_parameters()))
    torch.testing.assert_close(model.logits(model.inspect(batch).features), logits, rtol=0, atol=1e-9)


def test_parameters_counted_by_hand() -> None:
    """An LSTM: 4 gates of input, state and two biases; embeddings shared; a bias for every subword."""
    e, d, v = 8, 12, 11

    def lstm(x: int, h: int) -> int:
        return 4 * (x * h + h * h + 2 * h)

    embeddings = v * e + v
    assert make(d_model=e).parameter_count() == 2 * lstm(e, e) + embeddings
    deep = make(hidden=d, layers=2, bidirectional=True, attention="general", token_term=True)
    encoder, decoder = 2 * (lstm(e, d // 2) + lstm(d, d // 2)), lstm(e, d) + lstm(d, d)
    assert deep.parameter_count() == encoder + decoder + d * d + (2 * d + e) * e + embeddings


def test_without_attention_the_last_state_is_the_only_context() -> None:
    """Without attention only the encoder's last states matter, not its outputs."""
    for attention, same in (("none", True), ("dot", False)):
        model = make(attention=attention)
        memory, layers = model._encode(BATCH.source, BATCH.source_lengths)
        if memory is not None:
            memory = type(memory)(memory.encoded + 1.0, memory.keys + torch.randn_like(memory.keys), memory.mask)
        assert torch.allclose(model._decode(BATCH, memory, layers), model(BATCH)) is same
        ahead = [tuple(tensor + 1.0 for tensor in state) for state in layers]
        assert not torch.allclose(model._decode(BATCH, memory, ahead), model(BATCH))


def test_the_output_is_the_sum_of_its_terms() -> None:
    """y_t = s_t W + c_t W' + x_t W'' + b, from the map that inspect shows."""
    model = make(attention="additive", token_term=True, bidirectional=True)
    memory, layers = model._encode(BATCH.source, BATCH.source_lengths)
    assert memory is not None
    weights = model.inspect(BATCH).attention["decoder.0.cross"][:, 0]
    c = weights @ memory.encoded
    x = model.target_embedding(BATCH.target_in)
    s = model.decoder[0].decode(x, layers[0])
    readout: Any = model.readout
    output: Any = model.output_embedding
    w, w_context, w_token = readout.weight.split([8, 8, 8], dim=1)
    expected = BATCH.valid(s @ w.T + c @ w_context.T + x @ w_token.T)
    torch.testing.assert_close(model(BATCH), expected)
    torch.testing.assert_close(model.logits(expected), expected @ output.weight.T + model.output_bias)


def test_input_feeding_hands_on_what_was_found() -> None:
    """A step's features depend on the previous step's context, also if the token is the same."""
    model = make(attention="dot", input_feeding=True)
    with torch.no_grad():
        state: Any = model.start(BATCH.source, BATCH.source_lengths)
        _, state = model.step(torch.tensor([[1], [1]]), state)
        assert state.fed.shape == (2, 8)
        assert state.fed.abs().max() < 1.0
        found, _ = model.step(torch.tensor([[4], [4]]), state)
        other, _ = model.step(torch.tensor([[4], [4]]), type(state)(state.layers, -state.fed, state.memory, 1))
    assert not torch.allclose(found, other)
    plain = make(attention="dot")
    assert plain.start(BATCH.source, BATCH.source_lengths).fed is None
    first, plain_first = cast(Any, model.decoder[0]), cast(Any, plain.decoder[0])
    assert first.input_size == 2 * plain_first.input_size


def test_every_option_changes_the_model() -> None:
    """Each option changes the function or the shapes, compared with the default of the same seed."""
    plain = make(layers=2)
    options: list[dict[str, Any]] = [
        {"cell": "gru"},
        {"cell": "rnn"},
        {"hidden": 10},
        {"layers": 1},
        {"bidirectional": True},
        {"attention": "dot"},
        {"attention": "general"},
        {"attention": "additive"},
        {"token_term": True},
        {"share_embeddings": "none"},
        {"initialization": "kaiming"},
    ]
    found = [plain(BATCH), *(make(**{"layers": 2, **option})(BATCH) for option in options)]
    for number, one in enumerate(found):
        assert not any(torch.allclose(one, other) for other in found[:number]), options[number - 1]


def test_dropout_acts_in_three_places() -> None:
    """On embeddings, between layers, before the output layer; nowhere inside a recurrence, and never in eval mode."""
    model = make(layers=2, dropout=0.5, attention="dot").train()
    shapes: list[tuple[int, ...]] = []
    model.dropout.register_forward_hook(lambda module, inputs, output: shapes.append(tuple(output.shape)))
    assert not torch.allclose(model(BATCH), model(BATCH))
    half = shapes[: len(shapes) // 2]
    assert half == [(2, 5, 8), (2, 5, 8), (2, 4, 8), (2, 4, 8), (6, 16)]
    model.eval()
    torch.testing.assert_close(model(BATCH), model(BATCH))


def test_inspect_shows_the_attention_of_each_position() -> None:
    seen = make(layers=2, bidirectional=True, attention="general").inspect(BATCH)
    assert list(seen.attention) == ["decoder.1.cross"]
    assert seen.attention["decoder.1.cross"].shape == (2, 1, 4, 5)
    assert make().inspect(BATCH).attention == {}


@each_row(
    ("options", "complaint"),
    [
        ({"cell": "ltsm"}, r"model.cell \('ltsm'\) is unknown. Did you mean 'lstm'\?"),
        ({"attention": "doot"}, r"model.attention \('doot'\) is unknown. Did you mean 'dot'\?"),
        ({"d_model": 9, "bidirectional": True}, r"half of the states' width \(9\), which must be even"),
        ({"hidden": 7, "bidirectional": True}, r"half of the states' width \(7\), which must be even"),
        ({"input_feeding": True}, "hands on what attention found, and there is none: set model.attention to dot, gen"),
        ({"layers": 0}, r"model.layers \(0\) must be at least 1"),
        ({"hidden": -1}, r"model.hidden \(-1\) must be 0 \(as d_model\) or more"),
        ({"dropout": 1.0}, r"model.dropout \(1.0\) must be at least 0 and below 1"),
    ],
)
def test_complaints(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        RnnConfig(**options)
