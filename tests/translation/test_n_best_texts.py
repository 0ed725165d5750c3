"""What every search promises of its texts: whole characters only, and no text twice."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from copying_model import facts
from copying_model import translator as copying
from oracle import perturb
from rows import each_row

from tolka.engines.torch_engine import TorchEngine
from tolka.errors import DataError
from tolka.models.rnn.config import RnnConfig
from tolka.search.beam import BeamConfig
from tolka.search.greedy import GreedyConfig
from tolka.search.hypothesis import Hypothesis
from tolka.search.mbr import MbrConfig
from tolka.search.options import Different, DiverseConfig, SearchConfig
from tolka.search.sampling import SamplingConfig
from tolka.terminology.glossary import Entry
from tolka.text.pairs import Pair
from tolka.tokenizer.tokenizer import Tokenizer, TokenizerConfig
from tolka.tokenizer.training import train_tokenizer
from tolka.translation.request import Request
from tolka.translation.translator import Translator

TEXTS = ["ferry lantern .", "달이 뜹니다 ferry", "", "kettle. ferry. lantern."]
SHORT: dict[str, Any] = {"max_length_factor": 0.5, "max_length_extra": 7}
SEARCHES: dict[str, SearchConfig] = {
    "greedy": GreedyConfig(**SHORT),
    "beam": BeamConfig(beam_size=6, n_best=6, **SHORT),
    "diverse": DiverseConfig(beam_size=6, n_best=4, **SHORT),
    "sampling": SamplingConfig(n_best=6, temperature=0.6, **SHORT),
    "mbr": MbrConfig(samples=6, n_best=3, **SHORT),
    "mbr of a beam": MbrConfig(samples=6, n_best=3, candidates="beam", **SHORT),
}


@cache
def tokenizer() -> Tokenizer:
    pairs = [Pair(text, text.upper()) for text in TEXTS if text] * 20
    return train_tokenizer(TokenizerConfig(vocab_size=320), lambda: iter(pairs), lambda remark: None)


def spelling_with_bytes(search: SearchConfig, seed: int, terms: bool = False) -> Translator[TorchEngine]:
    """A random model of which most subwords are bytes, and few sequences of them are characters."""
    torch.manual_seed(seed)
    model = RnnConfig(d_model=16).build(tokenizer().source_size, tokenizer().target_size, True).eval()
    perturb(model, seed)
    glossary = [Entry(("ferry",), ("Fähre", "☃"))]
    request = Request(search, glossary=glossary if terms else ())
    return Translator(TorchEngine(model, torch.device("cpu")), facts(tokenizer()), request)


@pytest.mark.slow
@each_row("name", sorted(SEARCHES))
@each_row("seed", [1, 2])
def test_texts_have_whole_characters_and_differ(name: str, seed: int) -> None:
    for terms in (False, name == "beam"):
        made = spelling_with_bytes(SEARCHES[name], seed, terms)
        for translation in made.translate(TEXTS, Request(prefixes=["Ä", "", "", "☃"])) + made.translate(TEXTS):
            texts = [each.text for each in translation.candidates]
            assert "\ufffd" not in "".join(texts).encode().decode()
            assert len(set(texts)) == len(texts) <= SEARCHES[name].returned


def test_a_beam_fills_the_place_of_an_equal_text() -> None:
    found = [Hypothesis([number], -float(number), -float(number), True) for number in range(5)]
    chosen = Different(3).select(["a b", "a  b", "c", " a b", "d"], found)
    assert [(text, each.tokens) for text, each in chosen] == [("a b", [0]), ("c", [2]), ("d", [4])]


def test_parts_that_join_to_equal_texts_are_one_candidate() -> None:
    made = copying(BeamConfig(beam_size=2, n_best=2), max_length=8)
    segmenter = made._segmenter(made.request)
    segmented = segmenter.segment("red birds sing. blue fish swim. green frogs jump.")
    same = [[("x", Hypothesis([4], -1.0, -1.0, True)), ("x", Hypothesis([5], -2.0, -2.0, True))]]
    joined = segmenter.join(segmented, same * len(segmented.segments))
    assert len(joined.candidates) == 1
    assert joined.score == -len(segmented.segments)


def test_a_replacement_character_is_that_of_the_source() -> None:
    """A model that learnt it from damaged training text writes it elsewhere too."""
    ids = tokenizer().encode_target(["A\ufffdB"])[0]
    made = spelling_with_bytes(GreedyConfig(), 1)
    for text, prefix, expected in (
        ("ferry", "", "AB"),
        ("fer\ufffdry", "", "A\ufffdB"),
        ("ferry", "\ufffd", "A\ufffdB"),
    ):
        found = [("A\ufffdB", Hypothesis(ids, -1.0, -1.0, True))]
        segmenter = made._segmenter(made.request)
        assert segmenter.join(segmenter.segment(text, prefix), [found]).text == expected


@pytest.mark.parametrize("method", ["translate", "prefixes", "score", "call"])
def test_half_a_character_is_refused(method: str) -> None:
    made = copying()
    calls: dict[str, Callable[[], object]] = {
        "translate": lambda: made.translate(["a", "b\ud800"]),
        "prefixes": lambda: made.translate(["a", "b"], Request(prefixes=["", "\udc80"])),
        "score": lambda: made.score([("a", "b"), ("c", "\ud83d")]),
        "call": lambda: made("\ud800"),
    }
    with pytest.raises(DataError, match=r"\[[01]\] \('b?\\ud.*half a character"):
        calls[method]()
