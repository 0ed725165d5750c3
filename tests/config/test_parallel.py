"""Settings of trainer.parallel that do not go together."""

import pytest

from tolka.config.command_line import train_config
from tolka.errors import ConfigError


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (["optimizer=muon"], "optimizer=muon needs whole matrices: take adamw, adam or sgd"),
        (["batching.tokens=auto"], "batching.tokens=auto tries what fits in each process by itself: give a number"),
    ],
)
def test_what_fsdp_cannot_do(settings: list[str], complaint: str) -> None:
    """Asked for by name it is refused at once; `auto` may choose it later, when the size of the model is known."""
    with pytest.raises(ConfigError, match=complaint):
        train_config([*settings, "trainer.parallel=fsdp"])
    chosen = train_config(settings)
    with pytest.raises(ConfigError, match=complaint):
        chosen.check_fsdp()
