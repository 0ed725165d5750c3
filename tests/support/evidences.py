"""What is measured of made-up trainings, sound and spoiled, for tests of the verdict."""

from dataclasses import replace
from typing import Any

from tolka.evaluation.verdict import Commands
from tolka.evaluation.verdict_evidence import Evidence

SOUND = Evidence(
    test="test",
    is_validation=False,
    lines=400,
    scale="BLEU",
    bleu=35.0,
    chrf=56.0,
    interval=(33.5, 36.5),
    copy_chrf=13.0,
    over_copy=(40.0, 46.0),
    line_chrf=12.0,
    over_line=(41.0, 47.0),
    nearly_right=0.3,
    copied=0.01,
    commonest=0.01,
    unseen=(35.0, 56.0),
    valid=(35.5, 56.5),
    greedy=None,
    train_loss=1.7,
    valid_loss=1.9,
    unigram_loss=6.0,
    gain=2.5,
    train_gain=2.6,
    unrelated=0.02,
    unrelated_valid=0.02,
    updates=10_000,
    passes=8.0,
    minutes=60.0,
    rate=0.001,
    peak=0.001,
    warmup=400,
    gained=0.2,
    loss_fell=0.0,
    peak_until=0,
    width=256,
    dropout=0.1,
    pairs=150_000,
    vocabulary=4000,
    subwords_per_word=1.4,
    correlation=0.8,
    valid_correlation=0.8,
)
COMMANDS = Commands(
    "the same command with trainer.updates=20000 goes on for about 60 minutes",
    "mt-train --resume {run} trainer.updates=20000",
    "mt-train 'corpus.train=[a,MORE]' run.name=b-more",
)


def made(evidence: Evidence, **changes: Any) -> Evidence:
    """Return evidence with other values."""
    return replace(evidence, **changes)


WEAK = made(SOUND, bleu=4.0, chrf=22.0, interval=(3.5, 4.5), unseen=(4.0, 22.0), valid=(4.1, 22.5))
# It makes nothing of its source.
BLIND = made(WEAK, gain=0.09, valid_loss=1.9, train_gain=0.0, unrelated=0.95, unrelated_valid=0.95)
# The rule that gives the main reason -> such a training, and what makes it one to which the rule does not apply.
BORDERS: dict[str, tuple[Evidence, dict[str, Any]]] = {
    "broken_test": (made(SOUND, test_fault="it fits another"), {"test_fault": ""}),
    "one_target": (made(BLIND, one_target=0.31, commonest=0.31), {"one_target": 0.29}),
    "copies": (made(WEAK, copies=0.11, copied=0.21), {"copies": 0.09}),
    "sides": (made(BLIND, sides="data/train: the sides are swapped"), {"sides": ""}),
    "shift": (made(SOUND, shift="data/train, pairs 500 to 999", unrelated=0.08), {"unrelated": 0.06}),
    "cut": (made(WEAK, ratio=0.74), {"ratio": 0.76}),
    "unrelated": (made(BLIND, updates=300, passes=2.0), {"train_gain": 0.09}),
    "high_rate": (made(WEAK, valid_loss=5.6, rate=0.011), {"rate": 0.01}),
    "low_rate": (made(WEAK, valid_loss=5.6, peak=2.9e-5), {"peak": 3e-5}),
    "few_pairs": (made(BLIND, train_gain=1.0, pairs=499), {"pairs": 500}),
    "noisy": (made(SOUND, unrelated=0.18, correlation=0.6), {"unrelated": 0.16}),
    "stopped_early": (made(BLIND, passes=1.9), {"passes": 2.0}),
    "narrow": (made(BLIND, width=63, passes=2.0), {"width": 64}),
    "leak": (made(SOUND, leaked=0.03, unseen=(32.9, 55.0)), {"unseen": (33.1, 55.0)}),
    "brought_nothing": (made(SOUND, began_as="runs/a", brought_nothing=True), {"brought_nothing": False}),
    "other_domain": (made(SOUND, chrf=39.0, unseen=(35.0, 39.0)), {"chrf": 40.0}),
    "long_lines": (made(WEAK, too_long=0.21, longest=100), {"too_long": 0.2}),
    "subwords": (made(WEAK, subwords_per_word=3.1, vocabulary=499), {"vocabulary": 500}),
    "large_vocabulary": (made(WEAK, rare=0.31), {"rare": 0.3}),
    "by_heart": (made(WEAK, train_loss=0.94, dropout=0.19), {"dropout": 0.2}),
    "little_text": (made(WEAK, train_loss=1.39, pairs=19_999), {"pairs": 20_000}),
    "improving": (made(WEAK, gained=0.41), {"gained": 0.39}),
    "small_model": (made(WEAK, passes=10.0), {"passes": 9.9}),
}
