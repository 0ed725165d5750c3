"""From the settings typed for mt-translate and mt-serve to their configurations; needs no torch."""

from collections.abc import Mapping, Sequence

from tolka.config.compose import compose_plainly
from tolka.config.plugins import load_plugins
from tolka.config.translate_schema import TRANSLATE_GROUPS
from tolka.jobs.options import InputConfig, OutputConfig, TranslateConfig
from tolka.serve.options import LimitsConfig
from tolka.system.progress import Say, silent

_SHORT_KEYS = {
    "source": "decoding.source",
    "target": "decoding.target",
    "alignments": "output.alignments",
    "resume": "output.resume",
    "search.prefix": "input.prefix",
}
EVALUATE_KEYS = _SHORT_KEYS | {key: f"files.{key}" for key in ("source", "hypothesis", "reference", "language")}
"""Those of mt-eval, where a source is a file."""


def translate_config(overrides: Sequence[str], say: Say = silent) -> TranslateConfig:
    """Return the configuration of mt-translate; alignments=true is short for output.alignments=true, and so on."""
    values = compose_plainly("translate", with_long_keys(load_plugins(overrides, say)))
    return TranslateConfig(**TRANSLATE_GROUPS.build(values))


def serve_config(overrides: Sequence[str], say: Say = silent) -> tuple[TranslateConfig, LimitsConfig]:
    """Return the configuration of mt-serve: of the translator, and the limits."""
    groups = TRANSLATE_GROUPS.build(compose_plainly("serve", with_long_keys(load_plugins(overrides, say))))
    limits = groups.pop("limits")
    return TranslateConfig(**groups, input=InputConfig(), output=OutputConfig()), limits


def with_long_keys(overrides: Sequence[str], short: Mapping[str, str] = _SHORT_KEYS) -> list[str]:
    """Expand the keys of mt-translate, or of a command with its own (`short`), that have short names."""
    settings = (override.partition("=") for override in overrides)
    return [short.get(key, key) + equals + value for key, equals, value in settings]
