"""Maps of finished translations: of the right sentence, layer and head, with the right subwords."""

from pathlib import Path

import pytest
import torch

from tolka.data.batch import collate
from tolka.engines.options import DecodingConfig
from tolka.engines.torch_engine import TorchEngine
from tolka.model_directory.read import load_model
from tolka.search.beam import BeamConfig
from tolka.translation.attention_maps import AttentionMap, AttentionReader, word_alignment
from tolka.translation.translator import Translator

TEXTS = ["lantern kettle harbour .", "", "ferry .", "walnut velvet copper orchid saddle pebble ."]


@pytest.fixture(scope="module")
def translator(trained: Path) -> Translator[TorchEngine]:
    return Translator.of(load_model(trained), BeamConfig(beam_size=3), DecodingConfig(device="cpu", tokens=30))


def test_maps_are_those_of_forced_decoding(translator: Translator[TorchEngine]) -> None:
    """Maps equal those of each sentence alone, though computed in batches, longest first, of the best hypothesis."""
    translations = translator.translate(TEXTS)
    found = AttentionReader(translator)(translations)
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
