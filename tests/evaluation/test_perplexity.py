"""Perplexity against its definition."""

import math
from typing import Any

import pytest
import torch

from tolka.data.batch import collate
from tolka.engines.torch_engine import TorchEngine
from tolka.errors import DataError
from tolka.evaluation.perplexity import Perplexity, PerplexityMeter
from tolka.models.rnn import RnnConfig
from tolka.models.transformer import TransformerConfig
from tolka.system.device import Precision
from tolka.text.pairs import Pair
from tolka.tokenizer.language_tags import Tags
from tolka.tokenizer.tokenizer import TokenizerConfig
from tolka.tokenizer.training import train_tokenizer

PAIRS = [Pair("red birds sing", "여름에 새가 운다"), Pair("frogs", "개구리"), Pair("a longer line of words", "긴 줄")]
TOKENIZER = train_tokenizer(TokenizerConfig(vocab_size=310), lambda: iter(PAIRS), lambda remark: None)
FP32 = Precision(torch.device("cpu"), "fp32")


def test_the_three_figures_by_hand() -> None:
    measured = Perplexity(nll=12.0, tokens=6, words=4, characters=24, pairs=2, skipped=0)
    assert measured.per_token == pytest.approx(math.exp(2))
    assert measured.per_word == pytest.approx(math.exp(3))
    assert measured.bits_per_character == pytest.approx(0.5 / math.log(2))


def test_it_is_the_log_probability_of_every_reference_with_its_end() -> None:
    torch.manual_seed(0)
    model = TransformerConfig(d_model=16, heads=2, layers=1).build(TOKENIZER.source_size, TOKENIZER.target_size, True)
    measured = PerplexityMeter(PAIRS, TOKENIZER, tokens=100).measure(model.eval(), FP32)
    total = tokens = 0.0
    for pair in PAIRS:
        batch = collate(TOKENIZER.encode_source([pair.source]), TOKENIZER.encode_target([pair.target]))
        log_p = model.logits(model(batch)).log_softmax(-1)
        total -= sum(log_p[i, token].item() for i, token in enumerate(batch.targets.tolist()))
        tokens += len(TOKENIZER.encode_target([pair.target])[0]) + 1
    assert measured.nll == pytest.approx(total, rel=1e-5)
    assert measured.tokens == tokens
    assert (measured.words, measured.pairs, measured.skipped) == (6, 3, 0)
    assert measured.characters == len("여름에 새가 운다") + len("개구리") + len("긴 줄")


@pytest.mark.parametrize("model", [TransformerConfig(d_model=16, heads=2, layers=1), RnnConfig(d_model=16)])
def test_the_tags_of_languages_are_not_counted(model: Any) -> None:
    """Decoding forces them: the same pairs with and without one in the target have as many tokens."""
    torch.manual_seed(0)
    built = model.build(TOKENIZER.source_size, TOKENIZER.target_size, True)
    tags = Tags((), (7,))
    measured = PerplexityMeter(PAIRS, TOKENIZER, tokens=100, tags=tags).measure(built, FP32)
    plain = PerplexityMeter(PAIRS, TOKENIZER, tokens=100).measure(built, FP32)
    assert measured.tokens == plain.tokens
    ids = TOKENIZER.encode_source([pair.source for pair in PAIRS]), TOKENIZER.encode_target([p.target for p in PAIRS])
    scores = TorchEngine(built, torch.device("cpu")).score(*ids, tags)
    assert scores is not None
    assert measured.nll == pytest.approx(-sum(map(sum, scores)), rel=1e-5)
    total = 0.0
    for pair in PAIRS:
        [source], [target] = TOKENIZER.encode_source([pair.source]), TOKENIZER.encode_target([pair.target])
        log_p = built.logits(built(collate([source], [[7, *target]]))).log_softmax(-1)[1:]
        total -= sum(log_p[i, token].item() for i, token in enumerate([*target, 2]))
    assert measured.nll == pytest.approx(total, rel=1e-5)


def test_a_language_without_spaces_has_no_perplexity_per_word() -> None:
    model = TransformerConfig(d_model=16, heads=2, layers=1).build(TOKENIZER.source_size, TOKENIZER.target_size, True)
    measured = PerplexityMeter(PAIRS, TOKENIZER, tokens=100, language="zh").measure(model.eval(), FP32)
    assert measured.words == 0
    assert math.isnan(measured.per_word)
    assert "per word" not in str(measured)


def test_pairs_that_cannot_be_measured_are_counted() -> None:
    model = TransformerConfig(d_model=16, heads=2, layers=1).build(TOKENIZER.source_size, TOKENIZER.target_size, True)
    pairs = [*PAIRS, Pair("", "새"), Pair("새" * 500, "새")]
    measured = PerplexityMeter(pairs, TOKENIZER, tokens=100).measure(model.eval(), FP32)
    assert (measured.pairs, measured.skipped) == (3, 2)


def test_nothing_to_measure_is_an_error() -> None:
    with pytest.raises(DataError, match="no pair of this text can be measured"):
        PerplexityMeter([Pair("", "")], TOKENIZER, tokens=100)


def test_a_batch_without_room_is_measured_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model = TransformerConfig(d_model=16, heads=2, layers=1).build(TOKENIZER.source_size, TOKENIZER.target_size, True)
    pairs = [*PAIRS, *PAIRS]
    whole = PerplexityMeter(pairs, TOKENIZER, tokens=100).measure(model.eval(), FP32)
    real, most = type(model).forward, 40

    def forward(self: Any, batch: Any) -> Any:
        if batch.positions > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(self, batch)

    monkeypatch.setattr(type(model), "forward", forward)
    parts = PerplexityMeter(pairs, TOKENIZER, tokens=100).measure(model, FP32)
    assert parts.nll == pytest.approx(whole.nll, rel=1e-6)
    assert (parts.tokens, parts.pairs) == (whole.tokens, whole.pairs)
    most = 5
    with pytest.raises(torch.OutOfMemoryError):
        PerplexityMeter(pairs, TOKENIZER, tokens=100).measure(model, FP32)
