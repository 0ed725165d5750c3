"""Maps of finished translations: of the right sentence, layer and head, with the right subwords."""

from pathlib import Path

import pytest
import torch

from tolka.data.batch import collate
from tolka.errors import ConfigError
from tolka.model_directory.read import load_model
from tolka.search.beam import BeamConfig
from tolka.translation.attention_maps import AttentionConfig, AttentionMap, AttentionReader, word_alignment
from tolka.translation.options import DecodingConfig
from tolka.translation.torch_engine import TorchEngine
from tolka.translation.translator import Translator

TEXTS = ["lantern kettle harbour .", "", "ferry .", "walnut velvet copper orchid saddle pebble ."]


@pytest.fixture(scope="module")
def translator(trained: Path) -> Translator[TorchEngine]:
    return Translator.of(load_model(trained), BeamConfig(beam_size=3), DecodingConfig(device="cpu", tokens=30))


@pytest.mark.parametrize("kind", ["cross", "encoder", "decoder"])
@pytest.mark.parametrize("head", ["mean", "all", "1"])
def test_maps_are_those_of_forced_decoding(translator: Translator[TorchEngine], kind: str, head: str) -> None:
    """Maps equal those of each sentence alone, though computed in batches, longest first, of the best hypothesis."""
    translations = translator.translate(TEXTS)
    found = AttentionReader(translator, AttentionConfig(kind=kind, head=head))(translations)
    assert [len(maps) for maps in found] == [{"all": 2}.get(head, 1) * (text != "") for text in TEXTS]
    for translation, maps in zip(translations, found, strict=True):
        for number, each in enumerate(maps):
            ((source, target),) = translation.segments
            seen = translator.engine.model.inspect(collate([source], [target])).attention
            name = {"cross": "decoder.0.cross", "encoder": "encoder.0.self", "decoder": "decoder.0.self"}[kind]
            heads = seen[name][0]
            expected = heads.mean(0) if head == "mean" else heads[number if head == "all" else 1]
            torch.testing.assert_close(torch.tensor(each.weights), expected)
            assert (each.name, each.head) == (name, {"all": str(number)}.get(head, head))
            subwords = [translator.tokenizer.source_pieces(source), translator.tokenizer.target_pieces(target)]
            rows, columns = {
                "cross": ([*subwords[1], "</s>"], [*subwords[0], "</s>"]),
                "encoder": ([*subwords[0], "</s>"], [*subwords[0], "</s>"]),
                "decoder": (["<s>", *subwords[1]], ["<s>", *subwords[1]]),
            }[kind]
            assert (each.rows, each.columns) == (rows, columns)


def test_pieces_spell_the_text(translator: Translator[TorchEngine]) -> None:
    tokenizer = translator.tokenizer
    ((source,), (target,)) = tokenizer.encode_source(["ferry lantern ."]), tokenizer.encode_target(["tolo selk ."])
    assert "".join(tokenizer.source_pieces(source)).replace("▁", " ").strip() == "ferry lantern ."
    assert "".join(tokenizer.target_pieces(target)).replace("▁", " ").strip() == "tolo selk ."


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"layer": 1}, r"attention.layer \(1\): the layers with such a map are 0 to 0, or -1 for the last"),
        ({"layer": -2}, r"attention.layer \(-2\)"),
        ({"head": "2"}, r"attention.head \(2\): the heads of decoder.0.cross are 0 to 1, or mean, or all"),
    ],
)
def test_what_is_not_there(translator: Translator[TorchEngine], options: dict[str, object], complaint: str) -> None:
    reader = AttentionReader(translator, AttentionConfig(**options))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=complaint):
        reader(translator.translate(["ferry ."]))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"kind": "crass"}, r"attention.kind \('crass'\) is unknown. Known: cross, encoder, decoder"),
        ({"head": "-1"}, r"attention.head \('-1'\) must be mean, all, or the number of a head"),
        ({"alignments": True, "head": "all"}, r"attention.alignments=true reads one map"),
        ({"alignments": True, "kind": "decoder"}, r"attention.kind \(decoder\) must be cross"),
    ],
)
def test_complaints(options: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        AttentionConfig(**options)  # type: ignore[arg-type]


def a_map(rows: list[str], columns: list[str], weights: list[list[float]]) -> AttentionMap:
    return AttentionMap("decoder.0.cross", "mean", rows, columns, weights)


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
