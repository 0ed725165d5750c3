"""Settings of mt-translate and mt-eval: the values that Hydra would compose, without Hydra or torch."""

import random
import subprocess
import sys

import hydra
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Quote, QuotedString
from omegaconf import OmegaConf
from rows import each_row

from tolka.config.compose import compose_plainly
from tolka.config.typed import quote_setting, quote_value, value_of
from tolka.errors import ConfigError
from tolka.system.package_data import config_dir

SETTINGS = [
    [],
    ["search=sampling", "search.temperature=0.7", "search.top_k=10", "search.n_best=3"],
    ["search=diverse", "decoding.split=never", "output.resume=True"],
    ["search.beam_size=4", "search.beam_size=1_0", "search.length_penalty=0", "metrics.names=[bleu, 'chrf']"],
    ["input.prefix=a/b(1)=말.txt", "search.glossary='a, b'", "decoding.device=cuda:1"],
]


def test_they_are_what_hydra_composes() -> None:
    base = {"version_base": "1.3"} if hydra.__version__.startswith("1.3.") else {}
    with hydra.initialize_config_dir(str(config_dir()), **base):
        for settings in SETTINGS:
            name = "evaluate" if any(each.startswith("metrics") for each in settings) else "translate"
            composed = hydra.compose(name, [quote_setting(each) for each in settings])
            assert repr(compose_plainly(name, settings)) == repr(OmegaConf.to_container(composed))


def test_the_files_have_nothing_that_takes_hydra() -> None:
    for name in ("translate", "evaluate"):
        assert "${" not in repr(compose_plainly(name, []))


VALUES = [
    *("0", "-3", "+7", "1_000", "1e3", ".5", "-2.5e-3", "inf", "-INF", "true", "FALSE", "null", "no", "007x", "a b "),
    *("''", r"'it\'s'", r"'a\\'", r"'a\b\\\'c'", '"x, [y]"', "[]", "[1,two,'3, 4',[5,null]]", "a/b-c.d", "cuda:0"),
]


def test_a_value_is_read_as_hydra_reads_it() -> None:
    for text in VALUES:
        by_hydra = OverridesParser.create().parse_override(f"some.key={text}").value()
        assert repr(value_of("some.key", text)) == repr(by_hydra)  # 1 is not 1.0, nor True


def test_a_text_in_quotes_is_read_as_it_was() -> None:
    characters = random.Random(1)
    for length in range(200):
        text = "a" + "".join(characters.choices("ab'\\\" $=(,]", k=length % 9))
        assert quote_value(text) == QuotedString(text, Quote.single).with_quotes()
        assert value_of("run.name", quote_value(text)) == text


@each_row(
    ("settings", "complaint"),
    [
        (["search=greedy", "search.beam_size=3"], "the chosen search has no key search.beam_size; "),
        (["search=mine"], "unknown search 'mine'"),
        (["search.beam_size=3,5"], "has several values where one is expected"),
        (["search.beam_size=[3"], "cannot read 'search.beam_size=[3'"),
        (["search=beam search.n_best=2"], "has several settings"),
        (["++search.beam_size=3"], "settings are key=value here, without ++"),
        (["output.name=x"], "unknown key 'output.name'"),
        (["output=default", "search.banned=\ud800", "search.seed=\ud800"], "is not UTF-8"),
    ],
)
def test_complaints(settings: list[str], complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        compose_plainly("translate", settings)
    assert complaint in str(caught.value)


def test_neither_hydra_nor_torch_is_imported() -> None:
    code = (
        "import sys; from tolka.config.translate_command import translate_config;"
        "translate_config(['search=greedy', 'decoding.threads=1']); "
        "sys.exit('hydra' in sys.modules or 'omegaconf' in sys.modules or 'torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
