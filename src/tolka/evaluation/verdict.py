"""The verdict on a finished training: rules over plain figures, and the sentences that they give.

The first sentence says whether the model is usable, and the main reason. Thresholds are those that told eight sound
trainings from twelve spoiled ones (`benchmarks/verdicts.py`), unless a line names another source.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tolka.evaluation.figures import FEW_PAIRS, GOOD, NEARLY_RIGHT, OTHER_KIND, ROUGH, USABLE, USELESS, WEAK, Evidence

_OPENINGS = {
    USELESS: "This model is useless",
    WEAK: "This model is not usable yet",
    ROUGH: "This model is good for rough drafts only",
    USABLE: "This model is usable for text like {set} if a person corrects its translations",
    GOOD: "This model is good for text like {set}",
}
# Peaks of Adam and AdamW outside of which training is known to stall or to diverge at the sizes here.
_RATES = 1e-4, 0.01


class Advice(NamedTuple):
    """What to try next, a sentence, and what to type for it, in which {run} stands for the run's folder."""

    words: str
    command: str


@dataclass(frozen=True)
class Rule:
    """A cause, whether it applies, the reason and what to try next: texts for `format`."""

    cause: str
    applies: Callable[[Evidence], bool]
    reason: str
    advice: Advice


_CHECK = Advice(
    "Look for what is wrong in the text (a minute or two). It shows the lines:", "mt-train --rerun {run} --check"
)
_MORE_TEXT = Advice(
    "Add text, which helps most: {pairs:,} pairs are few. MORE stands for it, as data/more for data/more.en and "
    "its other side:",
    "{more_command}",
)
_PARENT = Advice("Or begin with a model that knows these languages, if there is one of this name:", "{parent_command}")
_LONGER = Advice("Train longer: {longer}.", "{longer_command}")
_OLD_TEXT = Advice(
    "To forget less, add text of the old kind to the training files, or train adapters:",
    "mt-train --rerun {run} finetuning.lora_rank=32",
)
_OWN_KIND = Advice(
    "Fine-tune it on text of the kind to be translated, whose place MORE has:",
    "mt-train run.init_from={run} corpus=files corpus.train=MORE corpus.valid=auto",
)
_LARGER = Advice("Train a larger model ({again} or more):", "mt-train --rerun {run} model.d_model={wider}")
_RATE = Advice("Train again with a usual learning rate ({again}):", "mt-train --rerun {run} optimizer.lr=0.001")
# The first that applies is the main reason. Faults of the text come before those of the training, as no setting mends
# them; then what keeps a model from learning anything; then what limits one that has learnt.
RULES = [
    Rule(
        "one_target",
        lambda e: e.one_target > 0.3 and e.has_one_answer,
        "{commonest:.0%} of its translations are one and the same line, and so are {one_target:.0%} of its training "
        "targets",
        Advice(
            "Remove the repeated target line from the training files ({again} to train). To see it:", _CHECK.command
        ),
    ),
    Rule(
        "copies",
        lambda e: e.copied > 0.2,
        "it copies: {copied:.0%} of its translations are their sources",
        Advice("Drop pairs of two equal sides ({again}):", "mt-train --rerun {run} cleaning.copies=true"),
    ),
    Rule(
        "shift",
        # A model that tells few pairs apart in any text says nothing against what the lengths show.
        lambda e: bool(e.shift) and (e.unrelated - e.unrelated_valid > 0.05 or e.unrelated_valid > 0.5),
        "its training text stops to be parallel: {shift}",
        Advice("Mend the files there. Each range, with examples, shows:", _CHECK.command),
    ),
    Rule(
        "sides",
        lambda e: bool(e.sides) and e.level in (USELESS, WEAK),
        "{sides}",
        Advice("Mend that, and train again ({again}). To see the lines:", _CHECK.command),
    ),
    Rule(
        "high_rate",
        lambda e: e.has_learnt_nothing and e.rate > _RATES[1],
        "it has learnt nothing, as the learning rate ({rate:g}) is far too high",
        _RATE,
    ),
    Rule(
        "low_rate",
        lambda e: (e.has_learnt_nothing or e.is_blind) and 0 < e.rate < _RATES[0],
        "it has learnt next to nothing, as the learning rate ({rate:g}) is far too low",
        _RATE,
    ),
    Rule(
        "few_pairs",
        lambda e: e.is_blind and e.pairs < FEW_PAIRS and not e.began_as,
        "{pairs} pairs are far too few to learn a language from",
        _MORE_TEXT,
    ),
    Rule(
        "noisy",
        lambda e: e.unrelated - e.unrelated_valid > 0.15 and e.unrelated_valid < 0.8,
        "about {noise:.0%} of its training pairs do not seem to be translations of each other, and hold it back",
        _CHECK,
    ),
    Rule(
        "stopped_early",
        lambda e: (
            ((e.has_learnt_nothing or e.is_blind) and (e.passes < 2 or e.updates < 300))
            or (e.updates < e.warmup and e.level in (USELESS, WEAK))
        ),
        "it was trained for {updates} updates ({passes:.1f} passes through its text), which is far too short",
        _LONGER,
    ),
    # Shuffled text and such a model both ignore the source; only a wider one shows which it is.
    Rule(
        "narrow",
        lambda e: e.is_blind and e.width < 64,
        "it is too small (model.d_model={width}) to make anything of its source",
        _LARGER,
    ),
    Rule(
        "unrelated",
        lambda e: e.is_blind and e.level in (USELESS, WEAK),
        "it ignores its source, so line by line its training files do not seem to be translations of each other",
        _CHECK,
    ),
    Rule(
        "leak",
        lambda e: e.is_flattered,
        "{leaked:.0%} of the lines of {set} are in its training text, and {without} it has BLEU {unseen[0]:.1f} and "
        "chrF2 {unseen[1]:.1f}",
        Advice("Train without them, for a score that holds ({again}):", "mt-train --rerun {run} cleaning.leaks=source"),
    ),
    Rule(
        "other_domain",
        lambda e: not e.is_validation and e.chrf < OTHER_KIND * e.valid_chrf and e.valid_chrf > 25.0,
        "it was trained on text of another kind than the test set {test} (chrF2 {chrf:.1f}, not {valid_chrf:.1f})",
        _OWN_KIND,
    ),
    Rule(
        "long_lines",
        lambda e: e.too_long > 0.2 and e.level in (USELESS, WEAK, ROUGH),
        "{too_long:.0%} of the lines of {set} have more than the {longest} subwords that it was trained on, and are "
        "translated in parts",
        Advice(
            "Give one sentence a line, or train on longer lines ({again}):",
            "mt-train --rerun {run} batching.max_length={twice_as_long}",
        ),
    ),
    Rule(
        "subwords",
        lambda e: e.subwords_per_word > 3.0 and e.vocabulary < 500 and e.level in (USELESS, WEAK, ROUGH),
        "its vocabulary of {vocabulary} subwords cuts a word into {subwords_per_word:.1f}",
        Advice("Train again with a larger vocabulary ({again}):", "mt-train --rerun {run} tokenizer.vocab_size=2000"),
    ),
    Rule(
        "large_vocabulary",
        lambda e: e.rare > 0.05 and e.vocabulary > 2000 and not e.began_as and e.level in (USELESS, WEAK, ROUGH),
        "its vocabulary of {vocabulary:,} subwords is too large for its text: {rare:.0%} of the subwords in the "
        "references come fewer than 5 times in training",
        Advice(
            "Train again with a smaller vocabulary ({again}):", "mt-train --rerun {run} tokenizer.vocab_size={fewer}"
        ),
    ),
    Rule(
        "by_heart",
        lambda e: e.is_learnt_by_heart and e.dropout < 0.2 and not e.began_as and e.level in (USELESS, WEAK, ROUGH),
        "it has learnt its training text by heart (loss {train_loss:.2f} there, {valid_loss:.2f} in validation)",
        Advice(
            "Train again with more dropout, until validations bring nothing better ({again} at most):",
            "mt-train --rerun {run} model.dropout=0.3 trainer.patience=4",
        ),
    ),
    Rule(
        "little_text",
        lambda e: e.pairs < 20_000 and e.level in (USELESS, WEAK) and e.train_loss < e.valid_loss - 0.5,
        "{pairs:,} pairs are too little text {purpose}",
        _MORE_TEXT,
    ),
    Rule(
        "small_model",
        lambda e: e.passes >= 10 and e.train_loss > e.valid_loss - 0.5 and e.level in (USELESS, WEAK, ROUGH),
        "it is too small for its text: after {passes:.0f} passes it does not fit even the lines that it was trained on",
        _LARGER,
    ),
    Rule(
        "improving",
        lambda e: e.level in (USELESS, WEAK, ROUGH) and e.is_improving,
        "it was still improving when its training ended",
        _LONGER,
    ),
]


# However it scores, a model that makes nothing of its source translates nothing.
_WORTHLESS = {"one_target", "copies", "high_rate", "low_rate", "few_pairs", "stopped_early", "unrelated"}


@dataclass(frozen=True)
class Verdict:
    """What came of a training. cause: the rule that gave the main reason, or "". next: what to try."""

    level: str
    cause: str
    sentences: list[str]
    next: list[Advice]
    figures: Evidence

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for scores.json."""
        return {**asdict(self), "next": [each._asdict() for each in self.next]}


def verdict(evidence: Evidence) -> Verdict:
    """Judge a training by its figures."""
    words = _words(evidence)
    rule = next((rule for rule in RULES if rule.applies(evidence)), None)
    level = evidence.level
    if rule and rule.cause in _WORTHLESS:
        level = USELESS
    reason = rule.reason.format(**words) if rule else _score_text(evidence)
    end = "" if reason.endswith("?") else "."
    sentences = [f"{_OPENINGS[level].format(**words)}: {reason}{end}", *_more_sentences(evidence, rule)]
    advice = [rule.advice] if rule else []
    if rule and rule.cause == "by_heart":
        advice.append(_MORE_TEXT)
    elif evidence.is_improving and _LONGER not in advice:
        advice.append(_LONGER)
    if evidence.forgotten:
        advice.append(_OLD_TEXT)
    if not advice and level != GOOD:
        advice.append(_MORE_TEXT if evidence.pairs < 100_000 else _LARGER)
    if evidence.is_elsewhere_worse and level in (GOOD, USABLE, ROUGH) and _OWN_KIND not in advice:
        advice.append(_OWN_KIND)
    if _MORE_TEXT in advice and evidence.parent_command:
        advice.append(_PARENT)
    following = [Advice(*(text.format(**words) for text in each)) for each in advice]
    return Verdict(level, rule.cause if rule else "", sentences, following, evidence)


def advice_of(verdict: Mapping[str, Any], run: Path) -> list[Advice]:
    """Return the advice of a verdict in scores.json, with what to type for this run's folder."""
    # Earlier versions had sentences alone.
    advice = [Advice(each, "") if isinstance(each, str) else Advice(**each) for each in verdict.get("next", [])]
    return [each._replace(command=each.command.replace("{run}", shlex.quote(str(run)))) for each in advice]


def _score_text(evidence: Evidence) -> str:
    """Return what was scored, and how well."""
    set_name = "the validation set, as there is no test set" if evidence.is_validation else evidence.test
    low, high = evidence.bleu_interval or (evidence.bleu, evidence.bleu)
    interval = f" ({low:.1f} to {high:.1f})" if evidence.bleu_interval else ""
    return f"BLEU {evidence.bleu:.1f}{interval} and chrF2 {evidence.chrf:.1f} on {set_name}"


def _more_sentences(evidence: Evidence, rule: Rule | None) -> Iterator[str]:
    """Yield what follows the first sentence: scores, fit, curve."""
    if rule:
        yield f"It has {_score_text(evidence)}."
    if evidence.before:
        yield f"It began as {evidence.began_as}, which has {evidence.before} there."
    if evidence.forgotten:
        yield f"It has forgotten some of what {evidence.began_as} could do: {evidence.forgotten}."
    if evidence.is_elsewhere_worse and evidence.level != USELESS:
        yield f"Text of another kind it translates far worse: {evidence.elsewhere}."
    yield (
        f"{evidence.nearly_right:.0%} of {evidence.lines} lines looked at are nearly right (chrF2 from "
        f"{NEARLY_RIGHT:.0f} on). Copying the source would have chrF2 {evidence.copy_chrf:.1f}, and the commonest "
        f"target line {evidence.line_chrf:.1f}."
    )
    # Where nothing was learnt, the curve says no more; nor where the first sentence has said what is in it.
    if rule and rule.cause in {*_WORTHLESS, "by_heart", "sides"}:
        return
    losses = f"a loss of {evidence.train_loss:.2f} on training text, and of {evidence.valid_loss:.2f} in validation"
    if evidence.is_learnt_by_heart:
        yield f"It fits its training text far better than other text: {losses}."
    elif evidence.train_loss > evidence.valid_loss - 0.2:
        yield f"It is not over-fitted: {losses}."
    else:
        yield f"It fits its training text somewhat better than other text: {losses}."
    third = "the last third " + ("before the learning rate fell" if evidence.peak_until else "of its training")
    points = f"{evidence.gained:.1f} points of {evidence.scale.split()[0]} in validation"
    loss = f", and took {evidence.loss_fell:.1%} off the loss" if evidence.loss_fell > 0.0005 else ""
    helped = "have helped" if evidence.is_improving else "hardly have helped"
    yield f"More time would {helped}: {third} added {points}{loss}."


def _words(evidence: Evidence) -> dict[str, Any]:
    """Return what reasons and advice are formatted with."""
    return {
        **asdict(evidence),
        "set": "its validation set" if evidence.is_validation else evidence.test,
        "noise": evidence.noise,
        "again": f"about {minutes_text(evidence.minutes)}",
        "purpose": "for what is new in them" if evidence.began_as else "to learn these languages from",
        "twice_as_long": 2 * evidence.longest,
        "run": "{run}",
        "unseen": evidence.unseen,
        "without": "without them" if evidence.leaked < 1 else "in validation",
        "fewer": max(500, evidence.vocabulary // 4),
        "wider": max(128, 2 * evidence.width),
    }


def minutes_text(minutes: float) -> str:
    """Return a number of minutes in words."""
    return f"{minutes:.0f} minutes" if minutes >= 1.5 else "a minute"
