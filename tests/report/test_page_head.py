"""What heads a page of several trainings: which differences from the best may be chance."""

import random
import re

from tolka.report.page_head import chances


def test_which_differences_from_the_best_may_be_chance() -> None:
    """By lines of the test set: the best is better than the second in half of them, and than the last in all."""
    draw = random.Random(1)
    base = [draw.uniform(20, 60) for _ in range(60)]
    of_runs = [
        base,
        [value + 3 * (-1) ** number for number, value in enumerate(base)],
        [value - draw.uniform(0, 6) for value in base],
        [value - 5 for value in base],
    ]
    lines = [[{"source": str(n), "chrf": value} for n, value in enumerate(values)] for values in of_runs]
    best, second, third, last = chances(lines)
    assert (best, second, last) == ("", "+0.0 (p = 1.000, may be chance)", "-5.0 (p = 0.003)")
    assert re.fullmatch(r"-[23]\.\d \(p = 0\.003\)", third)
    # Of runs with other test sets, nothing is said.
    assert chances([[{"source": "x", "chrf": 1.0}], *lines[1:]]) == []
