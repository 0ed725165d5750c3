"""The whole configuration of a training goes no further down than run/, and a trainer is given few things."""

import ast
import inspect

from test_layers import PACKAGE, RANKS
from tolka.training.trainer import Trainer


def named_in(source: str) -> set[str]:
    """The names that a file imports, annotates with or mentions in any other way."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom | ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Name | ast.Attribute):
            found.add(node.id if isinstance(node, ast.Name) else node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):  # "TrainConfig" as an annotation
            found.add(node.value)
    return found


def test_no_package_below_run_knows_the_whole_configuration() -> None:
    below = [room for room, rank in RANKS.items() if rank < RANKS["run"] and room != "config"]
    files = [path for room in below for path in (PACKAGE / room).rglob("*.py")]
    assert len(files) > 100
    know_it = [path for path in files if "TrainConfig" in named_in(path.read_text(encoding="utf-8"))]
    assert know_it == []


def test_mentions_are_seen() -> None:
    for text in (
        "from a import TrainConfig",
        "x: 'TrainConfig'",
        "import a\nx: a.TrainConfig",
        "def f(c: TrainConfig): 0",
    ):
        assert "TrainConfig" in named_in(text)


def test_a_trainer_is_given_at_most_eight_things() -> None:
    assert len(inspect.signature(Trainer).parameters) <= 8
