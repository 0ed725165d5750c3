"""Warnings during training: each is given once, and again only if the problem went away and came back."""

import math
from collections import deque
from collections.abc import Callable
from statistics import median

from tolka.metrics.validation import Validation

# Logged losses that a new one is compared with.
_RECENT = 10
_MIN_RECENT = 5
# Nats above their median: each token e times less likely.
_JUMP = 1.0
# Nats above a uniform guess: worse than knowing nothing, which untrained weights are for a while.
_GUESSING = 2.0
_ZEROES = 5  # validations in a row
_COPIES, _LOOPS = 0.2, 0.1  # shares of the translations
_YOUNG = 2000  # updates until which loops and copies are normal


class Watch:
    """Watches the losses and validations of one training."""

    def __init__(self, vocabulary: int, settled_at: int, say: Callable[[str], None]) -> None:
        """vocabulary: size of the target's. settled_at: the last update of warm-up; from then on losses are checked."""
        self._guess = math.log(vocabulary)
        self.settled_at, self._say = settled_at, say
        self._losses: deque[float] = deque(maxlen=_RECENT)
        self._zeroes = 0
        self._reported: set[str] = set()

    def loss(self, update: int, loss: float) -> None:
        """Check a training loss: nll per token in nats."""
        before = median(self._losses) if len(self._losses) >= _MIN_RECENT else math.inf
        self._losses.append(loss)
        is_guessing = update > self.settled_at and loss > self._guess + _GUESSING
        guess = (
            f"the training loss is {loss:.2f} nats a token, and a uniform guess costs {self._guess:.2f}: "
            "try a lower optimizer.lr or a longer scheduler.warmup"
        )
        self._report(update, "guess", is_guessing, guess)
        jump = (
            f"the training loss has jumped from about {before:.2f} to {loss:.2f} nats a token: if it "
            "stays there, try a lower optimizer.lr, a longer scheduler.warmup or a smaller trainer.clip_norm"
        )
        self._report(update, "jump", not is_guessing and loss > before + _JUMP, jump)

    def validation(self, update: int, result: Validation) -> None:
        """Check the result of a validation."""
        self._zeroes = self._zeroes + 1 if result.values["bleu"] == 0.0 else 0
        zero = (
            f"BLEU has been exactly 0 in {self._zeroes} validations: look at the sample translations; where they "
            "are wrong, check that line by line the files are translations of each other (mt-train --check)"
        )
        self._report(update, "zero", self._zeroes >= _ZEROES, zero)
        is_grown = update > max(_YOUNG, self.settled_at)
        copies = (
            f"{result.copied:.0%} of the translations are their sources: look for copies in the training text "
            "(mt-train --check; cleaning.copies=true drops them)"
        )
        self._report(update, "copies", is_grown and result.copied > _COPIES, copies)
        loops = (
            f"{result.repeated:.0%} of the translations say something over and over: as a rule the model has "
            "learnt too little yet, or the text is too small for it"
        )
        self._report(update, "loops", is_grown and result.repeated > _LOOPS, loops)

    def _report(self, update: int, kind: str, is_seen: bool, message: str) -> None:
        if is_seen and kind not in self._reported:
            self._say(f"warning: update {update}: {message}")
        # A kind that is not seen now is forgotten, so that it is reported again when it comes back.
        self._reported = self._reported | {kind} if is_seen else self._reported - {kind}
