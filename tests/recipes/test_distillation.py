"""Distillation from the command line: a student that learns from a model's translations."""

import json
from pathlib import Path

import pytest
import yaml

from conftest import Command, write_corpus
from tolka.errors import ConfigError
from tolka.metrics.pairwise import chrf_of
from tolka.model_directory.read import load_tokenizer
from tolka.recipes import outcome
from tolka.recipes.distillation import DistillationConfig
from tolka.recipes.outcome import translated
from tolka.recipes.task import RecipeTask
from tolka.text.direction import Direction
from tolka.text.lines import read_lines


@pytest.fixture
def lesson(compared: list[str], trained: Path) -> list[str]:
    """The arguments of mt-train to distil `trained`."""
    return [*compared, "recipe=distillation", f"teacher={trained}"]


@pytest.mark.slow
def test_the_nearest_translations_are_taught_and_all_forms_are_compared(
    lesson: list[str], tmp_path: Path, command: Command, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def both(models: dict[str, str], source: Path, out: Path, direction: Direction) -> dict[str, float]:
        """The teacher's and the student's own translations, at known rates."""
        for name in models:
            (out / f"{name}.txt").write_text("tolo mirka\n" * 8, encoding="utf-8")
        return {name: 10.0 * (number + 1) for number, name in enumerate(models)}

    monkeypatch.setattr(outcome, "translated", both)
    found = command("mt-train", *lesson, "recipe.hypotheses=3")
    assert found.code == 0, found.err
    assert calls[:2] == ["translate", "train"]
    steps = tmp_path / "run" / "steps"
    # Each lesson is the one of three translations that is nearest to its reference.
    lists: dict[str, list[str]] = {}
    for line in read_lines(steps / "taught" / "lines.txt"):
        number, text, *_ = line.split(" ||| ")
        lists.setdefault(number, []).append(text)
    references = [*read_lines(tmp_path / "corpus" / "train.xb")]
    taught = {*zip(*(read_lines(steps / "lessons" / f"pairs.{code}") for code in ("xa", "xb")), strict=True)}
    sources = [*read_lines(tmp_path / "corpus" / "train.xa")]
    assert len(lists) == len(references) == 60
    for source, reference, texts in zip(sources, references, lists.values(), strict=True):
        scores = {text: chrf_of(text, reference) for text in texts}
        assert any(scores[text] == max(scores.values()) and (not text or (source, text) in taught) for text in texts)
    figures = json.loads((steps / "outcome.json").read_text(encoding="utf-8"))["figures"]
    assert [row[0] for row in figures["rows"]][:3] == ["teacher", "student", "int8"]
    assert figures["rows"][1][3] == "2.0"
    card = (tmp_path / "run" / "best" / "README.md").read_text(encoding="utf-8")
    assert f"distilled from {lesson[-1].rpartition('/')[2]}, which translated" in card
    assert command("mt-translate", tmp_path / "run", stdin=b"lantern\n").out.count("\n") == 1


@pytest.mark.parametrize(("names", "first"), [("[bleu]", "BLEU"), ("[ter,exact]", "TER")])
def test_any_scores_compare_the_student_with_its_teacher(
    names: str, first: str, compared: list[str], trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them, too; and the model is handed over before they are computed, which may fail."""
    said: list[str] = []
    task = RecipeTask("distillation", [*compared, f"metrics.names={names}"], said.append)
    task.texts.write()
    monkeypatch.setattr(RecipeTask, "model", lambda *_: trained / "best")

    def both(models: dict[str, str], source: Path, out: Path, direction: Direction) -> dict[str, float]:
        assert (task.best / "model.safetensors").is_file()
        out.mkdir()
        for name in models:
            (out / f"{name}.txt").write_text("tolo mirka\n" * 8, encoding="utf-8")
        return dict.fromkeys(models, 10.0)

    monkeypatch.setattr(outcome, "translated", both)
    tell = outcome.deliver(task, str(trained), "student", {}, lambda: "distilled").do
    assert tell
    assert [row[0] for row in tell()["rows"]] == ["teacher", "student"]
    assert first in said[-1]


@pytest.mark.parametrize(("family", "layers"), [("transformer", "3"), ("rnn", "1")])
def test_the_widest_student_that_is_small_enough_is_chosen(
    family: str, layers: str, compared: list[str], trained: Path
) -> None:
    """It has all of the teacher's subwords where it may be as large, and half of them where that leaves it wider."""
    task = RecipeTask("distillation", [f"model.family={family}"], print)
    saved = yaml.safe_load((trained / "best" / "config.yaml").read_text("utf-8"))
    width, rows = max(32, round(saved["model"]["d_model"] / 32) * 32), load_tokenizer(trained).target_size
    found = DistillationConfig(teacher=str(trained), size=10.0)._student(task)
    assert (found["model.family"], found["model.layers"]) == (family, layers)
    assert (found["model.d_model"], found["tokenizer.vocab_size"]) == (str(width), str(rows))
    assert ("model.decoder_layers" in found) == (family == "transformer")
    typed = RecipeTask("distillation", [f"model.family={family}", "tokenizer.vocab_size=90"], print)
    assert "tokenizer.vocab_size" not in DistillationConfig(teacher=str(trained), size=10.0)._student(typed)
    with pytest.raises(
        ConfigError, match=r"no student has at most 1% of the teacher's [\d,]+ parameters: raise recipe\.size"
    ):
        DistillationConfig(teacher=str(trained), size=0.01)._student(task)


@pytest.mark.parametrize("typed", [[], ["tokenizer.vocab_size=390"]])
def test_a_student_for_another_program_is_as_large_as_its_teacher(
    typed: list[str], compared: list[str], trained: Path, tmp_path: Path
) -> None:
    """It learns the teacher's probabilities, which are of the same subwords, and from text without references."""
    more = tmp_path / "more.xa"
    settings = [each for each in compared if not each.startswith(("model", "tokenizer"))]
    task = RecipeTask("distillation", [*settings, "model.leaves_to=marian", *typed], print)
    recipe = DistillationConfig(teacher=str(trained), monolingual=[str(more)] if typed else [])
    steps = {step.name: step for step in recipe.steps(task)}
    made = ["texts", "taught", "lessons", "sources", "more-taught", "more-lessons", "student", "int8", "marian"]
    assert [*steps] == [*made, "outcome"]
    student = dict(each.partition("=")[::2] for each in steps["student"].command[1:])
    sizes = yaml.safe_load((trained / "best" / "config.yaml").read_text("utf-8"))["model"]
    if typed:  # other subwords, whose probabilities it does not have
        assert "trainer.teacher" not in student
        assert more in steps["sources"].reads
    else:
        assert student["trainer.teacher"] == str(trained)
        # Whatever row of the rules the text with its lessons falls into: the rate is one of AdamW.
        assert (student["optimizer"], student["optimizer.lr"]) == ("adamw", "0.0015")
        assert student["tokenizer.model"].strip("[]'") == str(trained / "best" / "tokenizer.model")
        assert (student["model.d_model"], student["model.layers"]) == (str(sizes["d_model"]), str(sizes["layers"]))
    assert "more-lessons" in student["corpus.train"]
    assert steps["marian"].command[:4] == ["train", "export", "--to", "marian"]


@pytest.mark.slow
def test_models_are_timed_in_a_process_of_its_own(trained: Path, tmp_path: Path) -> None:
    write_corpus(tmp_path)
    models = {"one": str(trained), "two": f"{trained},{trained}"}
    rates = translated(models, tmp_path / "test.xa", tmp_path, Direction("xa", "xb"))
    assert min(rates.values()) > 0
    assert (tmp_path / "one.txt").read_bytes().count(b"\n") == 8


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["recipe.hypotheses=0"], "recipe.hypotheses (0) must be from 1 to 100"),
        (["recipe.size=0"], "recipe.size (0) must be above 0"),
        (["recipe.teacher="], "needs a model to learn from: teacher=MODEL"),
    ],
)
def test_what_does_not_fit_is_one_line(
    settings: list[str], message: str, lesson: list[str], command: Command, calls: list[str]
) -> None:
    kept = [each for each in lesson if not (each.startswith("teacher") and "teacher=" in settings[0])]
    found = command("mt-train", *kept, *settings)
    assert found.code != 0
    assert message in found.err
    assert "Traceback" not in found.err
