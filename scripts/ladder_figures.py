"""The pictures of docs/ladder.md, from the runs of `scripts/reproduce_ladder.sh`.

    python scripts/ladder_figures.py runs/ladder

Needs the extra `plots`, and Noto Sans CJK for the Korean letters.
"""

import argparse
import tempfile
from pathlib import Path

from tolka.report.curves import draw_curves, new_figure, save_figure
from tolka.report.runs import FinishedRun, read_run

MODELS = ("rnn", "lstm", "lstm_attention", "transformer_tiny")
CURVES = ("bleu_over_updates", "bleu_by_length_test_unseen")
FIGURES = Path(__file__).parents[1] / "docs" / "figures"
SHOWN = 1  # which of the sentences that all runs have translated


def maps(runs: list[FinishedRun], path: Path) -> None:
    """Draw what each model attends to in one sentence, or the gradients of those without attention."""
    figure = new_figure(4.0 * len(runs), 4.2)
    for axes, run in zip(figure.subplots(1, len(runs)), runs, strict=True):
        [found] = run.examples[SHOWN]["maps"]
        axes.imshow(found["weights"], vmin=0.0, vmax=1.0, cmap="Blues", aspect="auto")
        axes.set_xticks(range(len(found["columns"])), found["columns"], rotation=60, ha="left", rotation_mode="anchor")
        axes.set_yticks(range(len(found["rows"])), found["rows"])
        axes.xaxis.tick_top()
        for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
            label.set_fontfamily(["DejaVu Sans", "Noto Sans CJK KR"])
        axes.set_xlabel(f"{run.label}: {'gradients' if found['map'] == 'gradient' else 'attention'}")
    save_figure(figure, path)


def main() -> None:
    """Write the pictures into docs/figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of the runs, each named after its model")
    folder = parser.parse_args().folder
    runs = [read_run(folder / model, model) for model in MODELS]
    with tempfile.TemporaryDirectory() as drawn:
        for picture in draw_curves(runs, Path(drawn)):
            if picture.path.stem in CURVES:
                (FIGURES / f"ladder_{picture.path.name}").write_bytes(picture.path.read_bytes())
    maps(runs, FIGURES / "ladder_maps.png")


if __name__ == "__main__":
    main()
