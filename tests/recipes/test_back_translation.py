"""Back-translation from the command line: pairs of text in one language, and the better of two models."""

import json
from pathlib import Path

import pytest
import yaml

from conftest import Command, sentences
from tolka.errors import DataError
from tolka.metrics.options import MetricsConfig
from tolka.metrics.scores import Score
from tolka.metrics.significance import Comparison
from tolka.recipes import outcome
from tolka.recipes.outcome import check_useful
from tolka.recipes.task import RecipeTask

Calls = list[str]


@pytest.fixture
def recipe(compared: list[str], tmp_path: Path) -> list[str]:
    """The arguments of mt-train, with 30 lines of the target language."""
    more = [target for _, target in sentences(30, 77)]
    (tmp_path / "more.xb").write_text("".join(f"{line}\n" for line in more), encoding="utf-8")
    own = ["recipe=back_translation", f"corpus.monolingual={tmp_path / 'more.xb'}", "recipe.filter=false"]
    return [*compared, *own]


def test_both_models_are_compared_and_the_better_one_is_handed_over(
    recipe: list[str], tmp_path: Path, command: Command, calls: Calls
) -> None:
    recipe = [each for each in recipe if not each.startswith("report.page")]
    found = command("mt-train", *recipe)
    assert found.code == 0, found.err
    assert calls == ["train", "train", "translate", "train"]
    steps = tmp_path / "run" / "steps"
    outcome = json.loads((steps / "outcome.json").read_text(encoding="utf-8"))["figures"]
    assert outcome["chosen"] in ("forward", "final")
    (comparison, *_) = outcome["tests"]["test"]
    assert comparison["difference"] == pytest.approx(comparison["b"]["value"] - comparison["a"]["value"])
    is_gain = comparison["difference"] > 0 and comparison["p_value"] < 0.05
    assert outcome["chosen"] == ("final" if is_gain else "forward")
    best = (tmp_path / "run" / "best" / "model.safetensors").read_bytes()
    assert best == (steps / outcome["chosen"] / "best" / "model.safetensors").read_bytes()
    kept = json.loads((steps / "synthetic.json").read_text(encoding="utf-8"))["figures"]["kept"]
    card = (tmp_path / "run" / "best" / "README.md").read_text(encoding="utf-8")
    assert f"back-translation: {kept} synthetic pairs of 30 lines of more.xb" in card
    assert f"{kept} synthetic pairs" in found.err
    # The mixed text has the real pairs, and the synthetic ones with their tag, which is one subword.
    config = (steps / "final" / "config.yaml").read_text(encoding="utf-8")
    assert "pairs-to-train" in config
    (line,) = [line for line in found.err.splitlines() if line.startswith("an epoch draws")]
    assert "pairs-to-train" in line
    assert line.endswith(f" of {kept}")
    assert (tmp_path / "run" / "report.html").is_file()
    # A model of 60 pairs is useless, and the last line says so.
    assert found.err.splitlines()[-1].startswith("This model is useless: ")
    told = json.loads((tmp_path / "run" / "provenance.json").read_text(encoding="utf-8"))
    assert told["recipe"]["monolingual"] == [str(tmp_path / "more.xb")]
    assert told["steps"]["synthetic"]["kept"] == kept
    # As it is, the model translates, and the same command again does nothing.
    assert command("mt-translate", tmp_path / "run", stdin=b"lantern kettle\n").out.count("\n") == 1
    calls.clear()
    again = command("mt-train", *recipe)
    assert (again.code, calls) == (0, [])
    assert again.err.count("done before") == 9


def test_its_steps_can_be_looked_at_first(recipe: list[str], tmp_path: Path, command: Command, calls: Calls) -> None:
    found = command("mt-train", "--check", *recipe)
    assert (found.code, calls) == (0, [])
    names = [line.split()[1] for line in found.err.splitlines() if line[:2].strip().isdigit()]
    assert names == [
        *("texts", "monolingual", "forward", "reverse", "check", "translated", "synthetic", "final", "outcome"),
    ]


@pytest.mark.slow
def test_a_model_of_both_directions_is_its_own_reverse(
    recipe: list[str], tmp_path: Path, command: Command, calls: Calls
) -> None:
    found = command("mt-train", *recipe, "corpus.both_directions=true")
    assert found.code == 0, found.err
    assert calls == ["train", "translate", "train"]
    config = yaml.safe_load((tmp_path / "run" / "steps" / "final" / "config.yaml").read_text(encoding="utf-8"))
    entries = [(Path(each["text"]).name, each["source"], each["target"]) for each in config["corpus"]["train"]]
    assert entries == [("train", "xa", "xb"), ("train", "xb", "xa"), ("pairs-to-train", "xa", "xb")]
    assert config["corpus"]["weights"] == [0.25, 0.25, 0.5]
    outcome = json.loads((tmp_path / "run" / "steps" / "outcome.json").read_text(encoding="utf-8"))["figures"]
    assert [*outcome["tests"]] == ["test.xa-xb"]


@pytest.mark.slow
def test_a_given_model_makes_the_sources(
    recipe: list[str], tmp_path: Path, trained: Path, command: Command, calls: Calls
) -> None:
    """It translates from xa into xb, so that it is the reverse of a model from xb into xa alone."""
    given = [*recipe, f"recipe.reverse={trained}"]
    # What is wrong with it is said by the process that looks at it.
    assert (command("mt-train", *given).code, calls) == (2, [])
    (tmp_path / "more.xb").write_text("".join(f"{source}\n" for source, _ in sentences(30, 77)), encoding="utf-8")
    exchanged = [each for each in given if not each.startswith(("corpus.source", "corpus.target"))]
    own = ["corpus.source=xb", "corpus.target=xa"]
    found = command("mt-train", *exchanged, *own)
    assert found.code == 0, found.err
    assert calls == ["train", "translate", "train"]


@pytest.mark.slow
@pytest.mark.parametrize("both", ["false", "true"])
def test_a_run_that_stands_is_not_trained_again(
    both: str, recipe: list[str], compared: list[str], tmp_path: Path, command: Command, calls: Calls
) -> None:
    both = f"corpus.both_directions={both}"
    test = f"corpus.test={tmp_path / 'corpus' / 'test'}"
    stands = [each for each in compared if not each.startswith(("run.dir=", "corpus.test="))]
    assert command("mt-train", *stands, both, test, f"run.dir={tmp_path / 'stands'}").code == 0
    calls.clear()
    forward = f"recipe.forward={tmp_path / 'stands'}"
    found = command("mt-train", *recipe, both, test, forward)
    assert found.code == 0, found.err
    assert calls.count("train") == (2 if both.endswith("false") else 1)
    outcome = json.loads((tmp_path / "run" / "steps" / "outcome.json").read_text(encoding="utf-8"))["figures"]
    assert outcome["tests"]
    # One that has seen other text says nothing by its scores.
    for other in ("corpus.valid=5", f"corpus.test={tmp_path / 'more'}"):
        (tmp_path / "more.xa").write_text((tmp_path / "more.xb").read_text("utf-8"), "utf-8")
        found = command("mt-train", *recipe, both, test, forward, other, f"run.dir={tmp_path / 'other'}")
        assert found.code == 2, found.err
        assert "was trained or tested on other text than" in found.err.splitlines()[-1]
    found = command("mt-train", *recipe, f"recipe.forward={tmp_path}")
    assert f"recipe.forward ({tmp_path}) is not the folder of a run that has ended with a test" in found.err


def test_a_useless_model_ends_the_recipe(tmp_path: Path) -> None:
    """Where trainer.updates was typed, that is what somebody wants."""
    verdict = {"level": "useless", "sentences": ["This model is useless: 60 pairs are too few."]}
    (tmp_path / "scores.json").write_text(json.dumps({"verdict": verdict}))
    said: list[str] = []
    check = check_useful(RecipeTask("x", [], said.append), "check", tmp_path).do
    assert check
    with pytest.raises(DataError, match=r"60 pairs are too few\. What it makes would teach nothing"):
        check()
    check = check_useful(RecipeTask("x", ["trainer.updates=9"], said.append), "check", tmp_path).do
    assert check
    assert check() == {"verdict": "useless"}
    assert said[0].startswith("warning: ")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["recipe.share=1"], "recipe.share (1) must be at least 0 and below 1"),
        (["recipe=back_translatoin"], "Did you mean 'back_translation'?"),
        (["recipe.monolingual=[]"], "corpus.monolingual=FILE"),
        (["corpus.both_directions=true", "recipe.reverse=runs/x"], "whose model is its own reverse"),
        (["corpus.temperature=2"], "joins all training texts: leave corpus.weights, corpus.temperature out"),
        # What only the last training would find is found before the first.
        (["tokenizer.type=word"], "tokenizer.symbols have no effect where words are whole"),
        (["metrics.bootstrap=0"], "compares two models, and metrics.bootstrap=0 leaves no way to"),
        (["run.init_from=runs/x"], "leave run.init_from out"),
    ],
)
def test_what_does_not_fit_is_one_line(
    settings: list[str], message: str, recipe: list[str], command: Command, calls: Calls
) -> None:
    kept = [each for each in recipe if each.partition("=")[0] not in (*map(key_of, settings), "corpus.monolingual")]
    monolingual = [] if "recipe.monolingual=[]" in settings else [each for each in recipe if "more.xb" in each]
    found = command("mt-train", *kept, *monolingual, *settings)
    assert found.code != 0
    assert message in found.err
    assert "Traceback" not in found.err


def key_of(setting: str) -> str:
    return setting.partition("=")[0]


def test_its_settings_alone_are_for_no_training(tiny: list[str], command: Command) -> None:
    found = command("mt-train", *tiny, "corpus.monolingual=more.de")
    assert found.code == 2
    assert "is for a recipe: name it, as in recipe=back_translation" in found.err


@pytest.mark.slow
def test_a_recipe_of_one_s_own(
    compared: list[str], tmp_path: Path, command: Command, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "support" / "plugins"))
    found = command("mt-train", *compared, "plugins=[my_recipe]", "recipe=twice")
    assert found.code == 0, found.err
    assert calls == ["train", "train"]
    seeds = [
        yaml.safe_load((tmp_path / "run" / "steps" / name / "config.yaml").read_text())["run"]["seed"]
        for name in ("first", "second")
    ]
    assert seeds == [1, 2]


def test_another_run_s_folder_is_no_recipe_s(
    recipe: list[str], begun: list[str], command: Command, calls: Calls
) -> None:
    """Its best/ would be replaced."""
    found = command("mt-train", *recipe)
    assert (found.code, calls) == (2, [])
    assert "has a run or a model of its own: choose another run.name or run.dir" in found.err


def test_typed_symbols_stay_beside_the_tag(recipe: list[str], tmp_path: Path, command: Command, calls: Calls) -> None:
    found = command("mt-train", "--check", *recipe, "tokenizer.symbols=['<br>']", "trainer.threads=3")
    assert found.code == 0, found.err
    task = RecipeTask("back_translation", [*recipe[:-3], "tokenizer.symbols=['<br>']", "trainer.threads=3"], print)
    step = task.train("final", "", [task.texts.train], symbols=["⟦bt⟧"])
    assert [word for word in step.command if word.startswith("tokenizer.symbols")] == [
        "tokenizer.symbols=['<br>','⟦bt⟧']"
    ]
    translated = task.translate("made", "", "model", tmp_path / "more.xb", task.direction.swapped, {})
    assert "decoding.threads=3" in translated.command


def test_the_better_model_has_the_higher_bleu(
    recipe: list[str], tmp_path: Path, command: Command, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is measured: lower TER and BLEU need not agree."""

    def compared(task: RecipeTask, before: str, after: str, metrics: MetricsConfig) -> dict[str, list[Comparison]]:
        gains = {"bleu": 9.0, "ter": 70.0, "exact": -50.0}
        scores = Score("", 10.0, None, "s"), Score("", 80.0, None, "s")
        return {"test": [Comparison(name, *scores, gains[name], 0.01, "s") for name in metrics.names]}

    monkeypatch.setattr(outcome, "_compare_steps", compared)
    found = command("mt-train", *recipe, "metrics.names=[exact,ter]")
    assert found.code == 0
    figures = json.loads((tmp_path / "run" / "steps" / "outcome.json").read_text(encoding="utf-8"))["figures"]
    assert figures["chosen"] == "final"
    assert "test: bleu 10.00 without" in found.err


def test_a_command_that_fails_in_the_end_does_not_keep_the_model_back(
    recipe: list[str], tmp_path: Path, command: Command, calls: Calls
) -> None:
    """It is called for each training, and fails once both are there. The sources are known to it."""
    record = tmp_path / "run" / "steps" / "outcome.json"
    script = f"metrics.command=cat {{source}} {{hypothesis}} > /dev/null; [ ! -e {record} ] && seq 8"
    found = command("mt-train", *recipe, "metrics.names=[exact]", script)
    assert found.code == 2
    assert "metrics.command ended with 1" in found.error
    assert command("mt-translate", tmp_path / "run", stdin=b"lantern kettle\n").out.count("\n") == 1
