"""What is measured of a finished training, and what follows from it: the level of its model, and its faults."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

USELESS, WEAK, ROUGH, USABLE, GOOD = LEVELS = "useless", "weak", "rough", "usable", "good"
# Least BLEU of each level, by Google Cloud's rule of thumb (AutoML Translation, Evaluate models): from 20 the gist is
# clear, from 30 on translations are understandable to good, from 50 on adequate and fluent. Where BLEU has no tokenizer
# of its own, least chrF2: with spaces between words, and without. Nobody has calibrated these two.
_BANDS = {
    "BLEU": {GOOD: 50.0, USABLE: 30.0, ROUGH: 20.0},
    "chrF2": {GOOD: 70.0, USABLE: 50.0, ROUGH: 40.0},
    "chrF2 without spaces": {GOOD: 45.0, USABLE: 30.0, ROUGH: 22.0},
}
# Of a model's translations of Tatoeba's test sentences, most above 75 said what the reference says, but for one word or
# its ending; of those from 65 to 75 about half said something else.
NEARLY_RIGHT = 75.0
"""Least chrF2 of a line that is nearly right."""
FEW_PAIRS = 500
"""Pairs; with fewer, no model here that began with random weights has learnt anything."""
OTHER_KIND = 0.7
"""Share of a text's chrF2 below which that of another text shows that it is of another kind."""
BLIND = 0.35
"""Share of validation pairs for which another source serves as well, from which on a model tells none apart."""
_FALLING = 0.005  # share of the validation loss that the last third took off
_CHANCE = 2.0  # points: what chance moves a score of some hundred lines by
FEW_LINES = 100
"""Lines of a test set; fewer leave a level in doubt, as does a wide interval."""
_WIDE = 10.0  # points


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What was measured of one training. Losses are nats per token, and shares 0 to 1.

    How the model fits the set that it is judged by. test: the set's name; is_validation: for want of a test set. lines:
    of it, at most 500. scale: of _BANDS; interval: of the score that it names. over_copy, over_line: 95 % intervals of
    what translations gain in chrF2 over copies of the sources, and over the commonest target line, line by line.
    commonest: share of the commonest translation, less that of the commonest reference. unseen: BLEU and chrF2 of the
    lines that are not in the training text; None for too few. valid: the same of the best model's validation. gain,
    train_gain: what its own source takes off the loss, beside another line's, in validation and in training. unrelated:
    share of training pairs with a loss that another source would lower.

    How the training went. rate: the highest that was reached; 0 if the optimizer's usual rates are not known. peak: the
    one that was set. gained: points that the last third of the updates added to the score in validation; loss_fell:
    share of the loss that it took off; peak_until: the update after which the rate fell, where that was in the second
    half; else 0. began_as: the model that it started from; brought_nothing: whether that is the best one still; before:
    its score on the test, if measured; forgotten: test, score, before and now, where another test is worse.

    What the texts are. test_fault, sides, shift: what is wrong with the test set, the sides of a text, and where one
    stops to be parallel, in words. correlation, valid_correlation: of the lengths of both sides, among pairs as long as
    most in validation; None for too few. ratio: characters of a target for one of its source in training, relative to
    the validation set. copies: share of training pairs with equal sides; one_target: of the commonest target line.
    leaked, near: share of the set's lines that are in the training text, and that have most of their words in a pair
    there. rare: share of the vocabulary that comes fewer than 5 times in the training text. longest: subwords of a
    source that the model was trained on; too_long: share of the set's sources that have more.
    """

    test: str
    is_validation: bool
    lines: int
    scale: str
    bleu: float
    chrf: float
    interval: Sequence[float] | None
    copy_chrf: float
    over_copy: Sequence[float]
    line_chrf: float
    over_line: Sequence[float]
    nearly_right: float
    copied: float
    commonest: float
    unseen: Sequence[float] | None
    valid: Sequence[float]
    train_loss: float
    valid_loss: float
    unigram_loss: float
    gain: float
    train_gain: float
    unrelated: float
    unrelated_valid: float

    updates: int
    passes: float
    minutes: float
    rate: float
    peak: float
    warmup: int
    gained: float | None
    loss_fell: float
    peak_until: int
    width: int
    dropout: float
    began_as: str = ""
    brought_nothing: bool = False
    before: Sequence[Any] | None = None
    forgotten: Sequence[Sequence[Any]] = ()

    pairs: int
    vocabulary: int
    subwords_per_word: float
    test_fault: str = ""
    sides: str = ""
    shift: str = ""
    correlation: float | None = None
    valid_correlation: float | None = None
    ratio: float = 1.0
    copies: float = 0.0
    one_target: float = 0.0
    leaked: float = 0.0
    near: float = 0.0
    rare: float = 0.0
    longest: int = 0
    too_long: float = 0.0

    @property
    def unseen_scores(self) -> Sequence[float]:
        """BLEU and chrF2 of the lines that are not in the training text; in validation, where all of them are."""
        return self.valid if self.unseen is None else self.unseen

    @property
    def is_flattered(self) -> bool:
        """Whether lines of the training text make the score better than that of the others."""
        better = max(self.bleu - self.unseen_scores[0], self.chrf - self.unseen_scores[1])
        # Of a fifth of leaked lines, no score is one of new text. Sentences of like kind have words in common, too.
        if self.near > 0.2 and better > 5 * _CHANCE:
            return True
        return self.leaked > (0.02 if better > _CHANCE else 0.2)

    @property
    def score(self) -> float:
        """The test score that levels are by."""
        of_scale = int(self.scale != "BLEU")
        return (self.unseen_scores if self.is_flattered else (self.bleu, self.chrf))[of_scale]

    @property
    def level(self) -> str:
        """The level of the model by its scores alone."""
        is_one_line = self.commonest > 0.5 and self.lines >= 10
        # Between near dialects a copy is nearly right: a tenth of what it lacks is enough there.
        trivial = ((self.copy_chrf, self.over_copy), (self.line_chrf, self.over_line))
        is_no_better = any(over[1] < min(_CHANCE, (100 - chrf) / 10) for chrf, over in trivial)
        if is_no_better or is_one_line or (self.bleu < 1.0 and self.chrf < 20.0):
            return USELESS
        return self._level_of(self.score)

    @property
    def least_level(self) -> str:
        """The level that the score may have as well, as its interval is wide; `level` where it is sure."""
        low, high = self.interval or (self.score, self.score)
        few = not self.interval and self.lines < FEW_LINES
        if self.level in (USELESS, WEAK) or self.is_flattered or not (few or high - low > _WIDE):
            return self.level
        return WEAK if few else self._level_of(low)

    def _level_of(self, score: float) -> str:
        return next((level for level, least in _BANDS[self.scale].items() if score >= least), WEAK)

    def is_at_most(self, level: str) -> bool:
        """Return whether the model is of this level or a lower one."""
        return LEVELS.index(self.level) <= LEVELS.index(level)

    @property
    def is_blind(self) -> bool:
        """Whether the model makes next to nothing of its source."""
        # Both, as tokens of single characters follow from the target's own beginning: their source gains little each.
        return self.gain < 0.05 * self.valid_loss and self.unrelated_valid > BLIND

    @property
    def has_learnt_nothing(self) -> bool:
        """Whether frequencies of tokens alone would predict the validation text about as well."""
        return self.valid_loss > 0.93 * self.unigram_loss

    @property
    def has_had_time(self) -> bool:
        """Whether a model had time to learn something; a stream has no passes."""
        return not self.passes < 2 and self.updates >= 300

    @property
    def is_unlike_validation(self) -> bool:
        """Whether lengths do not correlate in the training text, as they do in the validation text."""
        own, valid = self.correlation, self.valid_correlation
        return own is not None and valid is not None and valid > 0.4 and own < 0.5 * valid

    @property
    def noise(self) -> float:
        """Estimated share of training pairs that are unrelated, beside what this model cannot tell in any text."""
        own, valid = self.correlation, self.valid_correlation
        if own is not None and valid is not None:
            # The lengths of unrelated pairs do not correlate: where they do, the model finds a kind of text hard, and
            # where they do not, they tell more than a model that makes nothing of any source.
            if own > 0.9 * valid:
                return 0.0
            if self.is_blind and self.is_unlike_validation:
                return 1 - max(0.0, own) / valid
        if self.unrelated_valid > 0.8:
            return 0.0
        return max(0.0, (self.unrelated - self.unrelated_valid) / max(0.05, 1 - self.unrelated_valid))

    @property
    def is_learnt_by_heart(self) -> bool:
        """Whether the training text has become far easier for the model than other text."""
        return self.train_loss < 0.5 * self.valid_loss

    @property
    def is_improving(self) -> bool:
        """Whether the last third of the training added a tenth to the score, or a point, or made the loss lower."""
        gained = (self.gained or 0.0) > min(1.0, 0.1 * max(self.score, 1.0))
        return not self.brought_nothing and (gained or self.loss_fell > _FALLING)
