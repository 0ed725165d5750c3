"""The parity gate: what it counts, and what it refuses."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from tolka.data.batch import EOS, collate
from tolka.errors import CheckpointError
from tolka.interchange.parity import FP32, LINES, Logits, Pairs, Threshold, TolkaSide, compare, made_up_lines, sample_of
from tolka.model_directory.read import load_model

LINES_OF_TEXT = ["lantern ferry .", "kettle pebble saddle .", "walnut copper velvet orchid ."]


class Made:
    """A side with translations and logits given by hand."""

    name = "made 1.0"

    def __init__(self, translations: Sequence[str], logits: list[Logits] | None = None) -> None:
        self.translations, self.forced = list(translations), logits

    def translate(self, lines: Sequence[str]) -> list[str]:
        return self.translations[: len(lines)]

    def logits(self, pairs: Pairs) -> list[Logits] | None:
        return self.forced


def test_equal_sides_pass() -> None:
    zeros = [np.zeros((3, 5), dtype=np.float32)]
    found = compare(Made(["a b", "c"], zeros), Made(["a b", "c"], zeros), ["x", "y"])
    assert (found.share, found.bleu.value, found.logits, found.first) == (1.0, 100.0, 0.0, None)
    found.check(FP32)
    assert "2 lines, made 1.0 and tolka translate 2 identically (greedy); BLEU between both is 100.00" in (
        found.as_markdown()
    )
    assert "The greatest difference of logits is 0.0e+00." in found.as_markdown()
    assert found.bleu.signature in found.as_markdown()


def test_the_first_line_that_differs_is_shown() -> None:
    ours, theirs = Made(["a b c d", "e", "f"]), Made(["a b c d", "E", "F"])
    found = compare(ours, theirs, ["one", "two", "three"])
    assert (found.lines, found.identical, found.logits) == (3, 1, None)
    assert "logits" not in found.as_markdown()
    with pytest.raises(CheckpointError) as caught:
        found.check(FP32)
    assert "made 1.0 does not translate like tolka: 1 of 3 lines are identical (at least 98% must be)" in (
        str(caught.value)
    )
    assert str(caught.value).endswith("First line that differs: 'two' becomes 'e' in tolka and 'E' in made 1.0")
    found.check(Threshold(identical=0.3, bleu=0.0))


@pytest.mark.parametrize("difference", [2e-3, float("nan")])
def test_logits_that_differ_are_refused(difference: float) -> None:
    one, two = np.zeros((2, 4), dtype=np.float32), np.zeros((2, 4), dtype=np.float32)
    two[1, 3] = difference
    found = compare(Made(["a"], [one]), Made(["a"], [two]), ["x"])
    with pytest.raises(CheckpointError, match="logits differ by"):
        found.check(FP32)


def test_another_segmentation_is_an_infinite_difference() -> None:
    one, two = np.zeros((2, 4), dtype=np.float32), np.zeros((3, 4), dtype=np.float32)
    assert compare(Made(["a"], [one]), Made(["a"], [two]), ["x"]).logits == float("inf")


def test_tolka_s_own_side(trained: Path) -> None:
    """Its logits are those of each pair alone, and its translations have the gate's limit."""
    saved = load_model(trained)
    side, tokenizer = TolkaSide(saved), saved.tokenizer
    translations = side.translate(LINES_OF_TEXT)
    found = side.logits(list(zip(LINES_OF_TEXT, translations, strict=True)))
    assert found is not None
    for source, target, logits in zip(LINES_OF_TEXT, translations, found, strict=True):
        batch = collate(tokenizer.encode_source([source]), tokenizer.encode_target([target]))
        with torch.no_grad():
            expected = saved.model.logits(saved.model(batch))[:, EOS:].numpy()
        np.testing.assert_allclose(logits, expected, atol=1e-5)
        assert logits.shape[1] == tokenizer.target_size - EOS


def test_a_sample_is_given_or_made_up(trained: Path) -> None:
    saved = load_model(trained)
    assert sample_of(saved, ["  a b ", "", " "]) == ["a b"]
    made = sample_of(saved)
    assert made == made_up_lines(saved.tokenizer, LINES)
    assert len(made) == LINES == len({*made})
    assert all(line == line.strip() and line for line in made)
