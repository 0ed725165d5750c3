"""The parity gate: what it counts, and what it refuses."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tolka.data.batch import EOS, collate
from tolka.errors import CheckpointError, DataError
from tolka.interchange.parity import FP32, LINES, Logits, Pairs, Threshold, TolkaSide, compare, made_up_lines, sample_of
from tolka.model_directory.read import load_model
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.tokenizer.vocabulary import SPECIAL, Vocabulary

LINES_OF_TEXT = ["lantern ferry .", "kettle pebble saddle .", "walnut copper velvet orchid ."]


class Made:
    """A side with translations and logits given by hand."""

    name = "made 1.0"

    def __init__(self, translations: Sequence[str], logits: list[Logits] | None = None, name: str = name) -> None:
        self.name = name
        self.translations, self.forced = list(translations), logits

    def translate(self, lines: Sequence[str]) -> list[str]:
        return self.translations[: len(lines)]

    def logits(self, pairs: Pairs) -> list[Logits] | None:
        return self.forced


def test_equal_sides_pass() -> None:
    zeros = [np.zeros((3, 5), dtype=np.float32)]
    found = compare(Made(["a b", "c"], zeros, "tolka"), Made(["a b", "c"], zeros), ["x", "y"])
    assert (found.identical, found.bleu.value, found.logits, found.first) == (2, 100.0, 0.0, None)
    found.check(FP32)
    assert "2 lines, made 1.0 and tolka translate 2 identically (greedy), to 2 different texts; " in found.as_markdown()
    assert "BLEU between both is 100.00" in found.as_markdown()
    assert "The greatest difference of logits is 0.0e+00." in found.as_markdown()
    assert found.bleu.signature in found.as_markdown()


def test_equal_blanks_prove_little() -> None:
    """Unless logits were compared, too."""
    lines, zeros = [*"abcdefgh"], [np.zeros((3, 5), dtype=np.float32)]
    for translations, logits, is_warned in (
        ([""] * 8, None, True),
        (["a"] * 7 + ["b"], None, True),
        ([*"abcd", *"abcd"], None, False),
        ([""] * 8, zeros, False),
    ):
        said: list[str] = []
        compare(Made(translations, logits), Made(translations, logits), lines).check(FP32, said.append)
        assert any("that proves little" in line for line in said) == is_warned
        assert f"to {len({*translations} - {''})} different text" in said[0]


def test_the_first_line_that_differs_is_shown() -> None:
    ours, theirs = Made(["a b c d", "e", "f"], name="tolka"), Made(["a b c d", "E", "F"])
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


def test_the_growth_of_nll_is_the_divergence_of_the_distributions() -> None:
    """Of (1/2, 1/2) from (1/4, 3/4): 1/2 ln 2 + 1/2 ln 2/3, whatever was added to the logits."""
    one, two = (np.log(np.array([each], dtype=np.float32)) for each in ([0.5, 0.5], [0.25, 0.75]))
    found = compare(Made(["a"], [one]), Made(["a"], [two + 3]), ["x"])
    assert found.nll == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(2 / 3))
    with pytest.raises(CheckpointError, match=r"nll grows by 0\.1438 a token \(at most 0\.1\); try more"):
        found.check(Threshold(0.0, 0.0, math.inf, nll=0.1, advice="; try more"))


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
    saved, said = load_model(trained), list[str]()
    longest = saved.sources.longest
    too_long = "lantern " * longest
    assert sample_of(saved, ["  a b "], said.append) == ["a b"]
    assert said == []
    assert sample_of(saved, ["  a b ", "", " ", too_long], said.append) == ["a b"]
    assert said == [
        "note: 3 of 4 lines of the sample are left out: 2 blank, 1 longer than the "
        f"{longest} subwords that the model was trained on"
    ]
    with pytest.raises(DataError, match=r"^none of the 2 lines of the sample can be compared: 2 blank$"):
        sample_of(saved, ["", " "])
    with pytest.raises(DataError, match=r"^none of the 1 lines of the sample can be compared: 1 longer than the"):
        sample_of(saved, [too_long])
    made = sample_of(saved)
    assert made == made_up_lines(saved.tokenizer, LINES)
    assert len(made) == LINES == len({*made})
    assert all(line == line.strip() and line for line in made)


def test_made_up_lines_have_at_most_the_subwords_that_a_model_was_trained_on(trained: Path) -> None:
    tokenizer = load_model(trained).tokenizer
    for longest in (3, 6):
        lines = made_up_lines(tokenizer, LINES, longest=longest)
        assert len(lines) == LINES
        assert max(map(len, tokenizer.encode_source(lines))) == longest
    assert made_up_lines(tokenizer, LINES, longest=0) == []


@pytest.mark.parametrize("subwords", [["\u2581"], [], [">>de<<"], [">>de<<", "\u2581"]])
def test_a_vocabulary_that_no_lines_can_be_made_up_of(trained: Path, subwords: list[str]) -> None:
    saved = load_model(trained)
    vocabulary = Vocabulary((*SPECIAL, *subwords), (0, 1, 2 + len(subwords)))
    odd = replace(saved, tokenizer=Tokenizer(saved.tokenizer.models * 2, [vocabulary]))
    with pytest.raises(CheckpointError, match=r"its vocabulary gives no lines of at most .* subwords to compare"):
        sample_of(odd)


def test_forced_targets_are_cut_to_the_limit(trained: Path) -> None:
    saved = load_model(trained)
    text = "tolo fjon tolo fjon"
    (ids,) = saved.tokenizer.encode_target([text])
    assert len(ids) > 3
    assert TolkaSide(saved, len(ids)).beginning(text) == text
    cut = TolkaSide(saved, 3).beginning(text)
    assert text.startswith(cut)
    assert len(saved.tokenizer.encode_target([cut])[0]) <= 3
