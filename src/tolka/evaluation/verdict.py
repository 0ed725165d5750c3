"""The verdict on a finished training: its level, the first cause of a table that applies, and what to try next.

The first sentence says whether the model is usable, and the main reason. Thresholds are those that told sound
trainings from spoiled ones (`benchmarks/verdicts.py`), unless a line names another source.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tolka.evaluation.verdict_evidence import (
    FEW_LINES,
    FEW_PAIRS,
    GOOD,
    NEARLY_RIGHT,
    OTHER_KIND,
    ROUGH,
    USABLE,
    USELESS,
    WEAK,
    Evidence,
)

_KINDS = {
    USELESS: "useless",
    WEAK: "not usable yet",
    ROUGH: "good for rough drafts only",
    USABLE: "usable for text like {set} if a person corrects its translations",
    GOOD: "good for text like {set}",
}
# Peaks of Adam and AdamW outside of which training is known to stall or to diverge at the sizes here.
_LOW_RATE, _HIGH_RATE = 3e-5, 0.01


class Advice(NamedTuple):
    """What to try next, a sentence, and what to type for it, in which {run} stands for the run's folder."""

    words: str
    command: str


@dataclass(frozen=True)
class Commands:
    """What to type for this run: to train longer, in words too; on more text; or "" where it is not known.

    monolingual: to add text in the target language alone.
    """

    longer_words: str = ""
    longer: str = ""
    more: str = ""
    monolingual: str = ""


@dataclass(frozen=True)
class Rule:
    """A cause, whether it applies, the reason and what to try next: texts for `format`."""

    cause: str
    applies: Callable[[Evidence], bool]
    reason: str
    advice: Advice


def _again(how: str, settings: str) -> Advice:
    """Return the advice to train again in another way."""
    return Advice(f"Train again {how} ({{again}}):", f"mt-train --rerun {{run}} {settings}")


_CHECK = Advice(
    "Look for what is wrong in the text (a minute or two). It shows the lines:", "mt-train --rerun {run} --check"
)
_MORE_TEXT = Advice(
    "Add text, which helps most: {pairs:,} pairs are few{to_tune}. MORE stands for it, as data/more for data/more.en "
    "and its other side:",
    "{more}",
)
_MONOLINGUAL = Advice(
    "Or add text in the target language alone, whose place TEXT has (100 000 lines took 10 000 pairs of sentences from "
    "25.1 to 30.5 BLEU):",
    "{monolingual}",
)
_LONGER = Advice("Train longer: {longer_words}.", "{longer}")
_OLD_TEXT = Advice(
    "To forget less, add text of the old kind to the training files, or train adapters:",
    "mt-train --rerun {run} finetuning.lora_rank=32 trainer.average=0",
)
_OWN_KIND = Advice(
    "Fine-tune it on text of the kind to be translated, whose place MORE has:",
    "mt-train run.init_from={run} corpus=files corpus.train=MORE corpus.valid=auto",
)
_LARGER = Advice("Train a larger model ({again} or more):", "mt-train --rerun {run} model.d_model={wider}")
_RATE = _again("with a usual learning rate", "optimizer.lr={usual}")
# The first that applies is the main reason. With a broken test set no score says anything; faults of the text come
# before those of the training, as no setting mends them; then what keeps a model from learning anything; then what
# limits one that has learnt.
RULES = [
    Rule(
        "broken_test",
        lambda e: bool(e.test_fault),
        "its score says little, as {test_fault}",
        Advice("Mend the test set, and test again:", "mt-train --resume {run}"),
    ),
    Rule(
        "one_target",
        lambda e: e.one_target > 0.3 and e.commonest > 0.3,
        "{one_target:.0%} of its training targets are one and the same line, which it writes for most sources",
        Advice(
            "Remove the repeated target line from the training files ({again} to train). To see it:", _CHECK.command
        ),
    ),
    Rule(
        "copies",
        lambda e: e.copies > 0.1 and e.copied > 0.2 and e.is_at_most(ROUGH),
        "{copied:.0%} of its translations are their sources, as in {copies:.0%} of its training pairs",
        _again("without pairs of two equal sides", "cleaning.copies=true"),
    ),
    Rule(
        "sides",
        lambda e: bool(e.sides) and e.is_at_most(WEAK),
        "{sides}",
        Advice("Mend that, and train again ({again}). To see the lines:", _CHECK.command),
    ),
    Rule(
        "shift",
        # A model that tells few pairs apart in any text says nothing against what the lengths show.
        lambda e: bool(e.shift) and (e.unrelated - e.unrelated_valid > 0.05 or e.unrelated_valid > 0.5),
        "its training text stops to be parallel: {shift}",
        Advice("Mend the files there. Each range, with examples, shows:", _CHECK.command),
    ),
    Rule(
        "cut",
        lambda e: not 0.75 < e.ratio < 1.33 and e.is_at_most(ROUGH),
        "its training text has {ratio:.2f} times as many characters in a target for each one of its source as the "
        "validation set has: are texts cut off?",
        _CHECK,
    ),
    Rule(
        "unrelated",
        # Lengths show it before a model could have learnt anything, and whatever its size is.
        lambda e: (
            e.is_blind
            and (e.noise > 0.75 if e.is_unlike_validation else e.has_had_time and e.width >= 64)
            and e.train_gain < 0.05 * e.train_loss
        ),
        "it makes nothing of its source, so line by line its training files do not seem to be translations of each "
        "other",
        _CHECK,
    ),
    Rule(
        "high_rate",
        lambda e: e.has_learnt_nothing and e.rate > _HIGH_RATE,
        "it has learnt nothing, as the learning rate ({rate:g}) is far too high",
        _RATE,
    ),
    Rule(
        "low_rate",
        lambda e: (e.has_learnt_nothing or e.is_blind) and 0 < e.peak < _LOW_RATE and not e.began_as,
        "it has learnt next to nothing, as the learning rate ({peak:g}) is far too low",
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
        lambda e: e.noise > 0.15,
        "about {noise:.0%} of its training pairs do not seem to be translations of each other, and hold it back",
        _CHECK,
    ),
    Rule(
        "stopped_early",
        lambda e: (
            ((e.is_blind or e.has_learnt_nothing) and not e.has_had_time)
            or (e.updates < e.warmup and e.is_at_most(WEAK))
        ),
        "it was trained for {updates} updates ({passes:.1f} passes through its text), which is far too short",
        _LONGER,
    ),
    Rule(
        "narrow",
        lambda e: e.is_blind and e.width < 64 and not e.began_as,
        "it is too small (model.d_model={width}) to make anything of its source",
        _LARGER,
    ),
    Rule(
        "leak",
        lambda e: e.is_flattered,
        "{seen:.0%} of the lines of {set} are {nearly}in its training text, and {without} it has BLEU {unseen[0]:.1f} "
        "and chrF2 {unseen[1]:.1f}",
        _again("without them, for a score that holds", "cleaning.leaks=source"),
    ),
    Rule(
        "brought_nothing",
        lambda e: e.brought_nothing,
        "training brought nothing, and it is {began_as} still: no validation was better than that of the start",
        _again("with a lower learning rate", "optimizer.lr={lower:.1g}"),
    ),
    Rule(
        "other_domain",
        lambda e: (
            not e.is_validation and e.lines >= FEW_LINES and e.chrf < OTHER_KIND * e.valid[1] and e.valid[1] > 25.0
        ),
        "it was trained on text of another kind than the test set {test} (chrF2 {chrf:.1f}, not {valid[1]:.1f})",
        _OWN_KIND,
    ),
    Rule(
        "long_lines",
        lambda e: e.too_long > 0.2 and e.is_at_most(ROUGH),
        "{too_long:.0%} of the lines of {set} have more than the {longest} subwords that it was trained on, and are "
        "translated in parts",
        _again("on longer lines, or give one sentence a line", "batching.max_length={twice_as_long}"),
    ),
    Rule(
        "subwords",
        lambda e: e.subwords_per_word > 3.0 and e.vocabulary < 500 and e.is_at_most(ROUGH) and not e.began_as,
        "its vocabulary of {vocabulary} subwords cuts a word into {subwords_per_word:.1f}",
        _again("with a larger vocabulary", "tokenizer.vocab_size=2000"),
    ),
    Rule(
        "large_vocabulary",
        lambda e: e.rare > 0.3 and e.vocabulary > 2000 and not e.began_as and e.is_at_most(ROUGH),
        "its vocabulary of {vocabulary:,} subwords is too large for its text, in which {rare:.0%} of them come fewer "
        "than 5 times",
        _again("with a smaller vocabulary", "tokenizer.vocab_size={fewer}"),
    ),
    Rule(
        "by_heart",
        lambda e: e.is_learnt_by_heart and e.dropout < 0.2 and not e.began_as and e.is_at_most(ROUGH),
        "it has learnt its training text by heart (loss {train_loss:.2f} there, {valid_loss:.2f} in validation)",
        _again("with more dropout, until validations bring nothing better", "model.dropout=0.3 trainer.patience=4"),
    ),
    Rule(
        "little_text",
        lambda e: e.pairs < 20_000 and e.is_at_most(WEAK) and e.train_loss < e.valid_loss - 0.5,
        "{pairs:,} pairs are too little text {purpose}",
        _MORE_TEXT,
    ),
    Rule(
        "improving",
        lambda e: e.is_improving and e.is_at_most(ROUGH),
        "it was still improving when its training ended",
        _LONGER,
    ),
    Rule(
        "small_model",
        lambda e: e.passes >= 10 and e.train_loss > e.valid_loss - 0.5 and e.is_at_most(ROUGH) and not e.began_as,
        "it is too small for its text: after {passes:.0f} passes it does not fit even the lines that it was trained on",
        _LARGER,
    ),
]
# Where nothing was learnt, the curve says no more; nor where the first sentence has said what is in it.
_SAYS_ALL = {
    *("broken_test", "one_target", "copies", "sides", "high_rate", "low_rate", "few_pairs", "stopped_early"),
    *("unrelated", "brought_nothing", "by_heart"),
}


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


def verdict(evidence: Evidence, commands: Commands | None = None) -> Verdict:
    """Judge a training by what was measured of it."""
    commands = commands or Commands()
    words = _words(evidence, commands)
    rule = next((rule for rule in RULES if rule.applies(evidence)), None)
    level, least = evidence.level, evidence.least_level
    reason = rule.reason.format(**words) if rule else _score_text(evidence)
    end = "" if reason.endswith("?") else "."
    surely = "is" if least == level else "may be"
    sentences = [f"This model {surely} {_KINDS[level].format(**words)}: {reason}{end}"]
    if least != level:
        few = f"{evidence.lines} lines tell too little to be sure: it may as well be {_KINDS[least]}."
        sentences.append(few.format(**words))
    sentences += _more_sentences(evidence, rule)
    advice = [rule.advice] if rule else []
    if rule and rule.cause == "by_heart":
        advice.append(_MORE_TEXT)
    elif evidence.is_improving and _LONGER not in advice:
        advice.append(_LONGER)
    if evidence.forgotten:
        advice.append(_OLD_TEXT)
    if not advice and level != GOOD:
        has_little = evidence.pairs < 100_000 or evidence.began_as  # whose size stays as it is
        advice.append(_MORE_TEXT if has_little else _LARGER)
    if _MORE_TEXT in advice:
        advice += [_MONOLINGUAL] if commands.monolingual else []
    following = [Advice(*(text.format(**words) for text in each)) for each in advice]
    return Verdict(level, rule.cause if rule else "", sentences, following, evidence)


def advice_of(verdict: Mapping[str, Any], run: Path) -> list[Advice]:
    """Return the advice of a verdict in scores.json, with what to type for this run's folder."""
    advice = [Advice(**each) for each in verdict.get("next", [])]
    return [each._replace(command=each.command.replace("{run}", shlex.quote(str(run)))) for each in advice]


def _score_text(evidence: Evidence) -> str:
    """Return the scores, and the name of the set that has them."""
    set_name = "the validation set, as there is no test set" if evidence.is_validation else evidence.test
    interval = "" if evidence.interval is None else f" ({evidence.interval[0]:.1f} to {evidence.interval[1]:.1f})"
    of_bleu, of_chrf = (interval, "") if evidence.scale == "BLEU" else ("", interval)
    return f"BLEU {evidence.bleu:.1f}{of_bleu} and chrF2 {evidence.chrf:.1f}{of_chrf} on {set_name}"


def _more_sentences(evidence: Evidence, rule: Rule | None) -> Iterator[str]:
    """Yield what follows the first sentence: scores, fit, curve."""
    if rule:
        yield f"It has {_score_text(evidence)}."
    if evidence.before:
        yield "It began as {}, which has {} {:.1f} there.".format(evidence.began_as, *evidence.before)
    if evidence.forgotten:
        lost = ", ".join("{1} went from {2:.1f} to {3:.1f} on {0}".format(*each) for each in evidence.forgotten)
        yield f"It has forgotten some of what {evidence.began_as} could do: {lost}."
    yield (
        f"{evidence.nearly_right:.0%} of {evidence.lines} lines looked at are nearly right (chrF2 from "
        f"{NEARLY_RIGHT:.0f} on). Copying the source would have chrF2 {evidence.copy_chrf:.1f}, and the commonest "
        f"target line {evidence.line_chrf:.1f}."
    )
    if rule and rule.cause in _SAYS_ALL:
        return
    losses = f"a loss of {evidence.train_loss:.2f} on training text, and of {evidence.valid_loss:.2f} in validation"
    if evidence.is_learnt_by_heart:
        yield f"It fits its training text far better than other text: {losses}."
    elif evidence.train_loss > evidence.valid_loss - 0.2:
        yield f"It is not over-fitted: {losses}."
    else:
        yield f"It fits its training text somewhat better than other text: {losses}."
    if evidence.gained is None:
        return
    third = "the last third " + ("before the learning rate fell" if evidence.peak_until else "of its training")
    points = f"{evidence.gained:.1f} points of {evidence.scale.split()[0]} in validation"
    loss = f", and took {evidence.loss_fell:.1%} off the loss" if evidence.loss_fell > 0.0005 else ""
    helped = "have helped" if evidence.is_improving else "hardly have helped"
    yield f"More time would {helped}: {third} added {points}{loss}."


def _words(evidence: Evidence, commands: Commands) -> dict[str, Any]:
    """Return the values that reasons and advice are formatted with."""
    return {
        **asdict(evidence),
        **asdict(commands),
        "set": "its validation set" if evidence.is_validation else evidence.test,
        "noise": evidence.noise,
        "again": f"about {minutes_text(evidence.minutes)}",
        "purpose": "for what is new in them" if evidence.began_as else "to learn these languages from",
        "to_tune": "" if evidence.began_as else ", or fine-tune a model of both languages (run.init_from)",
        "twice_as_long": 2 * evidence.longest,
        "run": "{run}",
        "unseen": evidence.unseen_scores,
        "without": "in validation" if evidence.unseen is None else "without them",
        "seen": max(evidence.leaked, evidence.near),
        "nearly": "nearly " if evidence.leaked < evidence.near else "",
        "fewer": max(500, evidence.vocabulary // 4),
        "wider": max(128, 2 * evidence.width),
        "usual": 0.0001 if evidence.began_as else 0.001,
        "lower": evidence.peak / 10,
    }


def minutes_text(minutes: float) -> str:
    """Return a number of minutes in words."""
    return f"{minutes:.0f} minutes" if minutes >= 1.5 else "a minute"
