"""Loggers of other libraries, whose lines would stand between ours."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loggers_at(level: int, *names: str) -> Iterator[None]:
    """Have these loggers pass on only what is at least of this level, until the block ends."""
    before = [(log, log.level) for log in map(logging.getLogger, names)]
    for log, _ in before:
        log.setLevel(level)
    try:
        yield
    finally:
        for log, own in before:
            log.setLevel(own)
