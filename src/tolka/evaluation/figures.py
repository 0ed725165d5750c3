"""The figures that a training is judged by, and the level that they give."""

from dataclasses import dataclass

USELESS, WEAK, ROUGH, USABLE, GOOD = "useless", "weak", "rough", "usable", "good"

# Least BLEU of each level: by Google Cloud's rule of thumb (AutoML Translation, Evaluate models) translations of 30 to
# 40 are understandable to good, of 50 to 60 adequate and fluent, and below 10 almost useless. Where BLEU has no
# tokenizer of its own, least chrF2: with spaces between words, and without. Nobody has calibrated these two.
_BANDS = {
    "BLEU": {GOOD: 50.0, USABLE: 30.0, ROUGH: 12.0},
    "chrF2": {GOOD: 70.0, USABLE: 50.0, ROUGH: 33.0},
    "chrF2 without spaces": {GOOD: 45.0, USABLE: 30.0, ROUGH: 18.0},
}


@dataclass(frozen=True)
class Evidence:
    """The figures of one training. Losses are nats per token without label smoothing or dropout; shares are 0 to 1.

    test: what was scored; is_validation: for want of a test set. scale: of _BANDS. nearly_right: share of its lines
    with chrF2 of at least 75. copied: share of translations that are their source where the reference is not.
    commonest: share of the commonest translation. copy_chrf, line_chrf: of the sources as translations, and of the
    commonest target line. valid_chrf: of the best model's validation. source_gain: by how much each line's own source
    lowers the validation loss, against another line's. unrelated, unrelated_valid: estimated share of pairs, in the
    training text and in the validation text, whose own source helps no more than another one. unigram_loss: of the
    validation text if tokens came by their frequency alone. train_loss: of a sample of the training text. gained:
    what the last third of the training, or of the updates before its rate fell, added to the validation score.
    one_target: share of the commonest target line of the training text. peak_until: the update after which the rate
    fell, where that was in the second half of the training; else 0. rate: the peak; 0 if the optimizer's usual rates
    are not known. sides: what is wrong with those of the texts. parent: the name that a model of these languages would
    have; "" where training began with one.
    """

    test: str
    is_validation: bool
    lines: int
    scale: str
    bleu: float
    bleu_interval: tuple[float, float] | None
    chrf: float
    nearly_right: float
    copied: float
    commonest: float
    copy_chrf: float
    line_chrf: float
    valid_chrf: float
    source_gain: float
    unrelated: float
    unrelated_valid: float
    unigram_loss: float
    valid_loss: float
    train_loss: float
    gained: float
    pairs: int
    passes: float
    updates: int
    minutes: float
    subwords_per_word: float
    vocabulary: int
    one_target: float
    peak_until: int
    rate: float
    dropout: float
    width: int
    sides: str
    parent: str

    @property
    def score(self) -> float:
        """The test score that levels are by."""
        return self.bleu if self.scale == "BLEU" else self.chrf

    @property
    def has_one_answer(self) -> bool:
        """Whether most lines get the same translation; of a few lines that may be right."""
        return self.commonest > 0.5 and self.lines >= 10

    @property
    def is_blind(self) -> bool:
        """Whether the model makes next to nothing of its source."""
        # Both, as tokens of single characters follow from the target's own beginning: their source gains little each.
        return self.source_gain < 0.05 * self.valid_loss and self.unrelated_valid > 0.35

    @property
    def has_learnt_nothing(self) -> bool:
        """Whether frequencies of tokens alone would predict the validation text about as well."""
        return self.valid_loss > 0.93 * self.unigram_loss

    @property
    def noise(self) -> float:
        """Estimated share of training pairs that are unrelated, beside what this model cannot tell in any text."""
        return max(0.0, (self.unrelated - self.unrelated_valid) / max(0.05, 1 - self.unrelated_valid))

    @property
    def level(self) -> str:
        """The level of the model by its scores alone."""
        # Two points: what chance moves a score of some hundred lines by.
        is_no_better = self.chrf < max(self.copy_chrf, self.line_chrf) + 2.0
        if is_no_better or self.has_one_answer or (self.bleu < 1.0 and self.chrf < 20.0):
            return USELESS
        return next((level for level, least in _BANDS[self.scale].items() if self.score >= least), WEAK)

    @property
    def is_learnt_by_heart(self) -> bool:
        """Whether the training text has become far easier for the model than other text."""
        return self.train_loss < 0.5 * self.valid_loss

    @property
    def is_improving(self) -> bool:
        """Whether the last third of the training still added a tenth to the score, or more than a point."""
        return self.gained > min(1.0, 0.1 * max(self.score, 1.0))
