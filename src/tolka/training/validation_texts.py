"""The translations of each validation, as files, and samples of the last one."""

from collections.abc import Mapping
from typing import Any

from tolka.metrics.validation import Validation
from tolka.training.callbacks import Callback
from tolka.training.run_folder import RunFolder


class ValidationTexts(Callback):
    """Writes the translations of each validation into samples/. samples: those to show of the last one, as text."""

    def __init__(self, run: RunFolder) -> None:
        self._run = run
        self.samples = ""

    def on_validation(self, line: Mapping[str, Any], result: Validation) -> None:
        mean = "-mean" if "mean_of_updates" in line else ""
        text = "".join(f"{translation}\n" for translation in result.translations)
        path = self._run.leave(f"samples/{line['update']:07d}{mean}.txt", text)
        samples = [f"samples of the last validation ({path}):", *map(str, result.samples)]
        self.samples = "\n".join(samples) if result.samples else ""
