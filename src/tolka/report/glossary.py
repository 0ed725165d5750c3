"""The glossary: what each figure on a page means, which way is better, and its source."""

from collections.abc import Iterable
from dataclasses import dataclass

HIGHER, LOWER = "higher", "lower"


@dataclass(frozen=True)
class Term:
    """An entry. better: HIGHER, LOWER or "". sentence: what it is. more: its limits and source."""

    anchor: str
    name: str
    better: str
    sentence: str
    more: str = ""

    @property
    def arrow(self) -> str:
        """An arrow that shows which way is better."""
        return {HIGHER: "↑", LOWER: "↓"}.get(self.better, "")


# In the page, not in docs/: it is opened from disk, where no documentation lies beside it.
_TERMS = (
    Term(
        "parameters",
        "parameters",
        "",
        "How many trained numbers the model has: more of them can hold more, and take longer.",
    ),
    Term(
        "importance",
        "importance",
        "",
        "The share of the differences between the trainings' best validations that goes with this setting.",
        "Of settings whose values repeat, the variance between the groups (eta squared); of numbers that are all "
        "different, the squared rank correlation. Few trainings make every share too large, and the shares of settings "
        "that were changed together cannot be told apart.",
    ),
    Term("updates", "updates", "", "How many times training has changed the weights."),
    Term(
        "minutes",
        "minutes",
        "",
        "How long training took, with all that was measured on the way (validation, gradient flow).",
    ),
    Term(
        "speed",
        "target tokens/s",
        HIGHER,
        "Tokens of the target side that training got through in a second, validations left out; higher is faster.",
        "It depends on the machine, and on what else ran on it.",
    ),
    Term(
        "bleu",
        "BLEU",
        HIGHER,
        "How many of a translation's words, and runs of two to four words, are in the reference, from 0 to 100; "
        "higher is better.",
        "It counts over the whole test set, and a synonym is as wrong as any other word. Scores compare on one test "
        "set under one signature; a difference smaller than the intervals may be chance. Papineni et al. 2002, "
        "computed by sacreBLEU (Post 2018).",
    ),
    Term(
        "bleu-lc",
        "BLEU-4 lc tok",
        HIGHER,
        "BLEU on lower-cased, tokenised text without smoothing, for comparison with papers that report it; higher is "
        "better.",
    ),
    Term(
        "chrf",
        "chrF2",
        HIGHER,
        "How many runs of one to six characters translation and reference share, from 0 to 100; higher is better.",
        "What the reference has counts twice as much as what the translation has. It is kinder than BLEU to languages "
        "with many forms of a word, and needs no tokenizer. Popović 2015.",
    ),
    Term(
        "chrf-words",
        "chrF2++",
        HIGHER,
        "chrF2 that counts words and pairs of words as well; higher is better.",
        "It agrees a little better with people's judgement than characters alone. Popović 2017.",
    ),
    Term(
        "ter",
        "TER",
        LOWER,
        "How many edits a hundred words of the reference take: words put in, left out, replaced or moved; lower is "
        "better.",
        "It can be above 100, where a translation is much longer than its reference. Snover et al. 2006.",
    ),
    Term(
        "ppl",
        "PPL",
        LOWER,
        "Perplexity: among how many tokens, on average, the model is undecided at each token of the reference; lower "
        "is better, and 1 would be certain.",
        "It is the exponential of the loss, without label smoothing. Perplexities per token compare between models "
        "with the same subwords.",
    ),
    Term(
        "decoding",
        "sentences/s",
        HIGHER,
        "Sentences of the test set translated in a second; higher is faster.",
        "It depends on the machine, on the search, and on how long the translations are.",
    ),
    Term(
        "interval",
        "95 % interval",
        "",
        "The small figures below a score: where it would be, 95 times in 100, on other sentences of the same kind.",
        "Found by bootstrap: the test set's sentences are drawn again and again, with repetitions. Koehn 2004.",
    ),
    Term(
        "p",
        "p",
        "",
        "How likely so large a difference is if both models are equally good; below 0.05 it is hardly chance.",
        "By approximate randomisation: the models exchange translations of sentences drawn by chance, again and "
        "again. Riezler and Maxwell 2005.",
    ),
    Term(
        "loss",
        "loss",
        LOWER,
        "How surprised the model is by each token of a reference, in nats; lower is better.",
        "It is the negative log-likelihood, without label smoothing. Validation loss that rises again during training "
        "shows overfitting: more text, more dropout or an earlier end help.",
    ),
    Term(
        "length",
        "BLEU by length",
        HIGHER,
        "BLEU of short and of long sentences apart; higher is better, and a fall to the right shows that long ones are "
        "translated worse.",
        "Each point has about as many sentences. A model without attention has one vector for a source of any length, "
        "and falls most.",
    ),
    Term(
        "flow",
        "gradient flow",
        "",
        "How strongly the loss depends on each state of the encoder's first layer; level is better.",
        "A curve that falls to the right hardly learns from the beginning of the sentence; one that rises there makes "
        "updates erratic. It is the norm of the derivative of a sentence's loss with respect to the state, in nats. "
        "Bengio et al. 1994; Pascanu et al. 2013.",
    ),
    Term(
        "attention",
        "attention",
        "",
        "A row is a subword of the translation, a column one of the source: the stronger the colour of their square, "
        "the more the model attended to that column as it wrote that row; neither is better.",
        "In a trained model the squares of words that translate each other stand out. A map is the mean over the heads "
        "of the last layer, computed again from the finished translation; each row adds up to 1. It shows at which "
        "states the model attended, which need not be why it chose a word. Bahdanau et al. 2015; Vaswani et al. 2017.",
    ),
)
_BY_ANCHOR = {term.anchor: term for term in _TERMS}
_BY_NAME = {term.name: term for term in _TERMS}


def entry(anchor: str) -> Term:
    """Return the entry of an anchor; KeyError if there is none."""
    return _BY_ANCHOR[anchor]


def entry_of(column: str) -> Term | None:
    """Return the entry of a table's column by its printed name ("PPL per token" is a kind of PPL); None if unknown."""
    return _BY_NAME.get(column) or _BY_NAME.get(column.split()[0])


def in_order(anchors: Iterable[str]) -> list[Term]:
    """Return the entries of these anchors, each once, in the glossary's order."""
    wanted = set(anchors)
    return [term for term in _TERMS if term.anchor in wanted]
