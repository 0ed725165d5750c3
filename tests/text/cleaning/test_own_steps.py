"""Steps of cleaning of one's own, which a plugin registers."""

from functools import partial
from pathlib import Path

import pytest

from conftest import Command
from tolka.config.plugins import load_plugins
from tolka.data.shards import Shard, Task, work_on
from tolka.errors import ConfigError
from tolka.system.workers import call
from tolka.text.cleaning.cleaner import Tally, judge
from tolka.text.cleaning.steps import OWN_STEPS, CleaningConfig, own_modules
from tolka.text.direction import Direction
from tolka.text.pairs import Pair

PLUGINS = Path(__file__).parents[2] / "support" / "plugins"
OWN = CleaningConfig(own=["no_question"])
PAIRS = [Pair("Who?", "Wer?"), Pair("I.", "Ich."), Pair("", "x")]


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PLUGINS))
    load_plugins(["plugins=[my_steps]"])


def test_they_come_after_all_others_and_are_counted(plugin: None) -> None:
    tally = Tally()
    assert [*judge(PAIRS, OWN, Direction("en", "de"), tally)] == [Pair("I.", "de: Ich.")]
    assert tally.dropped == {"a question": 1, "blank source": 1}
    assert tally.changed == {"no_question": 1}


def test_worker_processes_have_them(plugin: None, tmp_path: Path) -> None:
    shard = Shard(tmp_path / "shard")
    shard.write(PAIRS)
    work = partial(work_on, task=Task(OWN, 100, frozenset()), modules=[*own_modules(OWN)])
    call(work, shard, lost="it ended with {}")
    assert shard.tally("cleaned").changed == {"no_question": 1}


def test_text_is_prepared_again_when_their_code_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugin: None
) -> None:
    assert own_modules(CleaningConfig()) == {}
    code = "from tolka.text.cleaning.steps import register_step\n@register_step('{}')\n"
    code += "def step(pair, direction):\n    return pair\n"
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("one", "two"):
        (tmp_path / f"{name}_step.py").write_text(code.format(name))
        load_plugins([f"plugins=[{name}_step]"])
    digests = own_modules(CleaningConfig(own=["one", "two", "no_question"]))
    assert [*digests] == ["my_steps", "one_step", "two_step"]
    assert len({*digests.values()}) == 3


def test_a_step_that_returns_nothing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OWN_STEPS, "nothing", lambda pair, direction: None)
    with pytest.raises(ConfigError, match=r"=\[nothing\]' returned None; a step returns the pair"):
        list(judge(PAIRS, CleaningConfig(own=["nothing"]), Direction("en", "de"), Tally()))


def test_a_step_that_nobody_knows_is_named(tiny: list[str], command: Command) -> None:
    with pytest.raises(ConfigError, match=r"cleaning\.own \(no_such\): no plugin has registered such a step"):
        list(judge(PAIRS, CleaningConfig(own=["no_such"]), Direction("en", "de"), Tally()))
    found = command("mt-train", *tiny, "cleaning.own=[no_such]")
    assert found.code == 2
    assert "no plugin has registered such a step: 'plugins=[my_steps]'" in found.err
