"""What a training reads, and what it says about it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from conftest import sentences, write_split
from tolka.config.command_line import train_config
from tolka.errors import DataError
from tolka.model_directory.verify import LengthRatio
from tolka.run.inputs import Inputs, _unknown_notes, describe_sources, read_inputs
from tolka.text.direction import Direction
from tolka.tokenizer.special_tokens import UNK


def inputs_of(arguments: list[str]) -> tuple[Inputs, list[str]]:
    """The inputs of a training, and the lines that they log."""
    log: list[str] = []
    return read_inputs(train_config(arguments), log.append), log


def test_the_model_is_described_by_its_training_text(tiny: list[str], corpus: Path) -> None:
    pairs = [*sentences(45, seed=5), *[("The ferry left. We stayed here.", "fjon rive pell .")] * 15]
    write_split(corpus / "train", pairs)
    inputs, _ = inputs_of(tiny)
    sources = describe_sources(inputs)
    assert sources.several_sentences == 15 / 60
    assert sources.length_ratios == {Direction("xa", "xb"): LengthRatio.of(pairs)}
    encoded = inputs.prepared.tokenizer.encode_source([source for source, _ in pairs])
    assert sources.longest == max(map(len, encoded))


def test_the_validation_set_comes_first_and_keeps_a_name_of_its_own(tiny: list[str], corpus: Path) -> None:
    inputs, _ = inputs_of([*tiny, f"corpus.test={corpus / 'valid'}"])
    assert list(inputs.texts.held_out) == ["valid (valid)", "valid"]
    assert inputs.texts.set_aside == []


def test_a_test_set_that_is_named_twice_is_refused(tiny: list[str], corpus: Path) -> None:
    with pytest.raises(DataError, match="two test sets are called 'test'"):
        inputs_of([*tiny, f"corpus.test=[{corpus / 'test'},{corpus / 'test'}]"])


def test_what_a_model_cannot_spell_is_noted() -> None:
    store = SimpleNamespace(source_ids=np.array([7, UNK, 9]), target_ids=np.array([7, 8]))
    inputs: Any = SimpleNamespace(prepared=SimpleNamespace(store=store), parents=SimpleNamespace(start="a model"))
    (note,) = _unknown_notes(inputs, 4)
    assert note.startswith("1 of 3 subwords of the source are unknown, and lost")
    inputs.parents.start = None
    assert not [*_unknown_notes(inputs, 0)]
