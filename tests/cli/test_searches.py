"""The searches and their options through mt-translate."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
LINES = b"ferry kettle pebble .\nwalnut .\n\nferry kettle pebble .\nvelvet copper orchid saddle .\n"


@pytest.mark.parametrize(
    "settings",
    [
        ["search=greedy", "search.no_repeat_ngram=2", "search.min_length=3"],
        ["search=beam", "search.length_normalization=plain", "search.n_best=3"],
        ["search=diverse", "search.groups=2", "search.beam_size=4", "search.diversity=0.7", "search.n_best=2"],
        ["search=sampling", "search.top_k=20", "search.top_p=0.9", "search.epsilon=0.001"],
    ],
)
def test_every_search_translates_line_by_line(command: Command, trained: Path, settings: list[str]) -> None:
    outcome = command("mt-translate", trained, *settings, "decoding.device=cpu", stdin=LINES)
    assert outcome.code == 0
    lines = outcome.out.split("\n")
    assert len(lines) == 6
    assert lines[0] == lines[3]
    assert [bool(line) for line in lines] == [True, True, False, True, True, False]


def test_a_sampled_line_does_not_depend_on_the_others(command: Command, trained: Path) -> None:
    settings = ["search=sampling", "search.seed=7", "search.max_length_extra=5"]
    together = command("mt-translate", trained, *settings, stdin=LINES).out.split("\n")
    for place, line in enumerate(LINES.decode().splitlines()):
        assert command("mt-translate", trained, *settings, stdin=f"{line}\n".encode()).out == f"{together[place]}\n"
    settings[1] = "search.seed=8"
    assert command("mt-translate", trained, *settings, stdin=LINES).out.split("\n") != together


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (["search=divers"], "unknown search 'divers'. Did you mean 'diverse'?"),
        (["search=diverse", "search.beam_size=5"], "search.beam_size (5) must be a multiple of search.groups (3)"),
        (["search.n_best=9"], "search.n_best (9) must be at most search.beam_size (5)"),
        (["search=sampling", "search.temperature=0"], "search.temperature is 0: search=greedy takes the most likely"),
        (["search=sampling", "search.beam_size=3"], "search.beam_size"),
    ],
)
def test_settings_that_do_not_fit(command: Command, trained: Path, settings: list[str], complaint: str) -> None:
    outcome = command("mt-translate", trained, *settings, stdin=LINES)
    assert outcome.code == 2
    assert complaint in outcome.error
