"""What is trained, and in how large batches, so that it fits into memory."""

import pytest

from tolka.auto.memory import MEMORY, ModelSize, choose_memory
from tolka.errors import ConfigError

NLLB = ModelSize(615_000_000, {"target_embedding": 262_000_000}, 1024)


def chosen(gigabytes: float, is_open: tuple[str, ...] = MEMORY, trained: str = "all") -> dict[str, object]:
    return {each.key: each.value for each in choose_memory(NLLB, trained, 4096, 257, 2, 1e9 * gigabytes, is_open)}


def test_the_most_that_fits_is_trained() -> None:
    """Batches are divided first, which changes no update; then the subwords stay as they are; then all but adapters."""
    assert chosen(1000) == {}
    divided = chosen(20)
    assert divided["batching.tokens"] * divided["trainer.accumulate"] == 2 * 4096  # type: ignore[operator]
    assert divided.keys() == {"batching.tokens", "trainer.accumulate"}
    assert chosen(12)["finetuning.freeze"] == ["target_embedding"]
    assert chosen(8)["finetuning.lora_rank"] == 32
    assert "finetuning.freeze" not in chosen(8)


def test_what_is_typed_stays() -> None:
    kept = chosen(12, MEMORY[2:], "layers")
    assert kept.keys() == {"batching.tokens", "trainer.accumulate"}
    with pytest.raises(ConfigError, match=r"615,000,000 parameters takes about \d+ GB, and there are 8 .*freeze"):
        chosen(8, MEMORY[2:])
    with pytest.raises(ConfigError, match=r"even with adapters alone, and there are 2 "):
        chosen(2)
    assert "batching.tokens" not in chosen(40, MEMORY[:2])
