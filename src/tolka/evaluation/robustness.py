"""What it costs a model in chrF2 when a text is not as its training text was.

The lines of a test set are changed on both sides, so that their references are right again, and translated. What a
translator that is not disturbed would get is the score of the translations of the unchanged lines, changed like their
references; the difference has a 95 % interval of resamples that both share.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from tolka.errors import DataError
from tolka.metrics.line_statistics import resampled_sums, totals
from tolka.metrics.metric import SEED, Metric, References
from tolka.metrics.options import MetricsConfig
from tolka.metrics.scores import interval_of, metrics_of
from tolka.metrics.tables import Form, table
from tolka.text.direction import Direction
from tolka.text.noise import Noise, joined, noises
from tolka.text.pairs import Pair

_MOST = 500  # lines: a cost of some points is seen, and a small model takes a minute
_FEWEST = 5  # of fewer an interval says nothing
_RESAMPLES = 1000
_JOINED = {"two sentences on a line": 2, "five sentences on a line": 5}
_SHOWN = 2  # examples of each cost
_WORDS = {
    "upper": "capitals",
    "title": "title case",
    "no_end": "no end mark",
    "typos": "typing errors",
    "blanks": "doubled and invisible blanks",
    "numbers": "other numbers",
    "names": "unknown names",
    "urls": "addresses",
    "emoji": "emoji",
    "tags": "tags and placeholders",
}


@dataclass(frozen=True)
class Example:
    """A line that a change spoils: the changed source, its reference, and translations of the line before and now."""

    source: str
    reference: str
    before: str
    translation: str


@dataclass(frozen=True)
class Cost:
    """What a change does to the lines that it changes, and the 95 % interval of after minus before.

    before: chrF2 of the translations of the unchanged lines, changed like their references; after: of the new ones.
    """

    name: str
    lines: int
    before: float
    after: float
    interval: tuple[float, float]
    examples: list[Example]


@dataclass(frozen=True, repr=False)
class Robustness:
    """The costs of all changes, on evenly spaced lines of a test set, and the signature of the scores.

    text: the name of the test set.
    """

    costs: list[Cost]
    lines: int
    signature: str
    text: str = ""

    def as_dict(self, with_examples: bool = True) -> dict[str, Any]:
        """Return plain values, for JSON and scores.json."""
        costs = [asdict(cost if with_examples else replace(cost, examples=[])) for cost in self.costs]
        return {"robustness": costs, "text": self.text, "lines": self.lines, "signature": self.signature}

    def as_text(self, form: Form = "text") -> str:
        """Return a table of the costs, the dearest first, and examples of those that are certain."""
        rows = [
            [
                *(cost.name, str(cost.lines), f"{cost.before:.1f}", f"{cost.after:.1f}"),
                f"{cost.after - cost.before:+.1f}",
                " to ".join(f"{end:+.1f}" for end in cost.interval),
            ]
            for cost in self.costs
        ]
        shown = table(rows, ["change", "lines", "undisturbed", "chrF2", "difference", "95% interval"], "lrrrrl", form)
        blocks = [shown, f"chrF2: {self.signature}"]
        for cost in self.costs:
            for example in cost.examples if cost.interval[1] < 0 else ():
                texts = {"source": example.source, "translation": example.translation}
                texts |= {"reference": example.reference, "undisturbed": example.before}
                lines = [f"  {name:13} {text}" for name, text in texts.items()]
                blocks.append("\n".join([f"{cost.name}:", *lines]))
        return "\n\n".join(blocks)

    __repr__ = as_text  # what mt-eval prints


def measure(
    translate: Callable[[Sequence[str]], Sequence[str]], pairs: Sequence[Pair], direction: Direction
) -> Robustness:
    """Return the cost of changes of a test set for a model. translate: by it. direction: of the pairs."""
    step = -(-len(pairs) // _MOST)
    chosen = [pair for pair in pairs[::step] if pair.source.strip() and pair.target.strip()]
    if len(chosen) < _FEWEST:
        raise DataError(f"robustness takes {_FEWEST} lines or more with text on both sides: there are {len(chosen)}")
    translated = translate([pair.source for pair in chosen])
    metric = metrics_of(MetricsConfig(names=["chrf"], bootstrap=0), direction.target)[0]
    costs = [
        _cost(metric, name, before, after, translate([pair.source for pair in after]))
        for name, before, after in _changes(chosen, translated, direction)
        if after
    ]
    costs.sort(key=lambda cost: cost.after - cost.before)
    return Robustness(costs, len(chosen), metric.signature(_RESAMPLES))


def _changes(
    pairs: Sequence[Pair], translated: Sequence[str], direction: Direction
) -> Iterator[tuple[str, list[str], list[Pair]]]:
    """Yield each change, undisturbed translations of the lines that it changes, and the changed pairs."""
    named = noises(direction)
    for kind, words in _WORDS.items():
        noise = named[kind]
        changed = [noise(pair, random.Random(row)) for row, pair in enumerate(pairs)]
        rows = [row for row, pair in enumerate(pairs) if changed[row] != pair]
        before = [change_alike(noise, pairs[row], translated[row], changed[row], row) for row in rows]
        yield words, before, [changed[row] for row in rows]
    for words, count in _JOINED.items():
        groups = [slice(start, start + count) for start in range(0, len(pairs) + 1 - count, count)]
        found = [Pair("", text) for text in translated]
        before = [joined(found[each], direction).target for each in groups]
        yield words, before, [joined(pairs[each], direction) for each in groups]


def change_alike(noise: Noise, pair: Pair, translation: str, changed: Pair, seed: int) -> str:
    """Return a translation changed as its reference was; as it is, where it lacks what was changed, such as a number.

    changed: the pair after the noise. seed: of the draws that it made.
    """
    other = noise(Pair(pair.source, translation), random.Random(seed))
    return other.target if other.source == changed.source else translation


def _cost(metric: Metric, name: str, undisturbed: Sequence[str], pairs: Sequence[Pair], now: Sequence[str]) -> Cost:
    """Return the cost of a change. pairs: after it. undisturbed, now: their translations."""
    old, new = metric.statistics([undisturbed, now], References([[pair.target for pair in pairs]]))
    before, after = (float(metric.value(totals(each))) for each in (old, new))
    of_old, of_new = map(metric.values, resampled_sums([old, new], _RESAMPLES, SEED))
    lost = metric.line_values(old) - metric.line_values(new)
    examples = [
        Example(pairs[row].source, pairs[row].target, undisturbed[row], now[row])
        for row in np.argsort(-lost, kind="stable")[:_SHOWN]
        if lost[row] > 0
    ]
    return Cost(name, len(now), before, after, interval_of(of_new - of_old), examples)
