"""Maps of finished translations: of the right sentence, layer and head, with the right subwords."""

from pathlib import Path

import pytest
import torch

from tolka.data.batch import Batch, collate
from tolka.engines.options import DecodingConfig
from tolka.engines.torch_engine import TorchEngine, source_gradients
from tolka.errors import ConfigError
from tolka.model_directory.read import load_model
from tolka.models.quantization import quantize
from tolka.models.rnn import RnnConfig
from tolka.search.beam import BeamConfig
from tolka.translation.attention_maps import AttentionMap, word_alignment
from tolka.translation.translator import Translator

TEXTS = ["lantern kettle harbour .", "", "ferry .", "walnut velvet copper orchid saddle pebble ."]


@pytest.fixture(scope="module")
def translator(trained: Path) -> Translator[TorchEngine]:
    return Translator.of(load_model(trained), BeamConfig(beam_size=3), DecodingConfig(device="cpu", tokens=30))


def test_maps_are_those_of_forced_decoding(translator: Translator[TorchEngine]) -> None:
    """Maps equal those of each sentence alone, though computed in batches, longest first, of the best hypothesis."""
    translations = translator.translate(TEXTS)
    found = translator.attention(translations)
    assert [len(maps) for maps in found] == [text != "" for text in TEXTS]
    for translation, maps in zip(translations, found, strict=True):
        for each in maps:
            ((source, target),) = translation.segments
            (heads,) = translator.engine.model.inspect(collate([source], [target])).attention["decoder.0.cross"]
            torch.testing.assert_close(torch.tensor(each.weights), heads.mean(0))
            assert each.name == "decoder.0.cross"
            assert each.rows == [*translator.tokenizer.target_pieces(target), "</s>"]
            assert each.columns == [*translator.tokenizer.source_pieces(source), "</s>"]


def test_pieces_spell_the_text(translator: Translator[TorchEngine]) -> None:
    tokenizer = translator.tokenizer
    ((source,), (target,)) = tokenizer.encode_source(["ferry lantern ."]), tokenizer.encode_target(["tolo selk ."])
    assert "".join(tokenizer.source_pieces(source)).replace("▁", " ").strip() == "ferry lantern ."
    assert "".join(tokenizer.target_pieces(target)).replace("▁", " ").strip() == "tolo selk ."


def a_map(rows: list[str], columns: list[str], weights: list[list[float]]) -> AttentionMap:
    return AttentionMap("decoder.0.cross", rows, columns, weights)


def test_word_alignment_by_hand() -> None:
    """Three target words; the second's subwords attend to one source word each, together to the one of two subwords."""
    first = a_map(
        ["▁ich", "▁la", "che", "▁", "!", "</s>"],
        ["▁I", "▁am", "▁laugh", "ing", "</s>"],
        [
            [0.5, 0.4, 0.0, 0.0, 0.1],
            [0.0, 0.6, 0.2, 0.2, 0.0],
            [0.0, 0.2, 0.4, 0.4, 0.0],
            [0.0, 0.5, 0.2, 0.2, 0.1],
            [0.0, 0.4, 0.0, 0.0, 0.6],
            [0.9, 0.0, 0.0, 0.0, 0.1],
        ],
    )
    assert word_alignment([first]) == [(0, 0), (2, 1), (1, 2)]
    second = a_map(["▁ja", "</s>"], ["▁oh", "▁yes", "</s>"], [[0.1, 0.8, 0.1], [1.0, 0.0, 0.0]])
    assert word_alignment([first, second])[3:] == [(3 + 1, 3)]
    assert word_alignment([]) == []


def test_gradients_are_those_of_finite_differences() -> None:
    """Of a model without attention: the change of log p(y_t) when the source's embedding x_j becomes (1 + e) x_j."""
    torch.manual_seed(1)
    model = RnnConfig(8, cell="gru", attention="none").build(12, 12, shared=True).double().eval()
    sources, targets = [[4, 5, 6, 7], [8, 9]], [[10, 11, 10], [4]]
    found = source_gradients(model, collate(sources, targets))
    assert found.shape == (2, 4, 5)
    torch.testing.assert_close(found.sum(dim=-1)[0], torch.ones(4))
    assert found[1, :2, 3:].abs().max() == 0.0  # padding
    for number, (source, target) in enumerate(zip(sources, targets, strict=True)):
        batch = collate([source], [target])

        def scores(position: int, factor: float, batch: Batch = batch) -> torch.Tensor:
            def scaled(module: object, inputs: object, output: torch.Tensor) -> torch.Tensor | None:
                calls.append(1)
                if len(calls) > 1:
                    return None
                output = output.clone()
                output[:, position] *= factor
                return output

            calls: list[int] = []
            hook = model.source_embedding.register_forward_hook(scaled)
            with torch.no_grad():
                logits = model.logits(model(batch))
            hook.remove()
            return logits.log_softmax(-1).gather(1, batch.targets[:, None])[:, 0]

        size = 1e-4
        columns = [
            ((scores(j, 1 + size) - scores(j, 1 - size)) / (2 * size)).abs() for j in range(batch.source.size(1))
        ]
        expected = torch.stack(columns, dim=1)
        expected = expected / expected.sum(dim=1, keepdim=True)
        own = found[number, : len(target) + 1, : len(source) + 1].double()
        torch.testing.assert_close(own, expected, atol=0.01, rtol=0.02)


def test_a_model_in_int8_has_no_gradients() -> None:
    model = RnnConfig(16, cell="lstm", attention="none").build(12, 12, shared=True).eval()
    quantize(model)
    with pytest.raises(ConfigError, match="in int8 no gradients"):
        source_gradients(model, collate([[4, 5]], [[6]]))


def test_gradients_under_no_grad_and_inference_mode() -> None:
    model, batch = RnnConfig(16, cell="lstm", attention="none").build(12, 12, shared=True), collate([[4, 5]], [[6]])
    with torch.no_grad():
        torch.testing.assert_close(source_gradients(model, batch).sum(dim=-1), torch.ones(1, 2))
    with torch.inference_mode(), pytest.raises(ConfigError, match="inference_mode, no gradients"):
        source_gradients(model, batch)
