"""How much of a training text cleaning may leave out before training stops and asks."""

from collections import Counter
from dataclasses import replace

from tolka.text.cleaning.cleaner import Tally
from tolka.text.cleaning.steps import CleaningConfig
from tolka.text.pairs import FURTHER, LOW_SCORE, NO_PAIR

_REPETITIONS = ("duplicate", "near duplicate")
_LEAST = 0.1  # of all pairs, when only repetitions were left out
# Beginning or end of a reason -> the setting that asked for the step; others have none, such as a blank side.
_SETTINGS = {
    "control": "control",
    "markup": "markup",
    "over": "max_characters",
    "one side over": "max_ratio",
    "source copied": "copies",
    "few letters": "min_letters",
    "numbers": "numbers",
    "duplicate": "duplicates",
    "held-out": "leaks",
    "in another script": "script",
    "in another language": "language",
}


def describe_loss(tally: Tally, cleaning: CleaningConfig, max_length: int) -> str:
    """Return why so much of a training text is left out that training on the rest needs consent; "" if it does not.

    More than half of the pairs may not be missing. max_length: batching.max_length.
    """
    # Not missing: what was held out, a further translation of a text that was read, a unit in other languages, and
    # what a score was to leave out.
    others = ("set aside", FURTHER, NO_PAIR, LOW_SCORE)
    chosen = {why: count for why, count in tally.dropped.items() if not why.startswith(others)}
    dropped = replace(tally, dropped=Counter(chosen))
    # Nor a pair that came before, whose text is learnt from, unless nearly all pairs are repetitions.
    repeated = sum(dropped.dropped[reason] for reason in _REPETITIONS)
    missing = dropped.dropped.total() - repeated
    if cleaning.allow_loss or (missing <= tally.kept and tally.kept >= _LEAST * (tally.kept + repeated)):
        return ""
    return (
        f"{dropped.dropped.total()} of {dropped.total} training pairs are left out, most of them "
        f"{main_reason(dropped, cleaning, max_length)}: look at some; cleaning.allow_loss=true trains on the "
        f"{tally.kept} that are left"
    )


def main_reason(tally: Tally, cleaning: CleaningConfig, max_length: int) -> str:
    """Return a phrase about the step that leaves most pairs out: "(9) as 'source copied', by cleaning.copies=true"."""
    reason, count = tally.dropped.most_common(1)[0]
    key = next((key for words, key in _SETTINGS.items() if reason.startswith(words) or reason.endswith(words)), "")
    known = f", by cleaning.{key}={str(getattr(cleaning, key)).lower()}" if key else ""
    if reason.endswith(" tokens"):
        known = f", by batching.max_length={max_length}"
    return f"({count}) as '{reason}'{known}" + (" (is it a held-out text?)" if reason.startswith("held-out") else "")
