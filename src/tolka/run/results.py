"""What a training leaves in its folder for people: translations, plots, the report page and its sentences."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tolka.config.schemas import TrainConfig
from tolka.engines.options import DecodingConfig
from tolka.engines.torch_engine import TorchEngine
from tolka.errors import ConfigError, TolkaError
from tolka.metrics.validation import Validation
from tolka.model_directory.read import load_model
from tolka.report.attention import AttentionFolder
from tolka.report.page import write_page
from tolka.report.plots import gradient_flow_curves, learning_curves
from tolka.report.runs import SHOWN, read_run
from tolka.run.inputs import Inputs
from tolka.text.pairs import Pair
from tolka.training.callbacks import Callback, Ending
from tolka.training.run_folder import RunFolder
from tolka.translation.attention_maps import AttentionReader
from tolka.translation.translator import Translator

_SHARES = (0.1, 0.5, 0.9)  # of the sentences that are shorter than those shown


class ValidationTexts(Callback):
    """Writes the translations of each validation into samples/, and shows some of the last one at the end."""

    def __init__(self, run: RunFolder) -> None:
        self.run = run
        self._shown = ""

    def on_validation(self, line: Mapping[str, Any], result: Validation) -> None:
        mean = "-mean" if "mean_of_updates" in line else ""
        text = "".join(f"{translation}\n" for translation in result.translations)
        path = self.run.leave(f"samples/{line['update']:07d}{mean}.txt", text)
        samples = [f"samples of the last validation ({path}):", *map(str, result.samples)]
        self._shown = "\n".join(samples) if result.samples else ""

    def on_end(self, ending: Ending) -> None:
        if self._shown and not ending.error:
            self.run.log(self._shown)


@dataclass(frozen=True)
class Plots(Callback):
    """Draws plots/ if matplotlib is installed."""

    config: TrainConfig
    run: RunFolder

    def on_end(self, ending: Ending) -> None:
        if ending.error:
            return
        self.draw("learning curves", learning_curves)
        if self.config.trainer.gradient_flow:
            self.draw("gradient flow", gradient_flow_curves)

    def draw(self, what: str, plot: Callable[[Path], Path]) -> None:
        """Draw one plot if report.plots asks for plots, and log its path, or why there is none."""
        if not self.config.report.plots:
            return
        try:
            self.run.log(f"{what}: {plot(self.run.path)}")
        except TolkaError as error:
            self.run.log(str(error))


@dataclass(frozen=True)
class ReportPage(Callback):
    """Writes report.html, with example sentences translated by the best model."""

    config: TrainConfig
    run: RunFolder
    inputs: Inputs
    decoding: DecodingConfig

    def on_end(self, ending: Ending) -> None:
        if ending.error or not self.config.report.page:
            return
        self._show()
        title = self.config.run.name or self.run.path.name
        page = write_page(self.run.path, title, [read_run(self.run.path, title)], {}, self.config.report.plots)
        self.run.log(f"report: {page}")

    def _show(self) -> None:
        """Translate some sentences for the page with the best model and the test search."""
        known = [*self.inputs.held_out.values()][:2][-1]  # the first test set, or else the validation set
        translator = Translator.of(load_model(self.run.best), self.config.search, self.decoding)
        references = {pair.source: pair.target for pair in known}
        complaint = show(translator, choose_sentences(known), references, self.run.path / SHOWN)
        if complaint:
            self.run.log(f"note: {complaint}")


def choose_sentences(pairs: Sequence[Pair]) -> list[str]:
    """Return a short, a medium and a long source (in words); fewer if there are not three."""
    ordered = sorted((pair.source for pair in pairs), key=lambda source: len(source.split()))
    return list(dict.fromkeys(ordered[int(share * len(ordered))] for share in _SHARES)) if ordered else []


def show(
    translator: Translator[TorchEngine], sentences: Sequence[str], references: Mapping[str, str], folder: Path
) -> str:
    """Translate sentences; write a JSON file and a picture of each into a folder, replacing what it had.

    The map is the mean over the heads of the last layer's cross-attention; there is none for an architecture without
    it. references: source -> reference, where one is known. Returns why maps could not be drawn well, or "".
    """
    translations = translator.translate(sentences)
    try:
        maps = AttentionReader(translator)(translations)
    except ConfigError:  # nothing to look at
        maps = [[] for _ in sentences]
    folder.mkdir(exist_ok=True)
    for old in (*folder.glob("*.json"), *folder.glob("*.png")):
        old.unlink()
    written = AttentionFolder(folder)
    for number, (source, translation, found) in enumerate(zip(sentences, translations, maps, strict=True), 1):
        numbers = [each.as_dict() for each in found]
        written.write(f"{number:02d}", source, translation.text, numbers, references.get(source, ""))
    return written.complaint
