"""What several ranks made, each of them a part, or the error that one of them met."""

from collections.abc import Callable
from typing import TypeVar

from tolka.distributed.ranks import Ranks
from tolka.errors import TolkaError

T = TypeVar("T")


def gather_outcomes(ranks: Ranks, job: Callable[[], T]) -> list[T]:
    """Run a job on every rank; return all results, in the order of the ranks.

    A TolkaError of any rank is raised on all of them, so that none waits for one that has ended.
    """
    outcome: T | TolkaError
    try:
        outcome = job()
    except TolkaError as error:
        outcome = error
    found: list[T] = []
    for each in ranks.gather(outcome):
        if isinstance(each, TolkaError):
            raise each
        found.append(each)
    return found
