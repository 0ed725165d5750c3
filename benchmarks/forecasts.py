"""How often the mean chrF2 of a file is in the 95 % interval that was forecast for it.

    python benchmarks/forecasts.py [MODEL SOURCE REFERENCE] [--draws 2000] [--block 1]

For each draw a calibration is fitted on 100 to 2000 lines, and files of 40 to 5000 other lines are forecast. The lines
are drawn with replacement from SOURCE and REFERENCE, which MODEL translates once; --block draws as many in a row at a
time, as a document has them. Without a model they are made up: confident lines have a high chrF and differ less from
their estimates, some are exactly right, and with --block lines of a document share a fourth of their variance.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tolka.engines.options import DecodingConfig
from tolka.evaluation.calibration import fit_calibration
from tolka.metrics.scores import line_chrf
from tolka.metrics.tables import table
from tolka.model_directory.read import load_model
from tolka.search.beam import BeamConfig
from tolka.text.lines import read_lines
from tolka.translation.quality import Features, features_of
from tolka.translation.translator import Translator

Numbers = npt.NDArray[Any]
CALIBRATIONS = (100, 300, 1000, 2000)  # lines
FILES = (40, 200, 1000, 5000)


def made_up(lines: int, block: int, draw: np.random.Generator) -> Numbers:
    """Return (lines, 3): mean and lowest probability, and chrF, of lines whose errors are the smaller, the surer."""
    mean = draw.beta(4, 2.5, lines)
    lowest = mean * draw.beta(1.5, 3, lines)
    noise = draw.normal(size=lines)
    if block > 1:
        shared = np.repeat(draw.normal(size=-(-lines // block)), block)[:lines]
        noise = np.sqrt(0.75) * noise + np.sqrt(0.25) * shared
    # Not linear, with errors of 8 to 24 points, and cut off at both ends.
    chrf = 10 + 85 * mean**1.4 + 10 * lowest + (24 - 16 * mean) * noise
    return np.stack([mean, lowest, chrf.clip(0, 100)], axis=1)


def of_model(model: Path, source: Path, reference: Path) -> Numbers:
    """Return (lines, 3) of a model's translations."""
    translator = Translator.of(load_model(model), BeamConfig(), DecodingConfig())
    pairs = [pair for pair in zip(read_lines(source), read_lines(reference), strict=True) if all(map(str.strip, pair))]
    translations = translator.translate([one for one, _ in pairs])
    chrf = line_chrf([each.text for each in translations], [other for _, other in pairs])
    features = features_of(translator, translations)
    return np.array([(each.mean, each.lowest, value) for each, value in zip(features, chrf, strict=True) if each])


def main() -> None:
    """Simulate, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="a model, a source and a reference")
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--block", type=int, default=1, help="lines of a document")
    options = parser.parse_args()
    draw = np.random.default_rng(1)
    # A population, of which a calibration and a file are samples: its documents have their lines in a row.
    lines: Numbers = of_model(*options.files) if options.files else made_up(200_000, options.block, draw)
    print(f"{len(lines)} lines, mean chrF2 {lines[:, 2].mean():.1f}")

    def sample(count: int) -> Numbers:
        starts = draw.integers(0, len(lines) // options.block, -(-count // options.block)) * options.block
        chosen: Numbers = lines[(starts[:, None] + np.arange(options.block)).ravel()[:count]]
        return chosen

    rows = []
    for size in CALIBRATIONS:
        inside, widths = np.zeros(len(FILES)), np.zeros(len(FILES))
        for _ in range(options.draws):
            fitted = sample(size)
            features = [Features(mean, lowest, None) for mean, lowest in fitted[:, :2].tolist()]
            calibration = fit_calibration(features, fitted[:, 2].tolist(), "").calibration
            for place, count in enumerate(FILES):
                file = sample(count)
                expected = calibration.forecast(np.array([count, *file[:, :2].sum(axis=0)]))
                inside[place] += expected.low <= file[:, 2].mean() <= expected.high
                widths[place] += (expected.high - expected.low) / 2
        found = zip(inside / options.draws, widths / options.draws, strict=True)
        rows.append([str(size), *(f"{share:.1%} (± {width:.1f})" for share, width in found)])
    print(table(rows, ["calibrated on", *(f"file of {count}" for count in FILES)], "rrrrr"))


if __name__ == "__main__":
    main()
