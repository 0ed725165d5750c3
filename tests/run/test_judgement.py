"""The verdict that a training leaves in its folder."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from rows import each_row

from tolka.evaluation.perplexity import Perplexity
from tolka.evaluation.tester import TestResult
from tolka.evaluation.verdict import verdict
from tolka.evaluation.verdict_evidence import Evidence
from tolka.metrics.scores import Score
from tolka.metrics.significance import Comparison
from tolka.run.judgement import forgotten_tests, shift_in_words, weakest_test
from tolka.run.next_commands import continuation, more_text_command
from tolka.text.direction import Direction
from tolka.text.pairs import Pair, PairSource
from tolka.training.options import TrainerConfig
from tolka.training.state import TrainState


def test_the_verdict_follows_from_its_figures_and_stands_on_the_card(trained: Path) -> None:
    scores = json.loads((trained / "best" / "scores.json").read_text("utf-8"))
    stored = scores["verdict"]
    again = verdict(Evidence(**stored["figures"]))
    assert (again.level, again.cause, again.sentences) == (stored["level"], stored["cause"], stored["sentences"])
    assert stored["sentences"][0] in (trained / "best" / "README.md").read_text("utf-8")
    # As the validation measured it, in batches and from one pass over them.
    assert stored["figures"]["valid_loss"] == pytest.approx(scores["validation"]["valid_loss"], rel=1e-3)
    assert stored["figures"]["bleu"] == scores["test"]["test"]["metrics"][0]["score"]


@each_row(
    ("options", "state", "expected"),
    [
        ({"updates": 1000}, {"update": 1000}, "with trainer.updates=2000 goes on for about 10 minutes"),
        ({"updates": 0, "epochs": 5}, {"update": 900}, "with trainer.epochs=10 goes on for about 10 minutes"),
        ({"updates": 50}, {"update": 50}, "with trainer.updates=1000 goes on for about 190 minutes"),
        ({"max_minutes": 10.0}, {"update": 3000}, "the same command with trainer.max_minutes=20 goes on"),
        ({"max_minutes": 10.0}, {"update": 2}, "the same command with trainer.max_minutes=5000 goes on"),
        (
            {"max_minutes": 10.1, "epochs": 5},
            {"update": 3000},
            "the same command with trainer.max_minutes=20.2 goes on",
        ),
        ({"updates": 1000, "epochs": 5}, {"update": 1000}, "with trainer.updates=2000 goes on for about 10 minutes"),
        ({"updates": 1000, "patience": 0}, {"update": 1000, "plateau": 600}, "goes on for about 10 minutes"),
        ({"patience": 4}, {"update": 900, "plateau": 600}, "another run with trainer.patience=8 waits for longer"),
        (
            {"patience": 4, "max_minutes": 10},
            {"update": 900, "plateau": 600},
            "another run with trainer.patience=8 trainer.max_minutes=20 waits for longer",
        ),
        ({"patience": 4}, {"update": 900, "stale": 4}, "another run with trainer.patience=8 waits for longer"),
    ],
    ids=str,
)
def test_how_a_training_would_go_on(options: dict[str, float], state: dict[str, int], expected: str) -> None:
    """By what has ended it, after ten minutes."""
    words, command = continuation(TrainerConfig(**options), TrainState(**state, seconds=600.0))  # type: ignore[arg-type]
    assert words.endswith(expected)
    option = "--rerun" if "patience=8" in expected else "--resume"
    setting = " ".join(word for word in words.split() if word.startswith("trainer."))
    assert command == f"mt-train {option} {{run}} {setting}"


def test_after_the_rate_has_fallen_another_run_is_to_have_it_fall_later() -> None:
    """Going on would stay at the lowest rate."""

    def said(horizon: int, **options: float) -> tuple[str, str]:
        return continuation(TrainerConfig(**options), TrainState(update=500, seconds=600.0), horizon)  # type: ignore[arg-type]

    assert said(500, updates=500) == (
        "another run with trainer.updates=1000 scheduler.horizon=1000 for about 20 minutes",
        "mt-train --rerun {run} trainer.updates=1000 scheduler.horizon=1000",
    )
    assert said(500, epochs=4)[1] == "mt-train --rerun {run} trainer.epochs=8 scheduler.horizon=1000"
    assert said(400, max_minutes=10)[1] == "mt-train --rerun {run} trainer.max_minutes=20 scheduler.horizon=1000"
    # Whatever else would end it first is raised, too.
    assert said(400, max_minutes=10, updates=700)[1] == (
        "mt-train --rerun {run} trainer.max_minutes=20 trainer.updates=1000 scheduler.horizon=1000"
    )
    assert said(500, updates=500, max_minutes=15)[1] == (
        "mt-train --rerun {run} trainer.updates=1000 trainer.max_minutes=20 scheduler.horizon=1000"
    )
    assert said(501, updates=500)[1] == "mt-train --resume {run} trainer.updates=1000"


def test_what_to_type_for_more_text_and_for_a_model_to_begin_with() -> None:
    def calls(command: str) -> list[dict[str, str]]:
        return [{"command": command}, {"command": "mt-train other=1"}]

    typed = "mt-train corpus=files corpus.source=en corpus.train=a b=1 run.name=x model=lstm 'corpus.valid=[b c,d]'"
    assert more_text_command(calls(typed), "x") == (
        "mt-train corpus=files corpus.source=en 'corpus.train=[a,MORE]' b=1 run.name=x-more model=lstm "
        "'corpus.valid=[b c,d]'"
    )
    assert "'corpus.train=[a,{text: b},MORE]'" in more_text_command(calls("mt-train 'corpus.train=[a,{text: b}]'"), "x")
    # What let it learn its text by heart is not typed again.
    assert "dropout" not in more_text_command(calls("mt-train corpus.train=a model.dropout=0.0"), "x")
    assert "model.dropout=0.05" in more_text_command(calls("mt-train corpus.train=a model.dropout=0.05"), "x")
    # Where nobody typed it at a terminal, it goes on from the model itself.
    for other in ([], calls("script.py a=1"), calls("mt-train --rerun runs/a"), calls("mt-train experiment=sample")):
        assert more_text_command(other, "x").startswith("mt-train run.init_from={run} corpus=files corpus.train=MORE ")


def a_result(name: str, chrf: float, *direction: str, changes: Sequence[Comparison] = ()) -> TestResult:
    scores, perplexity = [Score("BLEU", 1.0, None, ""), Score("chrF2", chrf, None, "")], Perplexity(1.0, 1, 1, 1, 1, 0)
    return TestResult(name, Direction(*direction), False, scores, perplexity, 1, 1.0, changes=list(changes))


def test_what_is_forgotten_is_worse_by_a_point_and_not_by_chance() -> None:
    def result(name: str, before: float, after: float, p: float) -> TestResult:
        a, b = (Score("BLEU", value, None, "") for value in (before, after))
        return a_result(name, 1.0, "en", "de", changes=[Comparison("BLEU", a, b, after - before, p, "")])

    old = result("old", 14.1, 10.1, 0.001)
    assert forgotten_tests([old]) == [("old", "BLEU", 14.1, 10.1)]
    others = [("a", 14.1, 13.5, 0.001), ("b", 14.1, 10.1, 0.2), ("c", 1.0, 9.0, 0.001)]
    assert forgotten_tests([*(result(*each) for each in others), a_result("d", 1.0, "en", "de")]) == []


class Written(PairSource):
    """Pairs with sides of these lengths."""

    name = "data/train"

    def __init__(self, source: npt.NDArray[np.int64], target: npt.NDArray[np.int64]) -> None:
        self._lengths = zip(source.tolist(), target.tolist(), strict=True)

    def read(self) -> Iterator[Pair]:
        return (Pair("a" * source, "b" * target) for source, target in self._lengths)

    def fingerprint(self) -> str:
        return ""

    def count(self) -> int:
        return 0


def test_where_the_sides_of_the_training_text_stop_to_be_parallel() -> None:
    """By the text's own numbers; several texts of unlike length, behind each other, are parallel."""
    draw = np.random.default_rng(1)
    source = draw.integers(2, 40, 4000)
    target = np.maximum(1, source + draw.integers(-1, 2, 4000))
    words = draw.integers(3, 9, 500), draw.integers(3, 9, 500)  # of a dictionary, whose lengths do not correlate
    assert shift_in_words([Written(source, target), Written(*words)]) == ""
    assert shift_in_words([Written(*map(np.concatenate, zip((source, target), words, strict=True)))]) == ""
    found = shift_in_words([Written(*words), Written(source, np.concatenate([target[:1500], target[1501:], [9]]))])
    assert re.match(r"data/train, pairs 1\d\d\d to 4000 are not parallel: their lengths correlate by ", found)
    assert re.search(r", and near pair 1\d\d\d the source has a line too many, or the target too few$", found)


def test_the_verdict_is_on_the_weakest_direction_that_was_trained() -> None:
    """A direction that is tested to see what is forgotten does not decide, however low its score is."""
    new, back, old = Direction("en", "tr"), Direction("tr", "en"), Direction("en", "de")
    tests = [
        a_result(name, chrf, *direction)
        for name, direction, chrf in (("a", old, 1.0), ("b", new, 30.0), ("c", back, 20.0), ("d", back, 2.0))
    ]
    assert weakest_test(tests, [new, back]).name == "c"
    assert weakest_test(tests, [new]).name == "b"
    assert weakest_test(tests[:1], [new]).name == "a"
