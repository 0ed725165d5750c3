"""A model that is learnt from beside the references: it must have the same subwords, and the same direction."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from conftest import Command
from tolka.config.command_line import train_config
from tolka.errors import ConfigError
from tolka.run.training_setup import teacher_of
from tolka.tokenizer.tokenizer import Tokenizer


def test_advice_that_follows_a_teacher_of_other_subwords_trains(
    tiny: list[str], trained: Path, tmp_path: Path, command: Command
) -> None:
    other = [each for each in tiny if not each.startswith("tokenizer")]
    found = command("mt-train", *other, "tokenizer.vocab_size=330", f"trainer.teacher={trained}")
    assert found.code != 0
    assert "Traceback" not in found.err
    advised = f"tokenizer.model=[{trained / 'best' / 'tokenizer.model'}]"
    assert f"trainer.teacher ({trained}) has other subwords: train with its own, '{advised}'" in found.err
    assert command("mt-train", *other, advised, f"trainer.teacher={trained}").code == 0
    assert command("mt-train", *other, advised, f"run.dir={tmp_path / 'alone'}").code == 0
    taught, alone = (load_file(tmp_path / name / "best" / "model.safetensors") for name in ("run", "alone"))
    assert taught.keys() == alone.keys()  # the teacher's weights are not saved with it
    assert not torch.equal(taught["encoder.0.attention.output.weight"], alone["encoder.0.attention.output.weight"])


def test_a_teacher_of_another_direction_is_refused(tiny: list[str], trained: Path) -> None:
    swapped = [*tiny, "corpus.source=xb", "corpus.target=xa", f"trainer.teacher={trained}"]
    with pytest.raises(ConfigError, match="must translate from xb to xa, and nothing else: name another"):
        teacher_of(train_config(swapped), Tokenizer.load(trained / "best"), torch.device("cpu"))
