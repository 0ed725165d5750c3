"""Several models that translate together, through the commands."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tolka.model_directory.read import load_model
from tolka.translation.opening import open_model

Command = Callable[..., Any]


@pytest.fixture
def other(command: Command, tiny: list[str], tmp_path: Path) -> Path:
    """A model of another seed and depth, with the tokenizer of `trained`: the text is the same."""
    assert command("mt-train", *tiny, "run.seed=2", "model.layers=2").code == 0
    return tmp_path / "run"


def nll(command: Command, models: str, corpus: Path, *settings: str) -> float:
    files = [f"source={corpus / 'test.xa'}", f"reference={corpus / 'test.xb'}"]
    outcome = command("mt-eval", models, *files, "--json", "metrics.bootstrap=0", "search=greedy", *settings)
    assert outcome.code == 0
    return float(json.loads(outcome.out)["perplexity"]["nll"])


def test_two_models_are_less_surprised_than_one_is_on_average(
    command: Command, corpus: Path, trained: Path, other: Path
) -> None:
    """The mean of probabilities: by Jensen's inequality its log is never below the mean of the logs."""
    alone = [nll(command, str(model), corpus) for model in (trained, other)]
    together = nll(command, f"{trained},{other}", corpus)
    assert alone[0] != alone[1]
    assert together < sum(alone) / 2


def test_a_model_beside_itself_says_what_it_says_alone(command: Command, trained: Path) -> None:
    text = b"ferry kettle pebble\nwalnut\n"
    alone = command("mt-translate", trained, stdin=text)
    assert alone.out == command("mt-translate", f"{trained},{trained}", stdin=text).out
    assert [*alone.out.splitlines()] == open_model([trained, trained])(text.decode().splitlines())


def test_models_that_do_not_fit_are_named(
    command: Command, corpus: Path, tiny: list[str], trained: Path, tmp_path: Path
) -> None:
    """Another tokenizer, and the other direction."""
    swapped = [setting for setting in tiny if not setting.startswith(("corpus.source", "corpus.target"))]
    directions = ["corpus.source=xb", "corpus.target=xa", "tokenizer.vocab_size=310"]
    assert command("mt-train", *swapped, *directions).code == 0
    outcome = command("mt-translate", f"{trained},{tmp_path / 'run'}", stdin=b"ferry\n")
    assert (outcome.code, outcome.out) == (1, "")
    assert (
        "cannot translate together: the tokenizers differ (ids mean other subwords), one translates from xa to xb, the "
        "other back"
    ) in outcome.error
    mean = command("mt-train", "average", trained, tmp_path / "run", "-o", tmp_path / "mean")
    assert (mean.code, "one translates from xa to xb, the other back" in mean.error) == (1, True)


def test_lines_are_split_to_what_every_member_was_trained_on(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained / "best", tmp_path / "other")
    longest = load_model(trained).sources.longest
    for changed in (longest - 2, longest + 2):
        manifest = json.loads((tmp_path / "other" / "manifest.json").read_text())
        (tmp_path / "other" / "manifest.json").write_text(json.dumps({**manifest, "longest_source": changed}))
        assert open_model([trained, tmp_path / "other"]).max_length == min(longest, changed)


@pytest.mark.parametrize(
    ("names", "code", "complaint"),
    [
        ("{0},", 2, "has an empty name in it; models are joined as in runs/a,runs/b"),
        ("{0},nowhere", 1, "nowhere: there is no such model directory"),
        ("{0}, ~/nowhere", 1, f"{Path.home() / 'nowhere'}: there is no such model directory"),
    ],
)
def test_a_list_with_a_hole(command: Command, trained: Path, names: str, code: int, complaint: str) -> None:
    outcome = command("mt-translate", names.format(trained), stdin=b"ferry\n")
    assert outcome.code == code
    assert complaint in outcome.error


def test_a_model_among_the_files_is_told_apart(command: Command, trained: Path) -> None:
    outcome = command("mt-translate", trained, trained)
    assert (outcome.code, "models that translate together" in outcome.error) == (1, True)


def test_a_folder_with_a_comma_in_its_name_is_one_model(command: Command, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "a,b").symlink_to(trained)
    assert command("mt-translate", tmp_path / "a,b", stdin=b"ferry\n").code == 0
