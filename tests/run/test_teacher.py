"""Learning a teacher's probabilities beside the references (trainer.teacher)."""

import json
from pathlib import Path

import pytest
import yaml

from conftest import Command


@pytest.mark.slow
def test_a_student_has_the_teacher_s_subwords_and_learns_its_probabilities(
    command: Command, tiny: list[str], trained: Path, tmp_path: Path
) -> None:
    kept = [each for each in tiny if not each.startswith(("tokenizer", "run.dir", "trainer.validate_every"))]
    student = [*kept, "trainer.validate_every=2", "trainer.log_every=1", f"trainer.teacher={trained}"]
    found = command("mt-train", *student, f"run.dir={tmp_path / 'run'}")
    assert found.code == 0, found.err
    own, teacher = (folder / "best" / "tokenizer.model" for folder in (tmp_path / "run", trained))
    assert own.read_bytes() == teacher.read_bytes()
    assert f"tokenizer: SentencePiece of {trained / 'best'}" in found.err
    saved = yaml.safe_load((tmp_path / "run" / "best" / "config.yaml").read_text(encoding="utf-8"))
    assert (saved["trainer"]["teacher"], saved["tokenizer"]["vocab_size"]) == (str(trained), 320)
    # Other probabilities, other weights; of the same ones, the same.
    weights = (tmp_path / "run" / "best" / "model.safetensors").read_bytes()
    for weight, is_same in (("0.5", True), ("1", False)):
        folder = tmp_path / f"run-{weight}"
        assert command("mt-train", *student, f"run.dir={folder}", f"trainer.teacher_weight={weight}").code == 0
        assert ((folder / "best" / "model.safetensors").read_bytes() == weights) is is_same
    # As any model, it translates without its teacher, and goes on with it.
    assert command("mt-translate", tmp_path / "run", stdin=b"lantern kettle\n").out.count("\n") == 1
    longer = command("mt-train", *student, f"run.dir={tmp_path / 'run'}", "trainer.updates=7")
    assert longer.code == 0, longer.err
    assert "resum" in longer.err


def test_several_models_teach_together(command: Command, tiny: list[str], trained: Path, tmp_path: Path) -> None:
    """Two of the same kind have one's probabilities."""
    kept = [each for each in tiny if not each.startswith(("tokenizer", "run.dir"))]
    losses = []
    for name, teacher in (("one", f"{trained}"), ("two", f"{trained},{trained}")):
        found = command(
            "mt-train", *kept, "trainer.log_every=1", f"run.dir={tmp_path / name}", f"trainer.teacher={teacher}"
        )
        assert found.code == 0, found.err
        lines = (tmp_path / name / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        losses += [line["train_loss"] for line in map(json.loads, lines) if "train_loss" in line]
    one, two = losses[: len(losses) // 2], losses[len(losses) // 2 :]
    assert len(one) == 5
    assert one == pytest.approx(two, rel=1e-5)


def test_a_model_in_int8_does_not_teach(command: Command, tiny: list[str], trained: Path, tmp_path: Path) -> None:
    assert command("mt-train", "quantise", trained, "-o", tmp_path / "small").code == 0
    kept = [each for each in tiny if not each.startswith("tokenizer")]
    found = command("mt-train", *kept, f"trainer.teacher={tmp_path / 'small'}")
    assert found.code == 1
    assert "has its weights in int8, for translating only: give the model that it was made from" in found.err


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["tokenizer.vocab_size=400"], "tokenizer.vocab_size: the subwords are those of trainer.teacher"),
        (["corpus.source=xb", "corpus.target=xa"], "does not translate from xb to xa: name one that does"),
        (["trainer.teacher_weight=0"], "trainer.teacher_weight (0) must be above 0, and at most 1"),
        (["trainer.teacher=nowhere"], "nowhere"),
    ],
)
def test_what_does_not_fit_is_one_line(
    settings: list[str], message: str, command: Command, tiny: list[str], trained: Path
) -> None:
    keys = {each.partition("=")[0] for each in settings}
    kept = [each for each in tiny if not each.startswith("tokenizer") and each.partition("=")[0] not in keys]
    teacher = [] if "trainer.teacher" in keys else [f"trainer.teacher={trained}"]
    found = command("mt-train", *kept, *teacher, *settings)
    assert found.code == 2 or "nowhere" in message
    assert message in found.err.splitlines()[-1]
    assert "Traceback" not in found.err


def test_a_teacher_of_other_subwords_cannot_teach_a_given_model(
    command: Command, tiny: list[str], trained: Path, tmp_path: Path
) -> None:
    other = [each for each in tiny if not each.startswith(("tokenizer", "run.dir"))]
    assert command("mt-train", *other, "tokenizer.vocab_size=310", f"run.dir={tmp_path / 'other'}").code == 0
    kept = [each for each in other if not each.startswith("model")]
    start = [f"run.init_from={tmp_path / 'other'}", f"run.dir={tmp_path / 'run'}", f"trainer.teacher={trained}"]
    found = command("mt-train", *kept, *start)
    assert found.code == 2
    assert f"trainer.teacher ({trained}) has other subwords than run.init_from" in found.err
