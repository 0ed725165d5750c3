"""The verdict on a training: each rule at its border, levels by scores alone, and how the figures are computed."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from evidences import BLIND, BORDERS, COMMANDS, SOUND, WEAK, made
from rows import each_row

from tolka.data.store import TokenStore
from tolka.evaluation.verdict import RULES, advice_of, verdict
from tolka.evaluation.verdict_evidence import Evidence
from tolka.evaluation.verdict_measurements import Losses, last_third, near_copies, unigram_loss


@each_row("cause", BORDERS)
def test_each_rule_applies_up_to_its_border(cause: str) -> None:
    """Fails where a rule is taken away, or another one comes before it."""
    evidence, beyond = BORDERS[cause]
    found = verdict(evidence, COMMANDS)
    assert found.cause == cause
    assert all(each.words and each.command.startswith(("mt-train ", "mt-translate ")) for each in found.next)
    assert verdict(made(evidence, **beyond), COMMANDS).cause != cause


def test_every_rule_has_a_border() -> None:
    assert [rule.cause for rule in RULES] == [*BORDERS]


# Trainings with nothing wrong, each of which a rule once accused -> the cause that it was given.
SOUND_ONES = {
    "copies that are right": ("copies", made(SOUND, bleu=70.0, chrf=82.0, unseen=(70.0, 82.0), copied=0.21)),
    "near dialects": (
        "",
        made(SOUND, bleu=99.0, chrf=100.0, unseen=(99.0, 100.0), copy_chrf=98.3, over_copy=(1.2, 2.2)),
    ),
    "a warm-up that has not ended": ("stopped_early", made(SOUND, updates=399)),
    "a rate that was not reached": ("high_rate", made(WEAK, valid_loss=5.6, peak=0.02, rate=0.0004)),
    "the rate of a fine-tuning": ("low_rate", made(WEAK, valid_loss=5.6, peak=1e-5, began_as="runs/a", passes=9.0)),
    "still improving after ten passes": ("small_model", made(WEAK, passes=10.0, gained=4.0)),
    "a fine-tuning that fits other text as well": ("small_model", made(WEAK, passes=23.0, began_as="runs/a")),
    "lengths that correlate as in validation": ("noisy", made(SOUND, unrelated=0.5)),
    "ranges of which the model says nothing": ("shift", made(SOUND, shift="data/train, pairs 201 to 520")),
    "few lines of another kind": ("other_domain", made(SOUND, chrf=39.0, unseen=(35.0, 39.0), lines=99)),
    "sentences of like kind": ("leak", made(SOUND, near=0.5, unseen=(26.0, 47.0))),
    "pairs learnt by heart": ("unrelated", made(BLIND, train_gain=3.0, train_loss=0.5, passes=90.0)),
}


@each_row("name", SOUND_ONES)
def test_none_is_accused_without_evidence(name: str) -> None:
    cause, evidence = SOUND_ONES[name]
    found = verdict(evidence, COMMANDS)
    assert found.cause != cause or not cause
    assert found.level == evidence.level != "useless"


def test_unrelated_text_is_told_by_its_lengths_before_a_model_could_have_learnt() -> None:
    early = made(BLIND, passes=0.5, updates=50)
    assert verdict(early, COMMANDS).cause == "stopped_early"
    assert verdict(made(early, correlation=0.19), COMMANDS).cause == "unrelated"
    half = verdict(made(early, correlation=0.39), COMMANDS)
    assert half.cause == "noisy"
    assert "about 51% of its training pairs" in half.sentences[0]
    assert verdict(made(early, correlation=0.41), COMMANDS).cause == "stopped_early"


def test_a_training_that_ended_in_its_warm_up_was_too_short_whatever_else_is_wrong() -> None:
    large = made(WEAK, rare=0.4, updates=300, warmup=400)
    assert verdict(large).cause == "stopped_early"
    assert verdict(made(large, warmup=200)).cause == "large_vocabulary"


def test_causes_do_not_change_the_level() -> None:
    """Which follows from the scores, whatever the cause is."""
    for cause, (evidence, _) in BORDERS.items():
        assert verdict(evidence, COMMANDS).level == evidence.level, cause
    assert verdict(made(SOUND, bleu=19.9, unseen=(19.9, 56.0), updates=399)).level == "weak"


def test_few_lines_leave_the_level_in_doubt() -> None:
    few = made(SOUND, bleu=66.0, unseen=None, lines=12, interval=(38.0, 90.0))
    found = verdict(few)
    assert found.sentences[0].startswith("This model may be good for text like test: BLEU 66.0 (38.0 to 90.0)")
    assert found.sentences[1] == (
        "12 lines tell too little to be sure: it may as well be usable for text like test if a person corrects its "
        "translations."
    )
    assert verdict(made(few, interval=None)).sentences[1].endswith("it may as well be not usable yet.")
    # A narrow interval over the border of two levels, and a wide one within one.
    for sure in (made(SOUND, bleu=30.5, interval=(29.0, 32.0)), made(few, interval=(52.0, 80.0))):
        assert verdict(sure).sentences[0].startswith("This model is ")


def test_a_sound_training_is_judged_by_its_score() -> None:
    found = verdict(SOUND)
    assert (found.level, found.cause) == ("usable", "")
    assert found.sentences[0] == (
        "This model is usable for text like test if a person corrects its translations: "
        "BLEU 35.0 (33.5 to 36.5) and chrF2 56.0 on test."
    )


@each_row(("bleu", "level"), [(19.9, "weak"), (20.0, "rough"), (30.0, "usable"), (50.0, "good")])
def test_levels_are_bands_of_bleu(bleu: float, level: str) -> None:
    assert made(SOUND, bleu=bleu).level == level


def test_without_a_tokenizer_for_bleu_levels_are_bands_of_chrf() -> None:
    assert made(SOUND, scale="chrF2", bleu=0.0).level == "usable"
    assert made(SOUND, scale="chrF2 without spaces", bleu=0.0, chrf=46.0).level == "good"


def test_no_better_than_a_copy_or_one_line_is_useless() -> None:
    """By less than two points, or a tenth of what a copy lacks."""
    for trivial in ("over_copy", "over_line"):
        assert made(SOUND, **{trivial: (-1.0, 1.9)}).level == "useless"
        assert made(SOUND, **{trivial: (-1.0, 2.1)}).level == "usable"
    assert made(SOUND, copy_chrf=98.0, over_copy=(0.0, 0.19)).level == "useless"
    assert made(SOUND, copy_chrf=98.0, over_copy=(0.0, 0.21)).level == "usable"
    assert made(SOUND, commonest=0.51).level == "useless"
    assert made(SOUND, bleu=0.9, chrf=19.0).level == "useless"


def test_noise_is_what_the_model_would_tell_apart_in_other_text() -> None:
    # Of half of the pairs it cannot tell in any text, and it misses half of the others.
    assert made(SOUND, unrelated=0.75, unrelated_valid=0.5, correlation=None).noise == 0.5
    assert made(SOUND, unrelated=0.75, unrelated_valid=0.5, correlation=0.79).noise == 0.0


def test_without_a_test_set_the_sentence_says_so() -> None:
    assert "on the validation set, as there is no test set." in verdict(made(SOUND, is_validation=True)).sentences[0]


def test_more_time_would_have_helped_where_score_or_loss_still_became_better() -> None:
    found = verdict(made(SOUND, gained=2.0), COMMANDS)
    third = "the last third of its training added 2.0 points of BLEU in validation"
    assert found.sentences[-1] == f"More time would have helped: {third}."
    assert found.next == [(f"Train longer: {COMMANDS.longer_words}.", COMMANDS.longer)]
    said = verdict(made(SOUND, loss_fell=0.006)).sentences[-1]
    third = "the last third of its training added 0.2 points of BLEU in validation, and took 0.6% off the loss"
    assert said == f"More time would have helped: {third}."


def test_a_model_that_began_as_another_is_compared_with_it() -> None:
    tuned = made(WEAK, began_as="runs/a", before=("BLEU", 1.2), pairs=200, train_loss=0.1, dropout=0.0)
    found = verdict(made(tuned, forgotten=[("old", "BLEU", 14.1, 10.1)]))
    assert found.cause == "little_text"
    assert found.sentences[0].endswith("200 pairs are too little text for what is new in them.")
    assert found.sentences[2] == "It began as runs/a, which has BLEU 1.2 there."
    lost = "It has forgotten some of what runs/a could do: BLEU went from 14.1 to 10.1 on old."
    assert found.sentences[3] == lost
    # Also where the model that it began as has no score, as for a language that is new to it.
    assert lost in verdict(made(tuned, before=None, forgotten=[("old", "BLEU", 14.1, 10.1)])).sentences
    assert found.next[-1].words.startswith("To forget less, ")
    assert not verdict(tuned).next[-1].words.startswith("To forget less, ")


def test_lines_of_the_training_text_do_not_count_for_the_level() -> None:
    flattered = made(SOUND, leaked=0.4, unseen=(12.0, 30.0))
    assert (SOUND.level, flattered.level) == ("usable", "weak")
    assert (
        "40% of the lines of test are in its training text, and without them it has BLEU 12.0 and chrF2 30.0."
        in (verdict(flattered).sentences[0])
    )
    as_hard = made(SOUND, leaked=0.15, unseen=(34.0, 55.0))
    assert (as_hard.level, verdict(as_hard).cause) == ("usable", "")
    assert verdict(made(as_hard, leaked=0.25)).cause == "leak"
    # A set that leaked as a whole has no other lines; nor has one whose lines all have a word in front.
    all_of_it = made(SOUND, leaked=1.0, unseen=None, valid=(21.0, 45.0))
    assert all_of_it.level == "rough"
    assert "and in validation it has BLEU 21.0 and chrF2 45.0." in verdict(all_of_it).sentences[0]
    nearly = verdict(made(all_of_it, leaked=0.0, near=1.0))
    assert (nearly.level, nearly.cause) == ("rough", "leak")
    assert "100% of the lines of test are nearly in its training text" in nearly.sentences[0]


def test_advice_has_the_run_in_its_commands() -> None:
    run, found = Path("runs/my run"), verdict(BORDERS["low_rate"][0]).as_dict()
    assert advice_of(found, run)[0].command == "mt-train --rerun 'runs/my run' optimizer.lr=0.001"


def test_few_pairs_are_told_of_a_model_to_begin_with() -> None:
    few = BORDERS["few_pairs"][0]
    assert verdict(few).next[0].words == (
        "Add text, which helps most: 499 pairs are few, or fine-tune a model of both languages (run.init_from). "
        "MORE stands for it, as data/more for data/more.en and its other side:"
    )
    assert "are few. MORE" in verdict(made(SOUND, pairs=9000, began_as="runs/a", bleu=45.0)).next[0].words


def test_figures_survive_scores_json() -> None:
    stored = json.loads(json.dumps(verdict(SOUND).as_dict()))
    assert verdict(Evidence(**stored["figures"])).sentences == stored["sentences"]


def rates(*each: tuple[int, float]) -> list[dict[str, float]]:
    return [{"update": update, "train_loss": 1.0, "lr": rate} for update, rate in each]


def test_until_when_the_rate_was_at_its_peak() -> None:
    validated = [{"update": 14, "valid_loss": 3.0}, {"update": 30, "valid_loss": 2.0}]
    constant = rates((5, 0.1), (10, 0.2), (15, 0.2), (20, 0.1))
    assert last_third([*constant, *validated], "bleu")["peak_until"] == 19
    # It fell from the first half on.
    assert last_third([*constant, *rates((40, 0.0)), *validated], "bleu")["peak_until"] == 0
    assert last_third([*constant, *validated[1:]], "bleu")["peak_until"] == 0  # before the first validation
    assert last_third([*constant[:3], *validated], "bleu")["peak_until"] == 0  # it never fell
    # It was there once.
    assert last_third([*rates((5, 0.1), (15, 0.2), (20, 0.1)), *validated], "bleu")["peak_until"] == 0
    assert last_third(validated, "bleu")["peak_until"] == 0


def test_the_last_third_is_compared_with_all_before() -> None:
    history = [{"update": n, "valid_loss": 3.0, "bleu": bleu} for n, bleu in ((1, 10.0), (2, 20.0), (3, 50.0))]
    assert last_third([*history, {"update": 3, "train_loss": 1.0}], "bleu")["gained"] == 30.0
    # A rate that falls from 2 on raises the score by itself.
    assert last_third([*history, *rates((1, 0.2), (2, 0.2), (3, 0.1))], "bleu")["gained"] == 10.0
    said = verdict(made(SOUND, peak_until=2)).sentences[-1]
    third = "the last third before the learning rate fell added 0.2 points of BLEU in validation"
    assert said == f"More time would hardly have helped: {third}."
    # The loss says more where the score is too low to move; a rate that falls all the time lowers it by itself.
    losses = [{"update": n, "valid_loss": loss, "lr": 0.1} for n, loss in ((1, 4.0), (2, 3.0), (3, 2.4))]
    assert last_third(losses, "bleu")["loss_fell"] == pytest.approx(0.2)
    assert last_third([{**line, "lr": 0.1 / line["update"]} for line in losses], "bleu")["loss_fell"] == 0.0
    assert last_third(losses[-1:], "bleu")["loss_fell"] == 0.0
    assert last_third([{**line, "valid_loss": 0.0} for line in losses], "bleu")["loss_fell"] == 0.0
    # A single validation says nothing of the time before it.
    assert last_third(history[-1:], "bleu")["gained"] is None
    assert not any("More time" in each for each in verdict(made(SOUND, gained=None)).sentences)
    # A decline gained nothing.
    assert last_third([*history, {"update": 6, "valid_loss": 3.0, "bleu": 5.0}], "bleu")["gained"] == 0.0


def test_frequencies_of_tokens_count_the_end_of_each_sentence() -> None:
    # Seven counts and a vocabulary of 3: token 0 has 3 + 1 of 8, and </s> has 1 + 1.
    assert unigram_loss([[0, 0, 0, 1]], [[0]], 3) == pytest.approx((math.log(8 / 4) + math.log(8 / 2)) / 2)


class Knowing:
    """Finds a target likely if its source has the same ids."""

    class engine:  # noqa: N801
        longest_sentence = None

    def token_scores(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        return [[-1.0 if source == target else -3.0] * (len(target) + 1) for source, target in pairs]


def losses(*pairs: tuple[int, int]) -> Losses:
    return Losses(cast("Any", Knowing()), [([source], [target]) for source, target in pairs])


def test_a_pair_is_unrelated_if_another_source_is_better() -> None:
    found = losses((1, 1), (9, 4), (3, 3), (4, 9))
    assert (found.own, found.other, found.unrelated) == (2.0, 2.0, 1.0)


def test_equal_sources_and_ties_say_nothing_against_a_pair() -> None:
    """A source may have two translations, and a model may know neither."""
    assert losses((1, 1), (1, 2), (3, 3), (3, 4)).unrelated == 0.0
    assert losses((1, 1), (1, 1)).unrelated == losses((1, 1)).unrelated == 0.0
    assert losses((1, 1)).own == losses((1, 1)).other


def test_near_copies_have_most_of_a_pair() -> None:
    draw = np.random.default_rng(1)
    text = [(draw.integers(0, 500, 12).tolist(), draw.integers(0, 500, 12).tolist()) for _ in range(50)]
    store = TokenStore.from_rows(*map(list, zip(*text, strict=True)))
    source, target = text[7]
    with_word, other = ([900, *source], [901, *target]), text[8]
    changed = [*source[:6], 900, *source[7:]], [*target[:6], 901, *target[7:]]
    assert near_copies(store, [text[7], with_word, changed]) == [True, True, True]
    # One side alone, other text, and what is too short to tell.
    pairs = [(source, other[1]), (other[1], other[0]), (source[:5], target[:5])]
    assert near_copies(store, pairs) == [False, False, None]
