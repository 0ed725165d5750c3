"""The verdict on a run: its figures gathered, and judged."""

import math
from collections.abc import Sequence
from typing import Any

from tolka.config.schemas import TrainConfig
from tolka.distributed.ranks import Ranks
from tolka.engines.torch_engine import TorchEngine
from tolka.evaluation.evidence import gather
from tolka.evaluation.tester import Tester, TestResult
from tolka.evaluation.verdict import Verdict, verdict
from tolka.formats.hub import opus_mt_name
from tolka.model_directory.read import SavedModel
from tolka.run.inputs import Inputs
from tolka.training.run_folder import RunFolder
from tolka.training.state import TrainState
from tolka.translation.translator import Translator

_USUAL_RATES_ARE_KNOWN = ("adam", "adamw")


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
    }
    sample = list(zip(*inputs.sample, strict=True))
    return verdict(gather(translator, result, pairs, inputs.validation_pairs, sample, history, facts))
