"""References are scored as they are given, whatever form of Unicode the model reads and writes."""

import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from tolka.engines.torch_engine import TorchEngine
from tolka.evaluation import tester
from tolka.evaluation.perplexity import PerplexityMeter
from tolka.evaluation.validator import Validator
from tolka.metrics.options import MetricsConfig
from tolka.models.transformer import TransformerConfig
from tolka.system.device import Precision
from tolka.text.characters import CharacterForm
from tolka.text.direction import Direction
from tolka.text.pairs import Pair
from tolka.tokenizer.tokenizer import TokenizerConfig
from tolka.tokenizer.training import train_tokenizer

TEXT = ["Zürich über alles schön", "naïve Mädchen grüßen", "한국 사람", "plain words stay as they are"]
COMPOSED = [Pair(line, line) for line in TEXT]
APART = [Pair(unicodedata.normalize("NFD", line), unicodedata.normalize("NFD", line)) for line in TEXT]
TOKENIZER = train_tokenizer(TokenizerConfig(vocab_size=320), lambda: iter(COMPOSED), lambda remark: None)
FP32 = Precision(torch.device("cpu"), "fp32")
METRICS = MetricsConfig(names=["chrf"], bootstrap=0)
XA_DE = Direction("xa", "de")


class Echo:
    """Returns every source, composed, as a model of composed text does."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        sizes = TransformerConfig(d_model=16, heads=2, layers=1)
        model = sizes.build(TOKENIZER.source_size, TOKENIZER.target_size, True).eval()
        self.engine, self.tokens = TorchEngine(model, torch.device("cpu")), 1000
        self.tokenizer, self.characters, self.direction = TOKENIZER, CharacterForm("nfc"), Direction("xa", "xb")

    def for_direction(self, direction: Direction) -> "Echo":
        return self

    def __call__(self, texts: Sequence[str], request: Any = None, tick: Any = None) -> list[str]:
        return [unicodedata.normalize("NFC", text) for text in texts]


def validation(pairs: list[Pair]) -> tuple[float, float, float]:
    """chrF, nll and the share of copies."""
    echo: Any = Echo()
    meter = PerplexityMeter(pairs, TOKENIZER, 1000, characters=echo.characters)
    found = Validator({XA_DE: pairs}, echo, {XA_DE: meter}, FP32, METRICS, "bleu", 0)(1)
    return found.values["chrf"], found.values["nll"], found.copied


def scored(pairs: list[Pair]) -> tuple[float, float, float]:
    """chrF and nll, without the share of copies."""
    echo: Any = Echo()
    found = tester.Tester(echo, None, METRICS, lambda name, text: None)("set", pairs, XA_DE)
    return found.scores[0].value, found.perplexity.nll / found.perplexity.tokens, 0.0


@pytest.mark.parametrize("measured", [validation, scored])
def test_scores_are_of_the_references_as_given_and_ppl_of_composed_ones(
    measured: Callable[[list[Pair]], tuple[float, float, float]],
) -> None:
    composed, apart = measured(COMPOSED), measured(APART)
    assert composed[0] == pytest.approx(100)
    assert apart[0] < 90  # three lines of four look the same and are not
    assert apart[1] == composed[1]  # the model reads and writes composed text: the same sentences to it


def test_a_copy_is_found_however_its_source_is_spelt() -> None:
    other = "the same reference for all"
    pairs = [Pair(pair.source, other) for pair in APART]
    assert validation(pairs)[2] == 1
