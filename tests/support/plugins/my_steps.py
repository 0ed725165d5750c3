"""A user's own step of cleaning."""

from tolka.text.cleaning.steps import register_step
from tolka.text.direction import Direction
from tolka.text.pairs import Pair


@register_step("no_question")
def no_question(pair: Pair, direction: Direction) -> Pair | str:
    """Leave out questions, and write the target's code before other targets."""
    return "a question" if pair.source.endswith("?") else Pair(pair.source, f"{direction.target}: {pair.target}")
