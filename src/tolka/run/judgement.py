"""The verdict on a run: its figures gathered, and judged."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tolka.config.schemas import TrainConfig
from tolka.distributed.ranks import Ranks
from tolka.engines.torch_engine import TorchEngine
from tolka.evaluation.evidence import gather
from tolka.evaluation.tester import Tester, TestResult
from tolka.evaluation.verdict import Verdict, verdict
from tolka.formats.hub import opus_mt_name
from tolka.metrics.significance import Comparison
from tolka.model_directory.read import SavedModel
from tolka.run.inputs import Inputs
from tolka.training.options import TrainerConfig
from tolka.training.run_folder import RunFolder
from tolka.training.state import TrainState
from tolka.translation.translator import Translator

_USUAL_RATES_ARE_KNOWN = ("adam", "adamw")
_CHANCE = 0.05  # p of a change that may be chance
_FEW_UPDATES = 1000


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
    if tests:
        result, pairs = tests[0], inputs.test_pairs[tests[0].name]
    else:
        # Validations translate greedily, and with weights that need not be the best.
        tester = Tester(translator, None, config.metrics, config.corpus.target, run.leave, ranks)
        (name, *_), pairs = inputs.held_out, inputs.validation_pairs
        result = tester(name, pairs)
    if not ranks.is_first:
        return None
    store, history, settings = inputs.prepared.store, run.history(), config.as_dict()
    # Noam's peak is not optimizer.lr, and other optimizers have other usual rates.
    is_usual = settings["optimizer"]["name"] in _USUAL_RATES_ARE_KNOWN and settings["scheduler"]["name"] != "noam"
    validation = best.scores.get("validation") or {}
    facts: dict[str, Any] = {
        "is_validation": not tests,
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
        "parent": "" if config.run.init_from else opus_mt_name(*config.corpus.direction),
        "began_as": config.run.init_from,
        "before": tests[0].changes[0].a.value if tests and tests[0].changes else None,
        "forgotten": forgotten({test.name: test.changes for test in tests[1:]}),
        "longer": longer(config.trainer, state),
    }
    sample = list(zip(*inputs.sample, strict=True))
    return verdict(gather(translator, result, pairs, inputs.validation_pairs, sample, history, facts))


def forgotten(changes: Mapping[str, Sequence[Comparison]]) -> str:
    """Return the tests of which the first score fell by a point at least, and not by chance, in words; or "".

    changes: test -> changes of its scores since the model that training started from.
    """
    first = [(name, each[0]) for name, each in changes.items() if each]
    texts = [
        f"{change.name} went from {change.a.value:.1f} to {change.b.value:.1f} on {name}"
        for name, change in first
        if change.difference < -1.0 and change.p_value < _CHANCE
    ]
    return f"; it has forgotten other things: {', '.join(texts)}" if texts else ""


def longer(options: TrainerConfig, state: TrainState) -> str:
    """Return the setting with which the training would go on, and what that takes."""
    minutes = state.seconds / 60
    if state.plateau or 0 < options.patience <= state.stale:
        return f"another run with trainer.patience={2 * options.patience} waits for longer"
    if options.max_minutes and minutes >= options.max_minutes:
        if state.update < _FEW_UPDATES:
            return "the same command without trainer.max_minutes goes on"
        return f"the same command with trainer.max_minutes={2 * options.max_minutes:g} goes on"
    key, value = ("epochs", 2 * options.epochs) if options.epochs else ("updates", max(2 * state.update, _FEW_UPDATES))
    again = minutes * (value / state.update - 1 if key == "updates" else 1)
    return f"the same command with trainer.{key}={value:g} goes on for about {max(again, 1):.0f} minutes"
