"""How long the steps of a recipe take on this machine, and how much room they need: measured before they begin."""

import math
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tolka.auto.rules import usual_share
from tolka.config.command_line import train_config, with_recipe
from tolka.errors import DataError
from tolka.recipes.steps import once
from tolka.run.data_check import check_with_page
from tolka.system.progress import say
from tolka.system.workers import call

_BEAM = 0.4  # of the tokens that training reads in a second, how many beam search writes: measured on a bilstm
_COPIES = 8  # of its weights that a training leaves: best/, last/ with two moments, and as much while they are replaced


@dataclass(frozen=True)
class Pace:
    """minutes: of a training on the pairs alone. lines_per_minute: that its model translates. bytes: that it leaves."""

    minutes: float
    pairs: int
    lines_per_minute: float
    bytes: float

    def training(self, pairs: float) -> float:
        """Return the minutes that a training on more pairs takes."""
        # Of more text, fewer passes are needed.
        return self.minutes * math.sqrt(max(pairs / self.pairs, 1.0))


def measure(settings: Sequence[str], folder: Path) -> Pace:
    """Time some updates of a training, once for a folder. TolkaError as it."""

    def timed() -> dict[str, Any]:
        found = call(_check, settings, is_command=True)
        if found["unfit"]:
            raise DataError(found["unfit"])
        pace, kept = found["pace"], found["kept"]["kept"]
        share = usual_share(found["chosen"]) if pace["at_plateau"] else 0.0
        minutes = min(pace["unlimited_minutes"] * share or pace["minutes"], pace["minutes"])
        tokens = found["pieces"]["target"]["total"] / kept
        lines = _BEAM * 60 * pace["tokens_per_second"] / tokens
        return asdict(Pace(minutes, kept, lines, 4.0 * _COPIES * pace["parameters"]))

    return Pace(**once(folder / "pace.json", [*settings], timed))


def _check(settings: Sequence[str]) -> dict[str, Any]:
    return check_with_page(train_config(with_recipe(settings), trains=False, say=say), say)[0]


def check_room(folder: Path, needed: float) -> None:
    """Raise DataError where a disk has less than these bytes free."""
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise DataError(
            f"{folder} has {free / 1e9:.1f} GB free, and the steps need some {needed / 1e9:.1f} GB: make room, or set "
            "run.dir to another disk"
        )
