"""Names of classes, and what is proposed for one that nobody has registered."""

import pytest
from rows import each_row

from tolka.errors import ConfigError
from tolka.options.registry import Registry, plugins_of
from tolka.options.suggestions import did_you_mean, some_of


@each_row(
    ("word", "known", "said"),
    [
        ("lsmt", ["lstm", "gru"], " Did you mean 'lstm'?"),
        ("beam_siz", ["beam_size", "beam_sizes"], " Did you mean 'beam_size'? Or beam_sizes?"),
        ("zebra", ["gru", "lstm"], " Known: gru, lstm."),
    ],
)
def test_the_nearest_names_are_proposed(word: str, known: list[str], said: str) -> None:
    assert did_you_mean(word, known) == said


def test_of_many_names_some_are_shown() -> None:
    assert some_of(list("abcdefg")) == "a, b, c, d, e, f, g"
    assert some_of(list("abcdefgh"), "x --help") == "a, b, c, d, e, f and 2 more (x --help shows all)"


def test_a_name_is_registered_once_and_found_by_it() -> None:
    registry: Registry[object] = Registry("thing", "json")

    @registry.register("one")
    class One:
        pass

    assert (registry.names(), registry.get("one")) == (["one"], One)
    with pytest.raises(ConfigError, match="the thing 'one' is registered twice"):
        registry.register("one")(One)
    with pytest.raises(ConfigError, match=r"unknown thing 'on'\. Did you mean 'one'\?"):
        registry.get("on")
    with pytest.raises(ConfigError, match=r"the thing 'on' is a plugin's: add 'plugins=\[mine\]'"):
        registry.get("on", plugins_of({"plugins": ["mine"]}))
    assert plugins_of({"plugins": "mine"}) == []
