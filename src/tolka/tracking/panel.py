"""The live panel below the progress bar of a training; a log file has lines instead."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from tqdm import tqdm

from tolka.metrics.validation import Validation
from tolka.system.memory import memory_in_use
from tolka.system.number_format import number_text
from tolka.system.progress import erase, text_lines
from tolka.training.callbacks import Beginning, Callback, Ending

_HEIGHTS = "▁▂▃▄▅▆▇█"
_WIDTH = 12  # values in a curve


def curve(values: Sequence[float]) -> str:
    """Return a bar for each value: the lowest has the shortest bar, and the highest the longest."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    scale = (len(_HEIGHTS) - 1) / (high - low) if high > low else 0.0
    return "".join(_HEIGHTS[round(scale * (value - low))] for value in values)


class Panel(Callback):
    """Two lines: how training goes, and what the latest validation found, with the curves of both."""

    def __init__(self) -> None:
        self._lines: list[tqdm[Any]] = []
        self._losses: deque[float] = deque(maxlen=_WIDTH)
        self._bleu: deque[float] = deque(maxlen=_WIDTH)

    def on_start(self, beginning: Beginning) -> None:
        self._lines = text_lines(2)
        for line in beginning.history:
            self._add(line)

    def on_update(self, line: Mapping[str, Any], minutes_left: float) -> None:
        self._add(line)
        memory = ", ".join(f"{name.replace('_', ' ')} {size:.1f} GB" for name, size in memory_in_use().items())
        self._show(
            0,
            f"  at most {minutes_left:.1f} min left, loss {line['train_loss']:.3f} {curve(self._losses)}  "
            f"{line['tokens_per_second']:,.0f} tokens/s, rate {line['lr']:.2g}, {memory.replace('gpu memory', 'GPU')}",
        )

    def on_validation(self, line: Mapping[str, Any], result: Validation) -> None:
        self._add(line)
        # Without the signature of the score, which the line above the bar has.
        self._show(
            1,
            f"  validation at {line['update']}: loss {line['valid_loss']:.3f}, PPL {number_text(line['ppl'])}, "
            f"BLEU {line['bleu']:.2f} {curve(self._bleu)}",
        )

    def on_end(self, ending: Ending) -> None:
        erase(self._lines)

    def _add(self, line: Mapping[str, Any]) -> None:
        """Add a line of metrics.jsonl to the curves."""
        if "train_loss" in line:
            self._losses.append(line["train_loss"])
        elif "valid_loss" in line and "mean_of_updates" not in line:
            self._bleu.append(line["bleu"])

    def _show(self, number: int, text: str) -> None:
        if self._lines:
            self._lines[number].set_description_str(text)
