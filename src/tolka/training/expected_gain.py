"""What a longer training would have brought, by the scores of its validations."""

from collections.abc import Mapping, Sequence
from typing import Any

from tolka.training.options import METRICS

_FEWEST = 6  # validations; with fewer, chance decides what the last third brought
# Gains worth another training: points of BLEU and chrF, and a share of nll and ppl.
_WORTH_POINTS, _WORTH_SHARE = 0.3, 0.01


Scores = Sequence[tuple[int, float]]
"""Update and score of each validation, a higher score for a better model."""


def validation_scores(history: Sequence[Mapping[str, Any]], metric: str, plateau: int = 0) -> list[tuple[int, float]]:
    """Return the scores of a training's validations. history: lines of metrics.jsonl. metric: of METRICS.

    plateau: of TrainState; later ones are left out, as a rate that falls raises the score by itself.
    """
    name = "valid_loss" if metric == "nll" else metric
    # The mean of checkpoints is not a point of the curve.
    lines = [line for line in history if line.get(name) is not None and "mean_of_updates" not in line]
    scores = [(line["update"], METRICS[metric] * line[name]) for line in lines]
    return [score for score in scores if not plateau or score[0] <= plateau]


def last_third_gain(scores: Scores) -> float | None:
    """Return what the last third of the updates added to the best score; None if no score is from before."""
    before = [score for update, score in scores if 3 * update <= 2 * scores[-1][0]]
    return max(score for _, score in scores) - max(before) if before else None


def expected_gain(scores: Scores) -> float | None:
    """Return what as many updates again would probably bring, as the last third did; None for too few validations."""
    return last_third_gain(scores) if len(scores) >= _FEWEST else None


def gain_text(gain: float, metric: str, value: float) -> str:
    """Return whether more time would have helped, as a sentence. value: of the metric in the end."""
    is_worth = gain >= (_WORTH_POINTS if METRICS[metric] > 0 else _WORTH_SHARE * value)
    verdict = "more time would have helped" if is_worth else "more time would hardly have helped"
    return f"{verdict}: {metric} became {gain:.2f} better in the last third, and as many updates again would do as much"
