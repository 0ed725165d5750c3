"""A chosen trainer.validate_every is that of the updates in a pass with the tokenizer that is used."""

from pathlib import Path

import pytest
import yaml

from tolka.config.command_line import train_config, with_recipe
from tolka.run.chosen import with_chosen_settings
from tolka.run.inputs import read_inputs
from tolka.run.training_setup import build_trainer, ready_device
from tolka.training.run_folder import RunFolder


@pytest.mark.parametrize(("typed", "expected"), [([], 240), (["trainer.validate_every=70"], 70)])
def test_updates_in_a_pass_are_counted_with_the_tokenizer(tmp_path: Path, typed: list[str], expected: int) -> None:
    """With a mark of their beginning and </s>, lines have 33 tokens; 66 are a batch: 240 updates, not some 30."""
    for name, lines in (("train", 480), ("valid", 50)):
        for side in ("xa", "xb"):
            text = "".join(f"{name[0]}{n:014} {n + 1000:015}\n" for n in range(lines))
            (tmp_path / f"{name}.{side}").write_text(text)
    config = train_config(
        with_recipe(
            [
                *(f"corpus.train={tmp_path}/train", f"corpus.valid={tmp_path}/valid", "cleaning=none"),
                *("corpus.source=xa", "corpus.target=xb", "tokenizer=char", f"run.dir={tmp_path}/run"),
                *(
                    f"run.prepared={tmp_path}/prepared",
                    "batching.tokens=66",
                    "batching.max_length=60",
                    "trainer.precision=fp32",
                    *typed,
                ),
            ]
        )
    )
    left_open = config.run.open_settings
    config, _ = with_chosen_settings(config)
    assert config.trainer.validate_every in (100, 70)
    run, said = RunFolder(tmp_path / "run"), list[str]()
    run.claim(config.as_dict())
    trainer = build_trainer(
        config, read_inputs(config, said.append), run, ready_device(config.trainer), chosen=left_open
    )
    run.release()
    assert len(trainer.loader.plan(0)) == 240
    assert trainer.config.validate_every == expected
    assert yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["trainer"]["validate_every"] == expected
