"""Simple settings are composed without Hydra, to the same values and types; all others are left to it."""

import subprocess
import sys

import pytest

from tolka.config import compose as composing
from tolka.config.compose import compose
from tolka.config.plain_compose import plainly_composed

SIMPLE = [
    [],
    ["search=greedy"],
    ["search=diverse"],
    ["search=mbr"],
    ["search=sampling", "search.temperature=0.7", "search.top_k=10", "search.n_best=3"],
    ["search.beam_size=4", "search.length_penalty=0", "search.length_normalization=plain"],
    ["decoding.threads=2", "decoding.backend=auto", "decoding.device=cpu", "decoding.split=never"],
    ["output.resume=true", "output.alignments=true", "input.prefix=some/file-1.txt"],
    ["search.glossary=terms.tsv", "input.column=2"],
]
LEFT_TO_HYDRA = [
    ["search.beam_size=1e1"],
    ["search.beam_size=010"],
    ["search.beam_size=null"],
    ["search.length_penalty=inf"],
    ["decoding.device=cuda:1"],
    ["input.prefix='a b'"],
    ["input.prefix=a${b}"],
    ["+search.beam_size=3"],
    ["search.beam_size=3", "search.beam_size=4"],
    ["search=mine"],
    ["search=greedy", "search.beam_size=3"],
    ["unknown.key=1"],
    ["input.prefix="],
    ["output.resume=True"],
]


@pytest.mark.parametrize("settings", SIMPLE)
def test_simple_settings_are_what_hydra_composes(settings: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    plain = plainly_composed("translate", settings)
    assert plain is not None
    monkeypatch.setattr(composing, "plainly_composed", lambda name, overrides: None)
    by_hydra = compose("translate", settings)
    assert repr(plain.values) == repr(by_hydra.values)  # 1 is not 1.0, nor True
    assert plain.choices == by_hydra.choices


@pytest.mark.parametrize("settings", LEFT_TO_HYDRA)
def test_other_settings_are_left_to_hydra(settings: list[str]) -> None:
    assert plainly_composed("translate", settings) is None


def test_the_files_have_nothing_that_takes_hydra() -> None:
    for name in ("translate", "evaluate"):
        plain = plainly_composed(name, [])
        assert plain is not None
        for values in plain.values.values():
            assert "defaults" not in values
            assert "${" not in repr(values)


def test_simple_settings_do_not_import_hydra_or_torch() -> None:
    code = (
        "import sys; from tolka.config.translate_command import translate_config;"
        "translate_config(['search=greedy', 'decoding.threads=1']); "
        "sys.exit('hydra' in sys.modules or 'torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
