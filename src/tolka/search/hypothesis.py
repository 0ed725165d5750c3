"""What a search returns; needs no torch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Hypothesis:
    """One translation. tokens: ids without `<s>` and `</s>`. log_probability: of all tokens, `</s>` included, in nats.

    score: what hypotheses are ranked by. finished: whether `</s>` was reached before the length limit. Both values
    are NaN where they were neither requested nor needed.
    """

    tokens: list[int]
    log_probability: float
    score: float
    finished: bool
