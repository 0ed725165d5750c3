"""How well a model's estimates of quality tell the chrF of lines, and how often each flag is raised.

    python benchmarks/quality_estimates.py MODEL SOURCE REFERENCE [--calibrate SOURCE REFERENCE] [--n-best 5]

With --calibrate, the map from the features to chrF is fitted on that text, and measured on SOURCE and REFERENCE, also
how often the forecast of a file, which is so many of its lines in a row, is right. Without it, the map is fitted and
measured on SOURCE and REFERENCE by cross-validation. The model directory stays as it is. Flags are counted for the
model's translations, with their mean chrF, and for the references, where each is a false alarm.
"""

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tolka.engines.options import DecodingConfig
from tolka.evaluation.calibration import calibrate_translator, estimate_quality
from tolka.metrics.scores import line_chrf
from tolka.model_directory.read import load_model
from tolka.search.beam import BeamConfig
from tolka.text.lines import read_lines
from tolka.translation.flags import FLAGS
from tolka.translation.quality import Calibration, Features, estimate, features_of
from tolka.translation.results import Candidate, Translation
from tolka.translation.translator import Translator


def forecasts_of_files(calibration: Calibration, lines: Sequence[tuple[Features, float]]) -> None:
    """Print how many files of several sizes have their mean chrF in the interval of its forecast."""
    for size in (40, 100, 200, 500):
        files = [lines[start : start + size] for start in range(0, len(lines) - size + 1, size)]
        right = 0
        for file in files:
            expected = calibration.forecast(np.sum([features.values(False) for features, _ in file], axis=0))
            right += expected.low <= sum(value for _, value in file) / size <= expected.high
        print(f"files of {size} lines: {right} of {len(files)} in the interval of the forecast")


def main() -> None:
    """Calibrate, measure, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--calibrate", type=Path, nargs=2, metavar=("SOURCE", "REFERENCE"))
    parser.add_argument("--n-best", type=int, default=5)
    parser.add_argument("--lines", type=int, default=0, help="only the first N of each file")
    options = parser.parse_args()
    search = BeamConfig(beam_size=max(5, options.n_best), n_best=options.n_best)
    translator = Translator.of(load_model(options.model), search, DecodingConfig())
    fitted_on = options.calibrate or (options.source, options.reference)
    texts = [[*read_lines(path)][: options.lines or None] for path in (*fitted_on, options.source, options.reference)]
    found = calibrate_translator(translator, texts[0], texts[1], search)
    if not options.calibrate:
        print(found, end="\n\n")
    sources, references = texts[2:]
    translations = translator.translate(sources)
    chrf = line_chrf([each.text for each in translations], references).tolist()
    features = features_of(translator, translations)
    rows = [number for number, each in enumerate(features) if each is not None]
    if options.calibrate:
        for name, calibration in (("mean probability alone", None), ("calibrated", found.calibration)):
            values = [estimate(each, calibration).value for each in features if each is not None]
            measured = estimate_quality(name, values, [chrf[row] for row in rows])
            worst = f"{100 * measured.worst_found:.0f} %"
            print(f"{name}: Pearson {measured.pearson:.2f}, worst tenth found {worst}")
        print("\n| lines | expected chrF | measured chrF |\n|---|---|---|")
        for count, expected, actual in measured.bins:
            print(f"| {count} | {expected:.1f} | {actual:.1f} |")
        forecasts_of_files(
            found.calibration, [(each, value) for each, value in zip(features, chrf, strict=True) if each]
        )
        print()
    quality = [None if each is None else estimate(each, found.calibration) for each in features]
    given = [Translation([Candidate(reference, [], 0.0, True)]) for reference in references]
    flagged, alarms = translator.flags(sources, translations, quality), translator.flags(sources, given)
    of_flag: dict[str, list[float]] = defaultdict(list)
    for flags, value in zip(flagged, chrf, strict=True):
        for flag in flags:
            of_flag[flag].append(value)
    print(f"mean chrF of all {len(chrf)} translations: {sum(chrf) / len(chrf):.1f}\n")
    print("| flag | of the translations | their mean chrF | of the references |\n|---|---|---|---|")
    for flag in FLAGS:
        values = of_flag[flag]
        mean = f"{sum(values) / len(values):.1f}" if values else ""
        false = sum(flag in flags for flags in alarms)
        print(f"| {flag} | {len(values) / len(chrf):.1%} | {mean} | {false / len(chrf):.1%} |")


if __name__ == "__main__":
    main()
