"""The verdict on a run: its figures gathered, and judged."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from tolka.config.schemas import TrainConfig
from tolka.data.store import TokenStore
from tolka.distributed.ranks import Ranks
from tolka.engines.torch_engine import TorchEngine
from tolka.evaluation.evidence import gather
from tolka.evaluation.figures import OTHER_KIND
from tolka.evaluation.tester import Tester, TestResult
from tolka.evaluation.verdict import Verdict, verdict
from tolka.formats.hub import opus_mt_name
from tolka.metrics.significance import Comparison
from tolka.model_directory.read import SavedModel
from tolka.report.data_check import shift_words
from tolka.run.inputs import Inputs
from tolka.run.next_commands import from_parent, go_on, on_more_text
from tolka.run.provenance import recorded
from tolka.text.check.misalignment import find_shift
from tolka.text.direction import Direction
from tolka.training.run_folder import RunFolder
from tolka.training.state import TrainState
from tolka.translation.translator import Translator

_USUAL_RATES_ARE_KNOWN = ("adam", "adamw")
_CHANCE = 0.05  # p of a change that may be chance


def judge(
    config: TrainConfig,
    run: RunFolder,
    inputs: Inputs,
    best: SavedModel,
    translator: Translator[TorchEngine],
    tests: Sequence[TestResult],
    state: TrainState,
    ranks: Ranks,
) -> Verdict | None:
    """Return the verdict on the best model, by the first test set or else the validation set; None beside rank 0."""
    # A direction that is tested to see what is forgotten is not what the training was for.
    directions = inputs.corpus.directions
    if tests:
        result = weakest(tests, directions)
        pairs = inputs.test_pairs[result.name]
    else:
        # Validations translate greedily, and with weights that need not be the best.
        tester = Tester(translator, None, config.metrics, run.leave, ranks)
        names = inputs.validation_names
        result = weakest([tester(names[each], pairs, each) for each, pairs in inputs.validation.items()], directions)
        pairs = inputs.validation[result.direction]
    if not ranks.is_first:
        return None
    store, history, settings = inputs.prepared.store, run.history(), config.as_dict()
    # Noam's peak is not optimizer.lr, and other optimizers have other usual rates.
    is_usual = settings["optimizer"]["name"] in _USUAL_RATES_ARE_KNOWN and settings["scheduler"]["name"] != "noam"
    validation = best.scores.get("validation") or {}
    parent = "" if config.run.init_from else opus_mt_name(*result.direction)
    calls, name, horizon = recorded(run.path), run.path.name, settings["scheduler"].get("horizon", 0)
    words, longer = go_on(config.trainer, state, horizon)
    facts: dict[str, Any] = {
        "is_validation": not tests,
        "valid_bleu": validation.get("bleu") or 0.0,
        "valid_chrf": validation.get("chrf") or 0.0,
        "pairs": len(store),
        # With </s>, as the state counts. A stream has no passes, of which every comparison is false.
        "passes": math.nan if inputs.corpus.stream else state.tokens / (int(store.target_lengths.sum()) + len(store)),
        "updates": state.update,
        "minutes": state.seconds / 60,
        "rate": settings["optimizer"]["lr"] if is_usual else 0.0,
        "dropout": settings["model"].get("dropout", 0.0),
        "width": settings["model"]["d_model"],
        "sides": "; ".join(inputs.faults.wrong_sides.values()),
        "shift": shifted(store),
        "began_as": config.run.init_from,
        "before": _score_text(_main_change(result)),
        "forgotten": forgotten({test.name: _main_change(test) for test in tests if test is not result}),
        "warmup": settings["scheduler"].get("warmup", 0),
        "elsewhere": elsewhere(result, [test for test in tests if not _has_fallen(_main_change(test))]),
        "longer": words,
        "longer_command": longer,
        "more_command": on_more_text(calls, name),
        "parent_command": from_parent(calls, name, parent),
    }
    sample = inputs.sample(result.direction) or inputs.sample()
    validation = inputs.validation.get(result.direction) or inputs.validation_pairs
    return verdict(gather(translator, result, pairs, validation, sample, history, facts, store))


def shifted(store: TokenStore) -> str:
    """Return where the sides of a training text stop to be parallel, in words; "" where they do not."""
    # By subwords, as the characters are not kept; of the kept pairs, so that numbers of lines are about right.
    shift = find_shift(*(side.astype(np.float64) for side in (store.source_lengths, store.target_lengths)))
    return ", and ".join(shift_words(asdict(shift))) if shift else ""


def weakest(tests: Sequence[TestResult], trained: Collection[Direction]) -> TestResult:
    """Return the first test of a trained direction; of several such directions, that of the one with the lowest chrF2.

    The first of all where no direction of a test is trained.
    """
    firsts = {test.direction: test for test in reversed(tests) if test.direction in trained}
    return min(firsts.values(), key=_chrf) if firsts else tests[0]


def _chrf(test: TestResult) -> float:
    return next((score.value for score in test.scores if score.name == "chrF2"), math.inf)


def _main_change(test: TestResult) -> Comparison | None:
    """Return the change of BLEU, or else of chrF2, since the model that training started from; None without either."""
    by_name = {change.name: change for change in test.changes}
    return by_name.get("BLEU") or by_name.get("chrF2")


def _score_text(change: Comparison | None) -> str:
    """Return the score before a change, with its name; "" where there is none."""
    return f"{change.name} {change.a.value:.1f}" if change else ""


def elsewhere(judged: TestResult, tests: Sequence[TestResult]) -> str:
    """Return the chrF2 of the other test sets in the same direction that are translated far worse, in words."""
    far_worse = OTHER_KIND * _chrf(judged)
    others = [test for test in tests if test.direction == judged.direction and _chrf(test) < far_worse]
    found = ", ".join(f"{_chrf(test):.1f} on {test.name}" for test in others)
    return f"chrF2 {found}" if found else ""


def _has_fallen(change: Comparison | None) -> bool:
    """Return whether a score fell by more than a point, and not by chance."""
    return change is not None and change.difference < -1.0 and change.p_value < _CHANCE


def forgotten(changes: Mapping[str, Comparison | None]) -> str:
    """Return on which tests a score fell by more than a point, and not by chance, and how far; "" for none.

    changes: test -> change since the model that training started from.
    """
    texts = [
        f"{change.name} went from {change.a.value:.1f} to {change.b.value:.1f} on {name}"
        for name, change in changes.items()
        if change and _has_fallen(change)
    ]
    return ", ".join(texts)
