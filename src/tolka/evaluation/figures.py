"""The figures that a training is judged by, and the level that they give."""

from dataclasses import dataclass

USELESS, WEAK, ROUGH, USABLE, GOOD = "useless", "weak", "rough", "usable", "good"

# Least BLEU of each level, by Google Cloud's rule of thumb (AutoML Translation, Evaluate models): from 20 the gist is
# clear, from 30 on translations are understandable to good, from 50 on adequate and fluent. Where BLEU has no tokenizer
# of its own, least chrF2: with spaces between words, and without. Nobody has calibrated these two.
_BANDS = {
    "BLEU": {GOOD: 50.0, USABLE: 30.0, ROUGH: 20.0},
    "chrF2": {GOOD: 70.0, USABLE: 50.0, ROUGH: 40.0},
    "chrF2 without spaces": {GOOD: 45.0, USABLE: 30.0, ROUGH: 22.0},
}
FIGURES = {
    "nearly_right": "share of lines nearly right",
    "copied": "share of translations that are their sources",
    "commonest": "share of the commonest translation",
    "copy_chrf": "chrF2 of the sources as translations",
    "line_chrf": "chrF2 of the commonest target line",
    "valid_chrf": "chrF2 in validation",
    "train_loss": "loss on training text, in nats a token",
    "valid_loss": "loss in validation",
    "unigram_loss": "loss if tokens came by their frequency alone",
    "source_gain": "what its own source takes off the loss, beside another line's",
    "unrelated": "estimated share of unrelated pairs in the training text",
    "unrelated_valid": "the same in the validation text",
    "one_target": "share of the commonest target line of the training text",
    "gained": "points that the last third added",
    "loss_fell": "share of the loss that it took off",
    "pairs": "training pairs",
    "passes": "passes through them",
    "subwords_per_word": "subwords for a word",
    "too_long": "share of sources longer than any in training",
    "leaked": "share of lines that are in the training text",
    "unseen_bleu": "BLEU of the other lines",
    "unseen_chrf": "chrF2 of the other lines",
    "rare": "share of the references' subwords that come fewer than 5 times in training",
}
"""Names of what stands below a verdict for readers, besides what its sentences say."""
# Of a model's translations of Tatoeba's test sentences, most above 75 said what the reference says, but for one word or
# its ending; of those from 65 to 75 about half said something else.
NEARLY_RIGHT = 75.0
"""Least chrF2 of a line that is nearly right."""
BLIND = 0.35
"""Share of validation pairs for which another line's source serves as well, from which on a model tells none apart."""
FEW_PAIRS = 500
"""Pairs; with fewer, no model here that began with random weights has learnt anything."""
OTHER_KIND = 0.7
"""Share of a text's chrF2 below which that of another text shows that it is of another kind."""
_FALLING = 0.005  # share of the validation loss that the last third took off


@dataclass(frozen=True)
class Evidence:
    """The figures of one training. Losses are nats per token without label smoothing or dropout; shares are 0 to 1.

    What FIGURES names is explained there. test: what was scored; is_validation: for want of a test set. scale: of
    _BANDS. valid_bleu, valid_chrf: of the best model's validation. peak_until: the update after which the rate fell,
    where that was in the second half of the training; else 0. rate: the peak; 0 if the optimizer's usual rates are not
    known. sides: what is wrong with those of the texts. began_as: the model that training started from. before: its
    score on the test, in words; "" where it was not measured. forgotten: other tests that are worse now, in words.
    elsewhere: the scores of test sets of another kind, in words. longer: how the training would go on. shift: where
    the training text's sides stop to be parallel, in words. longer_command, more_command, parent_command: what to type
    to go on, to train on more text, and to begin as a model of these languages ("" where that is not known). longest:
    subwords of a source that the model was trained on. warmup: updates in which its rate rose.
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
    loss_fell: float
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
    began_as: str
    before: str
    forgotten: str
    longer: str
    shift: str = ""
    too_long: float = 0.0
    longest: int = 0
    leaked: float = 0.0
    unseen_bleu: float = 0.0
    unseen_chrf: float = 0.0
    valid_bleu: float = 0.0
    rare: float = 0.0
    longer_command: str = ""
    more_command: str = ""
    parent_command: str = ""
    elsewhere: str = ""
    warmup: int = 0

    @property
    def is_flattered(self) -> bool:
        """Whether lines of the training text make the score better than that of the others."""
        # Two points, as for `level`. Of a fifth of leaked lines, no score is one of new text.
        is_better = self.bleu > self.unseen[0] + 2.0 or self.chrf > self.unseen[1] + 2.0
        return self.leaked > (0.02 if is_better else 0.2)

    @property
    def is_elsewhere_worse(self) -> bool:
        """Whether other test sets are of another kind, and not only without lines of the training text."""
        return bool(self.elsewhere) and not self.is_flattered

    @property
    def unseen(self) -> tuple[float, float]:
        """BLEU and chrF2 of the lines that are not in the training text; in validation, where all of them are."""
        return (self.unseen_bleu, self.unseen_chrf) if self.leaked < 1 else (self.valid_bleu, self.valid_chrf)

    @property
    def score(self) -> float:
        """The test score that levels are by."""
        if self.is_flattered:
            return self.unseen[self.scale != "BLEU"]
        return self.bleu if self.scale == "BLEU" else self.chrf

    @property
    def has_one_answer(self) -> bool:
        """Whether most lines get the same translation; of a few lines that may be right."""
        return self.commonest > 0.5 and self.lines >= 10

    @property
    def is_blind(self) -> bool:
        """Whether the model makes next to nothing of its source."""
        # Both, as tokens of single characters follow from the target's own beginning: their source gains little each.
        return self.source_gain < 0.05 * self.valid_loss and self.unrelated_valid > BLIND

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
        """Whether the last third of the training added a tenth to the score, or a point, or made the loss lower."""
        return self.gained > min(1.0, 0.1 * max(self.score, 1.0)) or self.loss_fell > _FALLING
