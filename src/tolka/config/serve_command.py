"""From the settings typed for mt-serve to its configuration; needs no torch."""

from collections.abc import Sequence

from tolka.config.compose import compose_plainly
from tolka.config.plugins import load_plugins
from tolka.config.translate_command import with_long_keys
from tolka.config.translate_schema import TRANSLATE_GROUPS
from tolka.jobs.options import InputConfig, OutputConfig, TranslateConfig
from tolka.serve.options import LimitsConfig
from tolka.system.progress import Say, silent


def serve_config(overrides: Sequence[str], say: Say = silent) -> tuple[TranslateConfig, LimitsConfig]:
    """Return the configuration of mt-serve: of the translator, and the limits."""
    groups = TRANSLATE_GROUPS.build(compose_plainly("serve", with_long_keys(load_plugins(overrides, say))))
    limits = groups.pop("limits")
    return TranslateConfig(**groups, input=InputConfig(), output=OutputConfig()), limits
