"""The total derivative along a recurrence, against finite differences."""

from pathlib import Path
from typing import Any

import pytest
import torch

from conftest import Command
from gradient_flow import gradient_flow, main, unrolled
from tolka.data.batch import Batch, collate
from tolka.models.rnn.config import RnnConfig
from tolka.models.rnn.model import RecurrentSeq2Seq
from tolka.models.transformer import TransformerConfig
from tolka.nn.rnn_cells import RecurrentLayer, State

SOURCES, TARGETS = [[4, 5, 6, 7], [8, 9]], [[5, 6, 7], [8]]


def make(**options: Any) -> RecurrentSeq2Seq:
    torch.manual_seed(0)
    return RnnConfig(d_model=6, layers=2, **options).build(11, 11, True).double().eval()


def loss(model: RecurrentSeq2Seq, batch: Batch) -> float:
    """In float64, unlike training's."""
    with torch.no_grad(), unrolled(model):
        log_p = model.logits(model(batch)).log_softmax(-1)
    return -log_p.gather(1, batch.targets[:, None]).sum().item()


def nudged(layer: RecurrentLayer, direction: int, step: int, part: int, by: torch.Tensor) -> Any:
    """Let the layer's step number `step` (in the order of the recurrence) end in a state with `by` added to a part."""
    real, taken = type(layer).cell, iter(range(1000))

    def cell(inputs: torch.Tensor, state: State, which: int = 0) -> State:
        after = real(layer, inputs, state, which)
        if which == direction and next(taken) == step:
            after = tuple(tensor + by if number == part else tensor for number, tensor in enumerate(after))
        return after

    return cell


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"cell": "rnn"},
        {"cell": "lstm"},
        {"cell": "gru", "attention": "dot"},
        {"cell": "lstm", "bidirectional": True, "attention": "additive"},
    ],
    ids=str,
)
def test_norms_by_finite_differences(options: dict[str, Any]) -> None:
    """Finite differences in each entry of each state, one sentence at a time."""
    model = make(**options)
    for source, target in zip(SOURCES, TARGETS, strict=True):
        batch = collate([source], [target])
        length, small = len(source) + 1, 1e-5
        flows = gradient_flow(model, batch)
        expected_parts = ["h", "C"] if options["cell"] == "lstm" else ["h"]
        assert [flow.state for flow in flows[: len(expected_parts)]] == expected_parts
        for flow in flows:
            _, number, way = flow.layer.split(".")
            layers: Any = model.encoder
            layer = layers[int(number)]
            direction, part = int(way == "backward"), int(flow.state == "C")
            assert len(flow.norms) == length
            for distance in (0, 1, length - 1):
                slopes = []
                for entry in range(layer.hidden_size):
                    by = torch.zeros(1, layer.hidden_size, dtype=torch.float64)
                    values = []
                    for sign in (1, -1):
                        by[0, entry] = sign * small
                        layer.cell = nudged(layer, direction, length - 1 - distance, part, by)
                        values.append(loss(model, batch))
                        del layer.cell
                    slopes.append((values[0] - values[1]) / (2 * small))
                assert flow.norms[distance] == pytest.approx(torch.tensor(slopes).norm().item(), rel=1e-4, abs=1e-8)


def test_a_batch_is_the_mean_of_its_sentences() -> None:
    """Norms are by distance from the end, over sentences that are long enough; padding is no step."""
    model = make(cell="gru", bidirectional=True)
    together = gradient_flow(model, collate(SOURCES, TARGETS))
    alone = [gradient_flow(model, collate([s], [t])) for s, t in zip(SOURCES, TARGETS, strict=True)]
    for flow, one, other in zip(together, *alone, strict=True):
        assert flow.sentences == [2, 2, 2, 1, 1]
        for distance, norm in enumerate(flow.norms):
            parts = [each.norms[distance] for each in (one, other) if distance < len(each.norms)]
            assert norm == pytest.approx(sum(parts) / len(parts))


def test_a_tanh_forgets_sooner_than_an_lstm() -> None:
    """With fresh weights and no attention, as in row 1 of the ladder."""
    batch = collate([[4 + n % 7 for n in range(24)]], [[5, 6]])
    kept = {}
    for cell in ("rnn", "lstm"):
        torch.manual_seed(1)
        model = RnnConfig(cell=cell, d_model=32).build(11, 11, True)
        for layer in (*model.encoder, *model.decoder):
            for weight in layer.parameters():
                weight.data.mul_(0.5)
        flows = gradient_flow(model, batch)
        kept[cell] = flows[-1].norms[-1] / flows[-1].norms[0]
    assert kept["rnn"] < 0.1 * kept["lstm"]


def test_it_leaves_no_trace() -> None:
    model = make(cell="lstm").train()
    gradient_flow(model, collate(SOURCES, TARGETS))
    assert model.training
    assert all(weight.grad is None for weight in model.parameters())


def test_without_a_recurrence() -> None:
    model = TransformerConfig(d_model=8, heads=2, layers=1).build(11, 11, True)
    with pytest.raises(ValueError, match="Transformer has no recurrence"):
        gradient_flow(model, collate(SOURCES, TARGETS))


def test_an_unrolled_encoder_computes_the_same() -> None:
    model, batch = make(cell="lstm", bidirectional=True, attention="dot"), collate(SOURCES, TARGETS)
    fused = model(batch)
    with unrolled(model):
        assert torch.allclose(model(batch), fused, atol=1e-12)


def test_a_trained_model_has_a_table_and_a_picture(
    command: Command, tiny: list[str], corpus: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    kept = [setting for setting in tiny if not setting.startswith("model")]
    assert command("mt-train", *kept, "model=lstm", "model.d_model=16", "trainer.updates=2").code == 0
    capsysbinary.readouterr()
    texts = ["--source", str(corpus / "valid.xa"), "--target", str(corpus / "valid.xb")]
    main([str(tmp_path / "run"), *texts, "-o", str(tmp_path / "flow.svg")])
    table = capsysbinary.readouterr().out.decode()
    assert ["encoder.0.forward C" in " ".join(line.split()) for line in table.splitlines()].count(True) == 1
    assert "<svg" in (tmp_path / "flow.svg").read_text()
