"""The errors that a user can cause; every message is one line that says what to try."""

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def reason_of(error: BaseException) -> str:
    """Return why, in one line for people: what Python says of its own values tells them nothing."""
    if isinstance(error, KeyError):
        return f"{error.args[0]!r:.80} is missing"
    if isinstance(error, UnicodeError):
        return "it is not UTF-8"
    words = " ".join(str(error).split())
    is_pythons = isinstance(error, AttributeError | IndexError | TypeError) or "invalid literal" in words
    return "a value is of another kind than expected" if is_pythons else words[:200]


class TolkaError(Exception):
    """Base of every error that the commands print as one line instead of a traceback.

    reported: whether another process of the same training has printed it, or what it comes from.
    """

    reported = False
    # 1 where the work failed, 2 for wrong usage.
    exit_code = 1


class StoppedError(TolkaError):
    """A signal asked for an end, and the work was saved. exit_code: 128 + the signal's number."""

    def __init__(self, message: str, exit_code: int = 130) -> None:  # pickle gives it later
        super().__init__(message)
        self.exit_code = exit_code


class LostProcessError(TolkaError):
    """Another process of this training has ended, or does not answer."""


class ConfigError(TolkaError):
    """A setting is unknown, of the wrong type, out of range, or at odds with another.

    complaints: those that the message joins.
    """

    exit_code = 2

    def __init__(self, message: str, complaints: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.complaints = list(complaints) or [message]


def in_one_line(complaints: Iterable[str]) -> str:
    """Join complaints, each of them once; a sentence needs no semicolon behind it."""
    text = "; ".join(dict.fromkeys(complaints))
    return text.replace(".; ", ". ").replace("?; ", "? ")


class DataError(TolkaError):
    """A text file, a corpus or a token store cannot be used as it is."""


class CheckpointError(TolkaError):
    """A model directory or a run directory is missing, damaged, or of another format."""


def all_of(*calls: Callable[[], T]) -> list[T]:
    """Return the results of all calls; raise what those that fail complain about as one error, in one line."""
    results, errors = list[T](), dict[str, TolkaError]()
    for call in calls:
        try:
            results.append(call())
        except (ConfigError, DataError) as error:
            errors[str(error)] = error
    if errors:
        raise type(next(iter(errors.values())))("; ".join(errors)) from None
    return results
