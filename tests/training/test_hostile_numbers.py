"""Every numeric setting takes a number or refuses it in one line, however large, small or odd; never a hang."""

import dataclasses
import math
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from rows import each_row

from tolka.config.schemas import _CLASSES, REGISTRIES, build_groups
from tolka.data.mixture import Mixture
from tolka.errors import ConfigError, TolkaError
from tolka.models.auto import AutoOptions
from tolka.models.base import ModelConfig
from tolka.models.rnn.config import RnnConfig
from tolka.models.transformer.config import TransformerConfig
from tolka.optim.schedules.base import SchedulerConfig
from tolka.options.parsing import MOST_FLOAT, MOST_INT
from tolka.search.base import SearchConfig
from tolka.training.memory import check_size, copies_of_weights

Command = Callable[..., Any]
NUMBERS = [0, -1, 1, MOST_INT, 10**28, 10**5000, 1e308, -1e308, MOST_FLOAT, 1e-38, 1e-320]
NUMBERS += [math.nan, math.inf, -math.inf, 0.5, 10**12]


def groups() -> dict[str, tuple[str, type]]:
    """'search=beam' or 'trainer' -> the group and its dataclass."""
    kinds = {
        f"{group}={name}": (group, found.get(name)) for group, found in REGISTRIES.items() for name in found.names()
    }
    return {**kinds, **{group: (group, found) for group, found in _CLASSES.items()}}


def numeric_keys(found: type) -> dict[str, bool]:
    """Names, and whether each is a list of numbers."""
    hints = {each.name: typing.get_type_hints(found)[each.name] for each in dataclasses.fields(found)}
    lists = {name: kind in (list[int], list[float]) for name, kind in hints.items()}
    return {name: lists[name] for name, kind in hints.items() if lists[name] or kind in (int, float)}


def use(config: Any) -> None:
    """What would be done with it first, where a number could make it fail or never end."""
    if isinstance(config, AutoOptions):
        return  # it is replaced before anything is built
    if isinstance(config, ModelConfig):
        check_size(config.sized(300, 300, True), (300, 300, True), torch.device("cpu"))
    elif isinstance(config, SearchConfig):
        config.limits(torch.tensor([1, 5000]))
        getattr(config, "penalty", float)(10**6)
    elif isinstance(config, SchedulerConfig):
        rates = [config.paced(update, 0.5, 20000).rate(update, 0.001) for update in (1, 2, 20000, 10**9)]
        assert all(map(math.isfinite, rates))
    elif hasattr(config, "temperature") and hasattr(config, "weights"):
        Mixture.of([3, 4], config.weights, config.temperature)
    elif hasattr(config, "lr"):
        weights = RnnConfig(d_model=4, share_embeddings="none").build(9, 9, True)
        optimizer = config.build(weights)
        for weight in weights.parameters():
            weight.grad = torch.ones_like(weight)
        optimizer.step()


@pytest.mark.slow
@each_row("kind", sorted(groups()))
def test_no_number_is_too_odd_for_a_setting(kind: str) -> None:
    group, found = groups()[kind]
    base: Mapping[str, Any] = {"name": kind.partition("=")[2]} if "=" in kind else {}
    if kind.startswith("corpus"):
        base = {**base, "source": "xa", "target": "xb", "train": ["a", "b"], "valid": "v"} | (
            {"path": "p"} if "hub" in kind else {}
        )
        base = {key: value for key, value in base.items() if key in {field.name for field in dataclasses.fields(found)}}
    for key, is_list in numeric_keys(found).items():
        for number in NUMBERS:
            complaint = ""
            try:
                use(build_groups({group: {**base, key: [number, number] if is_list else number}})[group])
            except TolkaError as error:
                complaint = str(error)
            assert not complaint or key in complaint or " parameters, " in complaint
            assert "\n" not in complaint
            assert len(complaint) < 1000


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        (
            f"model.d_model={10**28}",
            r"model.d_model (10000000000000000000000000000) must be a whole number, at most 2**62",
        ),
        (f"model.layers={10**28}", "model.layers"),
        ("metrics.bootstrap=100001", "metrics.bootstrap (100001) must be 0 (no intervals) or at least 40, and at most"),
        ("model.layers=1000000", "model.layers (1000000) must be at most 1000"),
        ("optimizer.eps=1e308", "optimizer.eps (1e+308) must be a number from 1.18e-38 to 3.4e+38, or 0"),
        (
            f"run.seed={'9' * 5000}",
            "cannot read 'run.seed=99999999999999999999",
        ),
        (f"trainer.max_minutes={10**400}", "trainer.max_minutes (1000"),
    ],
)
def test_on_the_command_line(command: Command, tiny: list[str], setting: str, complaint: str) -> None:
    outcome = command("mt-train", *tiny, setting)
    assert outcome.code == 2
    assert complaint in outcome.error


def test_a_model_that_no_machine_has_room_for_is_refused_before_it_is_built(command: Command, tiny: list[str]) -> None:
    outcome = command("mt-train", *tiny, "model.d_model=1048576", "model.heads=2")
    assert outcome.code == 2
    assert "GB of weights alone, and cpu has" in outcome.error
    with pytest.raises(ConfigError, match=r"lower model\.d_model or model\.layers"):
        check_size(RnnConfig(d_model=2**20), (300, 300, True), torch.device("cpu"))


def test_a_model_whose_training_exceeds_the_memory_is_told_what_would_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adam's two moments and the gradients are three times the weights; adapters need none of them."""
    config = TransformerConfig(d_model=64, heads=4, layers=1)
    count = config.build(300, 300, True).parameter_count()
    monkeypatch.setattr("tolka.training.memory.total_memory_bytes", lambda: 3 * 4 * count)
    sizes = (300, 300, True), torch.device("cpu")
    with pytest.raises(ConfigError, match=r"gradients.*optimizer=adafactor keeps.*lora_rank=8.*languages=\["):
        check_size(config, *sizes, copies_of_weights("adamw", trains_all=True))
    check_size(config, *sizes, copies_of_weights("adafactor", trains_all=True))
    check_size(config, *sizes, copies_of_weights("adamw", trains_all=False))
    with pytest.raises(ConfigError, match=r"optimizer keeps, and trainer\.memory allows 0\.0 GB"):
        check_size(config, *sizes, copies_of_weights("adamw", trains_all=True), most=3 * 4 * count)


def test_the_shortest_training_leaves_a_model(command: Command, tiny: list[str], tmp_path: Path) -> None:
    """It ended before its first update, and then missed best/."""
    assert (
        "trainer.max_minutes (1e-320) must be a number from"
        in command("mt-train", *tiny, "trainer.max_minutes=1e-320").error
    )
    outcome = command("mt-train", *tiny, "trainer.max_minutes=1e-30")
    assert outcome.code == 0
    assert "training ends at update 1: trainer.max_minutes (1e-30) are over" in outcome.err
    assert (tmp_path / "run" / "best" / "manifest.json").is_file()
