"""How often each paired test finds a difference between equal systems, and between unequal ones.

    python benchmarks/paired_tests.py A B REFERENCE [--comparisons 5000] [--lines 500] [--trials 1000]

A and B are two translations of the same text, such as two samples of one model (search=sampling search.seed=1 and 2).
For each comparison lines of them are drawn with replacement, and a coin for each decides which of two systems has A's
line and which has B's: the two are equal but for chance, and p < 0.05 should come in 5 % of the comparisons. Then the
better of both lines, by sentence chrF, goes to the second system more often than to the first: a difference to find.
The last column counts p below what 5 % of the equal systems' p are below: how often each test finds a difference if
both are wrong equally often. Before that, test sets are drawn from A and B as they are: how often do the intervals of
both scores and of their difference hold the score of all lines? And for pages of several systems, each of which has A's
or B's line by a coin of its own: how often is some system called different from the best? Also for systems of three
trainings each, whose mean scores deviate by --deviation points beside.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from tolka.metrics.languages import choose_bleu_tokenizer
from tolka.metrics.line_statistics import Statistics, exchanged_sums, line_statistics, resampled_sums
from tolka.metrics.scores import interval_of
from tolka.metrics.significance import gaps_to_best, randomisation_p
from tolka.metrics.tables import table
from tolka.text.lines import read_lines

Floats = npt.NDArray[np.floating[Any]]
Numbers = npt.NDArray[Any]
BETTER = (0.5, 0.55, 0.6)  # share of the lines whose better translation the second system has
SYSTEMS, SEEDS = (2, 3, 8, 20), (1, 3)  # of a page
UNEQUAL = 1000  # comparisons of unequal systems: their shares are large, and need no more


def bleu(sums: Numbers) -> Floats:
    """BLEU of each row of sums, as sacrebleu computes it where every order has a match."""
    hypothesis, reference, correct, total = sums[..., 0], sums[..., 1], sums[..., 2:6], sums[..., 6:10]
    brevity = np.minimum(0, 1 - reference / hypothesis)
    with np.errstate(divide="ignore"):  # an order without a match: BLEU 0
        return np.asarray(100 * np.exp(brevity + np.log(correct / total).mean(-1)))


def chrf(sums: Numbers) -> Floats:
    """chrF2 of each row of sums, or of lines, (..., 18)."""
    hypothesis, reference, match = (sums[..., each::3] for each in range(3))
    orders = np.maximum(((hypothesis > 0) & (reference > 0)).sum(-1), 1)
    precision, recall = ((match / np.maximum(each, 1)).sum(-1) / orders for each in (hypothesis, reference))
    return np.asarray(500 * precision * recall / np.maximum(4 * precision + recall, 1e-16))


METRICS = {"BLEU": bleu, "chrF2": chrf}


def sacrebleu_bootstrap_p(differences: Floats, observed: float) -> float:
    """Return sacrebleu's p: (c + 1) / (n + 1), where c of n |differences| exceed their mean by more than |observed|."""
    # Folding to one sign before centring, as sacrebleu does, leaves too small a spread, and thus too small a p.
    folded = np.abs(differences)
    return float((folded - folded.mean() > abs(observed)).sum() + 1) / (len(folded) + 1) if observed else 1.0


def p_values(a: list[Statistics], b: list[Statistics], trials: int, seed: int) -> list[list[float]]:
    """Return p under each metric of approximate randomisation, and of sacrebleu's bootstrap."""
    swapped = exchanged_sums(list(zip(a, b, strict=True)), trials, seed)
    samples = resampled_sums([*a, *b], trials, seed)
    found = []
    for number, score in enumerate(METRICS.values()):
        observed = float(score(b[number].sum(0)) - score(a[number].sum(0)))
        first, second = swapped[number]
        drawn = score(samples[len(a) + number]) - score(samples[number])
        found.append([randomisation_p(score(second) - score(first), observed), sacrebleu_bootstrap_p(drawn, observed)])
    return found


def coverage(statistics: list[list[Statistics]], test_sets: int, lines: int, resamples: int) -> None:
    """Print how often intervals hold the score of all lines, and of how many differences `detectable` ones are found.

    Test sets are drawn from all lines with replacement.
    """
    draw = np.random.default_rng(2)
    inside = {name: np.zeros(3) for name in METRICS}
    widths: dict[str, list[float]] = {name: [] for name in METRICS}
    differences: dict[str, list[float]] = {name: [] for name in METRICS}
    for number in range(test_sets):
        rows = draw.choice(len(statistics[0][0]), lines)
        drawn = [counts[rows] for pair in statistics for counts in pair]
        sums = resampled_sums(drawn, resamples, number + 1)
        for place, (name, score) in enumerate(METRICS.items()):
            a, b = (score(sums[2 * place + system]) for system in (0, 1))
            true = [float(score(counts.sum(0))) for counts in statistics[place]]
            for column, (found, value) in enumerate(((a, true[0]), (b, true[1]), (b - a, true[1] - true[0]))):
                low, high = interval_of(found)
                inside[name][column] += low <= value <= high
            widths[name].append(2.8 * float((b - a).std(ddof=1)))
            own = [float(score(drawn[2 * place + system].sum(0))) for system in (0, 1)]
            differences[name].append(own[1] - own[0] - (true[1] - true[0]))
    for name, counts in inside.items():
        shares = ", ".join(f"{share:.1%}" for share in counts / test_sets)
        # A difference of the detectable size is found where the sampled one exceeds 1.96 of its standard errors.
        errors = np.array(widths[name]) / 2.8
        power = (np.abs(np.array(differences[name]) + np.array(widths[name])) > 1.96 * errors).mean()
        print(
            f"{name}: intervals of a, b and b - a hold the score of all lines in {shares} of {test_sets} test sets; "
            f"a difference of {np.mean(widths[name]):.2f}, the detectable one, is found in {power:.1%}"
        )


def pages(per_line: list[Floats], count: int, lines: int, trials: int, deviation: float) -> None:
    """Print of how many pages of equal systems some system has p < 0.05 beside the best. per_line: (2, all lines)."""
    both, draw, rows = np.array(per_line), np.random.default_rng(3), []
    for systems in SYSTEMS:
        for seeds in SEEDS:
            called = 0
            for _ in range(count):
                drawn = both[:, draw.choice(both.shape[1], lines)]
                scores = drawn[draw.integers(2, size=(systems, seeds, lines)), np.arange(lines)]
                if seeds > 1:
                    scores += deviation * draw.normal(size=(systems, seeds, 1))
                called += min(p for _, p in gaps_to_best(list(scores), trials)) < 0.05
            rows.append([str(systems), str(seeds), str(count), f"{called / count:.1%}"])
    print(table(rows, ["equal systems", "seeds", "pages", "some p < 0.05"], "rrrr"))


def main() -> None:
    """Simulate, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs=3, type=Path, metavar="FILE")
    parser.add_argument("--comparisons", type=int, default=5000)
    parser.add_argument("--test-sets", type=int, default=2000, help="drawn to see how often intervals are right")
    parser.add_argument("--pages", type=int, default=2000, help="of several systems")
    parser.add_argument("--deviation", type=float, default=0.5, help="of the trainings' mean chrF2")
    parser.add_argument("--lines", type=int, default=500)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--language", default="")
    options = parser.parse_args()
    a, b, references = (list(read_lines(path)) for path in options.files)
    metrics = {"BLEU": BLEU(tokenize=choose_bleu_tokenizer(options.language)[0], force=True), "chrF2": CHRF()}
    statistics = [line_statistics(metric, [a, b], [references]) for metric in metrics.values()]
    for (name, metric), (counts, _) in zip(metrics.items(), statistics, strict=True):
        assert np.isclose(METRICS[name](counts.sum(0)), metric._compute_score_from_stats(counts.sum(0).tolist()).score)
    coverage(statistics, options.test_sets, options.lines, options.trials)
    per_line = [chrf(counts) for counts in statistics[1]]
    pages(per_line, options.pages, options.lines, options.trials, options.deviation)
    # Line by line the worse translation and the better one, under each metric.
    is_better = (per_line[1] > per_line[0])[:, None]
    worse = [np.where(is_better, first, second) for first, second in statistics]
    better = [np.where(is_better, second, first) for first, second in statistics]
    draw = np.random.default_rng(1)
    rows: list[list[str]] = []
    bounds: Floats = np.zeros(0)
    for share in BETTER:
        found = []
        for number in range(options.comparisons if share == 0.5 else min(UNEQUAL, options.comparisons)):
            lines = draw.choice(len(references), options.lines)
            coin = (draw.random(options.lines) < share)[:, None]
            first = [np.where(coin, low[lines], high[lines]) for low, high in zip(worse, better, strict=True)]
            second = [np.where(coin, high[lines], low[lines]) for low, high in zip(worse, better, strict=True)]
            found.append(p_values(first, second, options.trials, number + 1))
        values = np.array(found)  # (comparisons, metrics, tests)
        bounds = bounds if rows else np.quantile(values, 0.05, axis=0)  # (metrics, tests), of equal systems
        for row, name in enumerate(METRICS):
            for test, called in enumerate(("paired-ar", "paired-bs")):
                each = values[:, row, test]
                shares = [f"{100 * (each < bound).mean():.1f} %" for bound in (0.01, 0.05, 0.1, 0.5)]
                equal_level = f"{100 * (each < bounds[row, test]).mean():.1f} %"
                rows.append([f"{share:.0%}", name, called, str(len(each)), *shares, f"{each.max():.3f}", equal_level])
    bounds_of_p = ["p < 0.01", "p < 0.05", "p < 0.1", "p < 0.5", "largest p", "equal level"]
    print(table(rows, ["better lines", "metric", "test", "comparisons", *bounds_of_p], "rllrrrrrrr"))


if __name__ == "__main__":
    main()
