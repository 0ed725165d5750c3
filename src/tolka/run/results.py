"""What a training leaves in its folder for people: plots, the report page and its sentences."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tolka.engines.torch_engine import TorchEngine
from tolka.errors import ConfigError, TolkaError
from tolka.report.attention import AttentionFolder
from tolka.report.page import write_page
from tolka.report.plots import gradient_flow_curves, learning_curves
from tolka.report.runs import EXAMPLES, read_run
from tolka.text.pairs import Pair
from tolka.training.run_folder import RunFolder
from tolka.translation.translator import Translator

# Of the sentences that are shorter than those shown.
_SHARES = (0.1, 0.5, 0.9)


def draw_plots(run: RunFolder, gradient_flow: bool) -> None:
    """Draw plots/ if matplotlib is installed, and log their paths, or why there are none."""
    plots = {"learning curves": learning_curves, **({"gradient flow": gradient_flow_curves} if gradient_flow else {})}
    for what, plot in plots.items():
        try:
            run.log(f"{what}: {plot(run.path)}")
        except TolkaError as error:
            run.log(str(error))


def write_report(
    run: RunFolder, title: str, translator: Translator[TorchEngine], known: Sequence[Pair], plots: bool
) -> None:
    """Write report.html, with some sentences of `known` translated. plots: whether it has pictures."""
    references = {pair.source: pair.target for pair in known}
    # A picture that cannot be drawn is noted; the page is written without it.
    if complaint := show(translator, choose_sentences(known), references, run.path / EXAMPLES):
        run.log(f"note: {complaint}")
    run.log(f"report: {write_page(run.path, title, [read_run(run.path, title)], {}, plots)}")


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
        maps = translator.attention(translations)
    # The architecture has no attention.
    except ConfigError:
        maps = [[] for _ in sentences]
    folder.mkdir(exist_ok=True)
    for old in (*folder.glob("*.json"), *folder.glob("*.png")):
        old.unlink()
    written = AttentionFolder(folder)
    for number, (source, translation, found) in enumerate(zip(sentences, translations, maps, strict=True), 1):
        numbers = [each.as_dict() for each in found]
        written.write(f"{number:02d}", source, translation.text, numbers, references.get(source, ""))
    return written.complaint
