"""Warnings during training: each is given once, and again only if the problem went away and came back."""

import math
from collections import deque
from collections.abc import Callable, Iterator
from statistics import median

from tolka.metrics.scores import Validation

_LATELY = 10  # lines of the log
_FEWEST = 5
_JUMP = 1.0  # nats above the median of these: each token e times less likely
_GUESSING = 2.0  # nats above those of a guess
_ZEROES = 5  # validations
_COPIES, _LOOPS = 0.2, 0.1  # shares of the translations
_YOUNG = 2000  # updates of which loops and copies are to be expected


class Watch:
    """Watches the losses and validations of one training."""

    def __init__(self, vocabulary: int, settled_at: int, say: Callable[[str], None]) -> None:
        """vocabulary: size of the target's. settled_at: the last update of warm-up; from then on losses are checked."""
        self._guess = math.log(vocabulary)
        self._settled_at, self._say = settled_at, say
        self._losses: deque[float] = deque(maxlen=_LATELY)
        self._zeroes = 0
        self._known: set[str] = set()

    def loss(self, update: int, loss: float) -> None:
        """Check a training loss: nll per token in nats."""
        found = dict(self._in_loss(update, loss))
        self._losses.append(loss)
        self._tell(update, found, ("jump", "guess"))

    def _in_loss(self, update: int, loss: float) -> Iterator[tuple[str, str]]:
        if update > self._settled_at and loss > self._guess + _GUESSING:
            yield (
                "guess",
                f"the training loss is {loss:.2f} nats a token, and a uniform guess costs {self._guess:.2f}: "
                "try a lower optimizer.lr or a longer scheduler.warmup",
            )
        elif len(self._losses) >= _FEWEST and loss > median(self._losses) + _JUMP:
            yield (
                "jump",
                f"the training loss has jumped from about {median(self._losses):.2f} to {loss:.2f} nats a token: if it "
                "stays there, try a lower optimizer.lr, a longer scheduler.warmup or a smaller trainer.clip_norm",
            )

    def validation(self, update: int, found: Validation) -> None:
        """Check a validation."""
        self._zeroes = self._zeroes + 1 if found.values["bleu"] == 0.0 else 0
        self._tell(update, dict(self._in_validation(update, found)), ("zero", "copies", "loops"))

    def _in_validation(self, update: int, found: Validation) -> Iterator[tuple[str, str]]:
        if self._zeroes >= _ZEROES:
            yield (
                "zero",
                f"BLEU has been exactly 0 in {self._zeroes} validations: look at the sample translations; where they "
                "are wrong, check that line by line the files are translations of each other (mt-train --check)",
            )
        if update > max(_YOUNG, self._settled_at) and found.copied > _COPIES:
            yield (
                "copies",
                f"{found.copied:.0%} of the translations are their sources: look for copies in the training text "
                "(mt-train --check; cleaning.copies=true drops them)",
            )
        if update > max(_YOUNG, self._settled_at) and found.repeated > _LOOPS:
            yield (
                "loops",
                f"{found.repeated:.0%} of the translations say something over and over: as a rule the model has learnt "
                "too little yet, or the text is too small for it",
            )

    def _tell(self, update: int, found: dict[str, str], kinds: tuple[str, ...]) -> None:
        for kind, message in found.items():
            if kind not in self._known:
                self._say(f"warning: update {update}: {message}")
        self._known = (self._known - set(kinds)) | found.keys()
