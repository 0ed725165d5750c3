"""Steps that are captured: what is made and kept of them. That they are right is in the contract's tests, and what is
CUDA's own in test_gpu.py."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tape import Recorder

from tolka.batch import collate
from tolka.decoding import DecodingConfig
from tolka.errors import ConfigError, TolkaError
from tolka.models import captured
from tolka.models.arena import changed, tensors
from tolka.models.base import DecoderState, ModelConfig, Seq2Seq
from tolka.models.captured import CapturedModel
from tolka.models.ensemble import Ensemble, EnsembleState
from tolka.models.rnn import RnnConfig
from tolka.models.transformer import TransformerConfig
from tolka.search.greedy import GreedyConfig
from tolka.translator import Translator

CPU = torch.device("cpu")


def made(**options: object) -> CapturedModel:
    torch.manual_seed(0)
    model = TransformerConfig(d_model=16, heads=2, layers=1, **options).build(12, 12, True)  # type: ignore[arg-type]
    return CapturedModel(model.eval(), CPU)


def translated(model: CapturedModel, lengths: list[int], steps: int = 6, plainly: bool = False) -> list[list[int]]:
    """Greedy translations of so many steps."""
    sources = [[4 + (place + length) % 8 for place in range(length)] for length in lengths]
    batch = collate(sources, sources)
    search = GreedyConfig(max_length_factor=0.0, max_length_extra=steps - 1)
    with torch.inference_mode():
        found = search.search(model.model if plainly else model, batch.source, batch.source_lengths)
    return [hypotheses[0].tokens for hypotheses in found]


def test_few_shapes_serve_many_batches(recorder: Recorder) -> None:
    model = made()
    for lengths in ([3, 9, 5], [4, 4, 15, 2], [7, 1, 11]):
        assert translated(model, lengths) == translated(model, lengths, plainly=True)
    assert recorder.made == 1  # four slots of up to 16 tokens
    # The first of a search's six steps has no graph; nor have the first two of a shape, which may not come again.
    assert recorder.played == 3 * 5 - 2
    translated(model, [3, 16])
    assert recorder.made == 2


def test_beyond_as_many_as_may_be_steps_are_computed_one_by_one(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(captured, "_MOST", 1)
    model = made()
    for lengths in ([3, 9, 5], [3], [4, 2], [7, 1, 11]):
        assert translated(model, lengths) == translated(model, lengths, plainly=True)
    assert recorder.made == 1


def test_a_larger_state_leaves_the_smaller_ones_graphs_in_order(recorder: Recorder) -> None:
    model = made()
    for lengths in ([3], [30] * 20, [5], [30] * 40, [4]):
        assert translated(model, lengths, steps=40) == translated(model, lengths, steps=40, plainly=True)
    assert recorder.made < recorder.played / 10


def test_a_full_memory_is_left_to_whoever_makes_the_batches(recorder: Recorder) -> None:
    model = made()
    translated(model, [3, 9, 5])
    recorder.errors.append(torch.OutOfMemoryError("CUDA out of memory"))
    with pytest.raises(torch.OutOfMemoryError):
        translated(model, [3] * 5)
    model.forget()
    assert (model._steps, model._states) == ({}, {})
    assert translated(model, [3, 9, 5]) == translated(model, [3, 9, 5], plainly=True)


def test_what_cannot_be_captured_is_said(recorder: Recorder) -> None:
    recorder.errors.append(RuntimeError("operation not permitted when stream is capturing\nsecond line"))
    with pytest.raises(TolkaError) as raised:
        translated(made(), [3, 9, 5])
    assert str(raised.value) == (
        "decoding.cuda_graphs=true: a step of 4 sentences cannot be captured (operation not permitted when stream is "
        "capturing); leave it out"
    )


def test_an_architecture_without_fixed_sizes_says_so(recorder: Recorder) -> None:
    class Endless(DecoderState):
        def select(self, rows: torch.Tensor) -> "Endless":
            return self

    with pytest.raises(ConfigError, match=r"decoding\.cuda_graphs=true: Endless has no tensors of fixed sizes; leave"):
        EnsembleState([Endless()]).fixed(1, 2, 3)


def test_without_a_gpu_there_are_none(trained: object) -> None:
    with pytest.raises(ConfigError, match=r"decoding\.cuda_graphs=true needs a CUDA device, not cpu: leave it out"):
        Translator.load(str(trained), decoding=DecodingConfig(device="cpu", cuda_graphs=True))


def test_what_a_state_is_made_of_is_found_and_changed() -> None:
    one, other = torch.ones(1), torch.zeros(2)
    state = {"kept": 1}, [(one, other), one]
    assert [id(tensor) for tensor in tensors(state)] == [id(one), id(other)]
    kept, [(first, second), again] = changed(state, lambda tensor: tensor + 1)
    assert (kept, first.item(), second.tolist(), again is first) == ({"kept": 1}, 2.0, [1.0, 1.0], True)


def test_all_but_the_steps_is_the_models_own() -> None:
    model = made(dropout=0.0)
    batch = collate([[4, 5], [6]], [[7], [8, 9]])
    torch.testing.assert_close(model(batch), model.model(batch))
    torch.testing.assert_close(model.inspect(batch).features, model.model(batch))
    assert model.logits_parameters() == model.model.logits_parameters()
    assert model.parameter_count() == model.model.parameter_count()


def test_a_state_of_an_earlier_search_is_of_no_use() -> None:
    model, source = made(), torch.tensor([[4, 5, 2]])
    earlier = model.start(source, torch.tensor([3]))
    model.start(source, torch.tensor([3]))
    with pytest.raises(RuntimeError, match="another search has begun"):
        model.step(torch.tensor([[1]]), earlier)


@pytest.fixture(scope="module")
def unlike() -> Seq2Seq:
    """A Transformer, whose caches grow, and what follows it in memory."""
    torch.manual_seed(0)
    models: list[ModelConfig] = [
        TransformerConfig(d_model=16, heads=2, layers=1, positions="rotary"),
        RnnConfig(d_model=8, attention="dot"),
    ]
    return Ensemble([model.build(12, 12, True) for model in models]).double().eval()


@given(st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_search_does_the_model_is_followed(unlike: Seq2Seq, recorder: Recorder, data: st.DataObject) -> None:
    """Sentences and hypotheses are kept, dropped, re-ordered and multiplied, once, twice or not at all in a step."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(captured, "_LEAST_ROOM", 4)
        model = CapturedModel(unlike, CPU)
        sentences, beam = data.draw(st.integers(1, 9), "sentences"), 1
        sources = [[4 + (place + number) % 8 for place in range(1 + number % 4)] for number in range(sentences)]
        batch = collate(sources, sources)
        with torch.inference_mode():
            expected, found = (one.start(batch.source, batch.source_lengths) for one in (unlike, model))
            for number in range(data.draw(st.integers(1, 14), "steps")):
                token = 4 + (torch.arange(sentences * beam).view(sentences, beam) + number) % 8
                one, expected = unlike.step(token, expected)
                other, found = model.step(token, found)
                torch.testing.assert_close(other, one)
                for _ in range(data.draw(st.sampled_from([0, 1, 1, 2]), "selections")):
                    stay = sorted(data.draw(st.sets(st.integers(0, sentences - 1), min_size=1), "stay"))
                    if not data.draw(st.sampled_from([True, False, False]), "some leave"):
                        stay = list(range(sentences))
                    wider = data.draw(st.sampled_from([beam] * 5 + [1, 3]), "hypotheses")
                    kept = [data.draw(st.lists(st.integers(0, beam - 1), min_size=wider, max_size=wider)) for _ in stay]
                    rows = torch.tensor(stay)[:, None] * beam + torch.tensor(kept)
                    expected, found = expected.select(rows), found.select(rows)
                    sentences, beam = len(stay), wider
