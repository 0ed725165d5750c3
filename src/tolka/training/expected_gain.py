"""What a longer training would have brought, by the scores of its validations."""

from collections.abc import Sequence

from tolka.training.options import METRICS

_FEWEST = 6  # validations; with fewer, chance decides what the last third brought
# Gains worth another training: points of BLEU and chrF, and a share of nll and ppl.
_WORTH_POINTS, _WORTH_SHARE = 0.3, 0.01


def expected_gain(scores: Sequence[tuple[int, float]]) -> float | None:
    """Return what as many updates again would probably bring: what the last third of them has brought.

    scores: update and score of each validation, a higher score for a better model. None for too few of them.
    """
    before = [score for update, score in scores if 3 * update <= 2 * scores[-1][0]]
    if len(scores) < _FEWEST or not before:
        return None
    return max(score for _, score in scores) - max(before)


def gain_text(gain: float, metric: str, value: float) -> str:
    """Return whether more time would have helped, as a sentence. value: of the metric in the end."""
    is_worth = gain >= (_WORTH_POINTS if METRICS[metric] > 0 else _WORTH_SHARE * value)
    verdict = "more time would have helped" if is_worth else "more time would hardly have helped"
    return f"{verdict}: {metric} became {gain:.2f} better in the last third, and as many updates again would do as much"
