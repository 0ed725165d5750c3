"""The verdict on a training: each rule over plain figures, and how the figures are computed."""

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, cast

import pytest

from tolka.evaluation.evidence import Losses, unigram_loss
from tolka.evaluation.figures import FIGURES, Evidence
from tolka.evaluation.learning_curve import LearningCurve
from tolka.evaluation.verdict import RULES, advice_of, verdict

SOUND = Evidence(
    test="test",
    is_validation=False,
    lines=400,
    scale="BLEU",
    bleu=35.0,
    bleu_interval=(33.5, 36.5),
    chrf=56.0,
    nearly_right=0.3,
    copied=0.01,
    commonest=0.01,
    copy_chrf=13.0,
    line_chrf=12.0,
    valid_chrf=56.5,
    source_gain=2.5,
    unrelated=0.02,
    unrelated_valid=0.02,
    unigram_loss=6.0,
    valid_loss=1.9,
    train_loss=1.7,
    gained=0.2,
    loss_fell=0.0,
    pairs=150_000,
    passes=8.0,
    updates=10_000,
    minutes=60.0,
    subwords_per_word=1.4,
    vocabulary=4000,
    one_target=0.0,
    peak_until=0,
    rate=0.001,
    dropout=0.1,
    width=256,
    sides="",
    began_as="",
    before="",
    forgotten="",
    longer="the same command with trainer.updates=20000 goes on for about 60 minutes",
    longer_command="mt-train --rerun {run} run.dir={run} trainer.updates=20000",
    more_command="mt-train 'corpus.train=[a,MORE]' run.name=b-more",
)
WEAK = replace(SOUND, bleu=4.0, bleu_interval=(3.5, 4.5), chrf=22.0, valid_chrf=22.5)
BLIND = replace(
    WEAK, bleu=0.3, chrf=13.5, valid_chrf=13.5, source_gain=0.0, unrelated=0.95, unrelated_valid=0.95, valid_loss=3.8
)
# The rule that is to give the main reason -> figures of such a training.
SPOILED = {
    "one_target": replace(BLIND, one_target=0.9, commonest=0.95),
    "copies": replace(WEAK, copied=0.8),
    "shift": replace(SOUND, shift="pairs 500 to 999 are not parallel", unrelated=0.5),
    "sides": replace(BLIND, sides="data/train: the sides are swapped"),
    "high_rate": replace(BLIND, valid_loss=6.1, rate=0.5),
    "low_rate": replace(BLIND, valid_loss=5.9, rate=1e-5),
    "few_pairs": replace(BLIND, pairs=8),
    "noisy": replace(SOUND, unrelated=0.5),
    "stopped_early": replace(BLIND, valid_loss=5.0, passes=0.3, updates=50),
    "narrow": replace(BLIND, width=16),
    "unrelated": BLIND,
    "leak": replace(SOUND, leaked=0.4, unseen_bleu=12.0, unseen_chrf=30.0),
    "other_domain": replace(SOUND, bleu=2.0, chrf=20.0),
    "long_lines": replace(WEAK, too_long=0.6, longest=100),
    "subwords": replace(WEAK, subwords_per_word=5.0, vocabulary=100),
    "large_vocabulary": replace(WEAK, rare=0.2, vocabulary=16000),
    "by_heart": replace(WEAK, train_loss=0.1, valid_loss=5.0, dropout=0.0, pairs=1000, passes=200.0),
    "little_text": replace(WEAK, train_loss=2.0, valid_loss=4.0, dropout=0.3, pairs=1000, passes=100.0),
    "small_model": replace(WEAK, train_loss=3.9, valid_loss=4.0, passes=50.0, pairs=3000),
    "improving": replace(WEAK, gained=1.5, passes=3.0),
}


@pytest.mark.parametrize("cause", SPOILED)
def test_the_first_sentence_has_the_main_reason(cause: str) -> None:
    found = verdict(SPOILED[cause])
    assert found.cause == cause
    assert found.next
    assert all(each.words and each.command.startswith("mt-train ") for each in found.next)


def test_lengths_alone_show_a_shift_where_the_model_has_learnt_too_little() -> None:
    weak = replace(WEAK, shift="pairs 500 to 999 are not parallel", unrelated=0.73, unrelated_valid=0.69)
    assert verdict(weak).cause == "shift"
    assert verdict(replace(weak, unrelated=0.02, unrelated_valid=0.02)).cause != "shift"


def test_a_training_that_ended_in_its_warm_up_was_too_short_whatever_else_is_wrong() -> None:
    large = replace(SPOILED["large_vocabulary"], updates=300, warmup=400)
    assert verdict(large).cause == "stopped_early"
    assert verdict(replace(large, warmup=200)).cause == "large_vocabulary"
    assert verdict(replace(SOUND, updates=300, warmup=400)).cause == ""


def test_other_test_sets_of_another_kind_are_named_and_how_to_learn_them() -> None:
    found = verdict(replace(SOUND, elsewhere="chrF2 24.5 on news"))
    assert found.sentences[1] == "Text of another kind it translates far worse: chrF2 24.5 on news."
    assert "mt-train run.init_from={run}" in found.next[-1].command
    twice = verdict(replace(SPOILED["other_domain"], bleu=25.0, elsewhere="chrF2 4.5 on news"))
    assert len({*twice.next}) == len(twice.next)
    leaked = verdict(replace(SPOILED["leak"], elsewhere="chrF2 30.5 on news"))  # it lacks the leak, and no more
    assert not any("another kind" in each for each in leaked.sentences)
    useless = verdict(replace(BLIND, elsewhere="chrF2 4.5 on news"))
    assert not any("another kind" in each for each in useless.sentences)
    assert not any("run.init_from={run}" in each.command for each in useless.next)


def test_every_rule_has_an_example() -> None:
    assert [rule.cause for rule in RULES] == [*SPOILED]


def test_a_sound_training_is_judged_by_its_score() -> None:
    found = verdict(SOUND)
    assert (found.level, found.cause) == ("usable", "")
    assert found.sentences[0] == (
        "This model is usable for text like test if a person corrects its translations: "
        "BLEU 35.0 (33.5 to 36.5) and chrF2 56.0 on test."
    )


@pytest.mark.parametrize(("bleu", "level"), [(19.9, "weak"), (20.0, "rough"), (30.0, "usable"), (50.0, "good")])
def test_levels_are_bands_of_bleu(bleu: float, level: str) -> None:
    assert replace(SOUND, bleu=bleu).level == level


def test_without_a_tokenizer_for_bleu_levels_are_bands_of_chrf() -> None:
    assert replace(SOUND, scale="chrF2", bleu=0.0).level == "usable"
    assert replace(SOUND, scale="chrF2 without spaces", bleu=0.0, chrf=46.0).level == "good"


@pytest.mark.parametrize("trivial", ["copy_chrf", "line_chrf"])
def test_no_better_than_a_copy_or_one_line_is_useless(trivial: str) -> None:
    assert replace(SOUND, **cast("Any", {trivial: 55.0})).level == "useless"


def test_one_line_for_most_sources_is_useless() -> None:
    assert replace(SOUND, commonest=0.6).level == "useless"


def test_noise_is_what_the_model_would_tell_apart_in_other_text() -> None:
    # Of half of the pairs it cannot tell in any text, and it misses half of the others.
    assert replace(SOUND, unrelated=0.75, unrelated_valid=0.5).noise == 0.5


def test_without_a_test_set_the_sentence_says_so() -> None:
    assert "on the validation set, as there is no test set." in verdict(replace(SOUND, is_validation=True)).sentences[0]


def test_more_time_would_have_helped_where_score_or_loss_still_became_better() -> None:
    found = verdict(replace(SOUND, gained=2.0))
    third = "the last third of its training added 2.0 points of BLEU in validation"
    assert found.sentences[-1] == f"More time would have helped: {third}."
    assert found.next == [(f"Train longer: {SOUND.longer}.", SOUND.longer_command)]
    said = verdict(replace(SOUND, loss_fell=0.006)).sentences[-1]
    third = "the last third of its training added 0.2 points of BLEU in validation, and took 0.6% off the loss"
    assert said == f"More time would have helped: {third}."


def test_a_model_that_began_as_another_is_compared_with_it() -> None:
    tuned = replace(WEAK, began_as="runs/a", before="BLEU 1.2", pairs=200, train_loss=0.1, dropout=0.0)
    lost = "BLEU went from 14.1 to 10.1 on old"
    found = verdict(replace(tuned, forgotten=lost))
    assert found.cause == "little_text"
    assert found.sentences[0].endswith("200 pairs are too little text for what is new in them.")
    assert found.sentences[2] == "It began as runs/a, which has BLEU 1.2 there."
    assert found.sentences[3] == f"It has forgotten some of what runs/a could do: {lost}."
    # Also where the model that it began as has no score, as for a language that is new to it.
    assert (
        f"It has forgotten some of what runs/a could do: {lost}."
        in verdict(replace(tuned, before="", forgotten=lost)).sentences
    )
    assert found.next[-1].words.startswith("To forget less, ")
    assert not verdict(tuned).next[-1].words.startswith("To forget less, ")


def test_lines_of_the_training_text_do_not_count_for_the_level() -> None:
    flattered = replace(SOUND, leaked=0.4, unseen_bleu=12.0, unseen_chrf=30.0)
    assert (SOUND.level, flattered.level) == ("usable", "weak")
    assert (
        "40% of the lines of test are in its training text, and without them it has BLEU 12.0 and chrF2 30.0."
        in (verdict(flattered).sentences[0])
    )
    as_hard = replace(SOUND, leaked=0.15, unseen_bleu=34.0, unseen_chrf=55.0)
    assert (as_hard.level, verdict(as_hard).cause) == ("usable", "")
    assert verdict(replace(as_hard, leaked=0.25)).cause == "leak"
    # A set that leaked as a whole has no other lines.
    all_of_it = replace(SOUND, leaked=1.0, valid_bleu=21.0, valid_chrf=45.0)
    assert all_of_it.level == "rough"
    assert "and in validation it has BLEU 21.0 and chrF2 45.0." in verdict(all_of_it).sentences[0]


def test_advice_has_the_run_in_its_commands_and_that_of_earlier_versions_has_none() -> None:
    run, found = Path("runs/my run"), verdict(SPOILED["low_rate"]).as_dict()
    assert advice_of(found, run)[0].command == "mt-train --rerun 'runs/my run' optimizer.lr=0.001"
    assert advice_of({"next": ["Train longer."]}, run) == [("Train longer.", "")]


def test_few_pairs_are_told_of_a_model_to_begin_with() -> None:
    found = verdict(replace(SPOILED["few_pairs"], parent_command="mt-train run.init_from=hub:p"))
    assert found.next[0].words == (
        "Add text, which helps most: 8 pairs are few. MORE stands for it, as data/more for data/more.en and its other "
        "side:"
    )
    assert found.next[-1].command == "mt-train run.init_from=hub:p"
    assert all("run.init_from=hub:p" not in each.command for each in verdict(SPOILED["few_pairs"]).next)


def rates(*each: tuple[int, float]) -> list[dict[str, float]]:
    return [{"update": update, "train_loss": 1.0, "lr": rate} for update, rate in each]


def test_until_when_the_rate_was_at_its_peak() -> None:
    validated = [{"update": 14, "valid_loss": 3.0}, {"update": 30, "valid_loss": 2.0}]
    constant = rates((5, 0.1), (10, 0.2), (15, 0.2), (20, 0.1))
    assert LearningCurve([*constant, *validated]).peak_until == 19
    assert LearningCurve([*constant, *rates((40, 0.0)), *validated]).peak_until == 0  # it fell from the first half on
    assert LearningCurve([*constant, *validated[1:]]).peak_until == 0  # before the first validation
    assert LearningCurve([*constant[:3], *validated]).peak_until == 0  # it never fell
    assert LearningCurve([*rates((5, 0.1), (15, 0.2), (20, 0.1)), *validated]).peak_until == 0  # it was there once
    assert LearningCurve(validated).peak_until == 0


def test_the_names_of_figures_are_those_of_the_evidence() -> None:
    assert {*FIGURES} <= {field.name for field in fields(Evidence)}


def test_the_last_third_is_compared_with_all_before() -> None:
    history = [{"update": n, "valid_loss": 3.0, "bleu": bleu} for n, bleu in ((1, 10.0), (2, 20.0), (3, 50.0))]
    assert LearningCurve([*history, {"update": 3, "train_loss": 1.0}]).gained("bleu") == 30.0
    # A rate that falls from 2 on raises the score by itself.
    assert LearningCurve([*history, *rates((1, 0.2), (2, 0.2), (3, 0.1))]).gained("bleu") == 10.0
    said = verdict(replace(SOUND, peak_until=2)).sentences[-1]
    third = "the last third before the learning rate fell added 0.2 points of BLEU in validation"
    assert said == f"More time would hardly have helped: {third}."
    # The loss says more where the score is too low to move; a rate that falls all the time lowers it by itself.
    losses = [{"update": n, "valid_loss": loss, "lr": 0.1} for n, loss in ((1, 4.0), (2, 3.0), (3, 2.4))]
    assert LearningCurve(losses).loss_fell == pytest.approx(0.2)
    assert LearningCurve([{**line, "lr": 0.1 / line["update"]} for line in losses]).loss_fell == 0.0
    assert LearningCurve(losses[-1:]).loss_fell == 0.0
    assert LearningCurve([{**line, "valid_loss": 0.0} for line in losses]).loss_fell == 0.0
    # A decline gained nothing.
    assert LearningCurve([*history, {"update": 6, "valid_loss": 3.0, "bleu": 5.0}]).gained("bleu") == 0.0


def test_frequencies_of_tokens_count_the_end_of_each_sentence() -> None:
    # Seven counts and a vocabulary of 3: token 0 has 3 + 1 of 8, and </s> has 1 + 1.
    assert unigram_loss([[0, 0, 0, 1]], [[0]], 3) == pytest.approx((math.log(8 / 4) + math.log(8 / 2)) / 2)


class Knowing:
    """Finds a target likely if its source has the same ids."""

    def token_scores(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        return [[-1.0 if source == target else -3.0] * (len(target) + 1) for source, target in pairs]


def test_a_pair_is_unrelated_if_another_source_is_as_good() -> None:
    pairs = [([1], [1]), ([2], [2]), ([3], [9]), ([4], [4])]
    losses = Losses(cast("Any", Knowing()), pairs)
    assert (losses.own, losses.other, losses.unrelated) == (1.5, 3.0, 0.5)
