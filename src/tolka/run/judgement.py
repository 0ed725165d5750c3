"""The verdict on a run: its model, texts and course measured, and judged."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from tolka.config.schemas import TrainConfig
from tolka.distributed.ranks import Ranks
from tolka.engines.torch_engine import TorchEngine
from tolka.errors import DataError
from tolka.evaluation.tester import Tester, TestResult
from tolka.evaluation.verdict import Commands, Verdict, verdict
from tolka.evaluation.verdict_evidence import Evidence
from tolka.evaluation.verdict_measurements import Material, last_third, measure_fit, measure_leaks, measure_text
from tolka.metrics.significance import Comparison
from tolka.model_directory.read import SavedModel
from tolka.report.data_check import shift_words
from tolka.run.inputs import Inputs
from tolka.run.next_commands import continuation, monolingual_command, more_text_command, with_plugins
from tolka.run.provenance import recorded_calls
from tolka.text.check.misalignment import find_shift_in
from tolka.text.direction import Direction
from tolka.text.pairs import PairSource
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
    texts, directions = inputs.texts, inputs.texts.corpus.directions
    if tests:
        result = weakest_test(tests, directions)
        pairs = texts.tests[result.name]
    else:
        # Validations translate greedily, and with weights that need not be the best.
        tester = Tester(translator, None, config.metrics, run.leave, ranks)
        names = texts.validation_names
        results = [tester(names[each], pairs, each) for each, pairs in texts.validation.items()]
        result = weakest_test(results, directions)
        pairs = texts.validation[result.direction]
    if not ranks.is_first:
        return None
    settings = config.as_dict()
    material = Material(
        translator.for_direction(result.direction),
        pairs,
        result.translations,
        texts.validation.get(result.direction) or texts.validation_pairs,
        inputs.sample_by_direction.get(result.direction) or inputs.sample,
        inputs.prepared.store,
    )
    validated, (leaks, unseen) = best.scores.get("validation") or {}, measure_leaks(material)
    fit = measure_fit(material)
    # A stream has no end: the pairs that it has read.
    read = round(state.tokens / float(np.mean([len(target) + 1 for _, target in material.training])))
    looks_shifted = fit["unrelated"] - fit["unrelated_valid"] > 0.05 or fit["unrelated_valid"] > 0.5
    evidence = Evidence(
        test=result.name,
        is_validation=not tests,
        interval=next((each.interval for each in result.scores if each.name == material.scale.split()[0]), None),
        unseen=unseen,
        valid=(validated.get("bleu") or 0.0, validated.get("chrf") or 0.0),
        pairs=read if inputs.texts.corpus.stream else len(material.store),
        sides="; ".join(inputs.faults.wrong_sides.values()),
        # To read the text once more takes seconds.
        shift=shift_in_words(texts.corpus.train) if looks_shifted else "",
        **measure_text(material, result.name),
        leaked=leaks[0],
        near=leaks[1],
        **fit,
        **_course(settings, inputs, run, state, "bleu" if material.scale == "BLEU" else "chrf"),
        before=(change.name, change.a.value) if (change := _main_change(result)) else None,
        forgotten=forgotten_tests(test for test in tests if test is not result),
    )
    calls, name = recorded_calls(run.path), run.path.name
    longer = continuation(config.trainer, state, settings["scheduler"].get("horizon", 0))
    more = more_text_command(calls, name, settings["corpus"])
    found = verdict(evidence, Commands(*longer, more, monolingual_command(calls, name)))
    return replace(found, next=[each._replace(command=with_plugins(each.command, calls)) for each in found.next])


def _course(
    settings: Mapping[str, Any], inputs: Inputs, run: RunFolder, state: TrainState, metric: str
) -> dict[str, Any]:
    """Return the course of the training: fields of Evidence. metric: of the validations."""
    store, history, is_stream = inputs.prepared.store, run.history(), bool(inputs.texts.corpus.stream)
    # Noam's peak is not optimizer.lr, and other optimizers have other usual rates.
    is_usual = settings["optimizer"]["name"] in _USUAL_RATES_ARE_KNOWN and settings["scheduler"]["name"] != "noam"
    peak = settings["optimizer"]["lr"] if is_usual else 0.0
    return {
        "updates": state.update,
        # With </s>, as the state counts. A stream has no passes, of which every comparison is false.
        "passes": math.nan if is_stream else state.tokens / (int(store.target_lengths.sum()) + len(store)),
        "minutes": state.seconds / 60,
        "rate": max((line["lr"] for line in history if "lr" in line), default=peak) if is_usual else 0.0,
        "peak": peak,
        "warmup": settings["scheduler"].get("warmup", 0),
        **last_third(history, metric),
        "width": settings["model"]["d_model"],
        "dropout": settings["model"].get("dropout", 0.0),
        "began_as": settings["run"]["init_from"],
        "brought_nothing": state.validated_start and not state.best_update,
    }


def shift_in_words(sources: Iterable[PairSource]) -> str:
    """Return the place from which on a training text is shifted by some lines, in words; "" where it is parallel."""
    for source in sources:
        try:
            shift = find_shift_in(source)
        except DataError:  # the file may have changed since
            continue
        if shift and shift.lines:
            return f"{source.name}, {', and '.join(shift_words(asdict(shift)))}"
    return ""


def weakest_test(tests: Sequence[TestResult], trained: Collection[Direction]) -> TestResult:
    """Return the first test of a trained direction; of several such directions, that of the one with the lowest chrF2.

    The first of all where no direction of a test is trained.
    """
    firsts = {test.direction: test for test in reversed(tests) if test.direction in trained}
    scores = {each: {score.name: score.value for score in test.scores} for each, test in firsts.items()}
    return firsts[min(firsts, key=lambda each: scores[each].get("chrF2", math.inf))] if firsts else tests[0]


def _main_change(test: TestResult) -> Comparison | None:
    """Return the change of BLEU, or else of chrF2, since the model that training started from; None without either."""
    by_name = {change.name: change for change in test.changes}
    return by_name.get("BLEU") or by_name.get("chrF2")


def forgotten_tests(tests: Iterable[TestResult]) -> list[tuple[str, str, float, float]]:
    """Return the tests whose score fell by more than a point, and not by chance: test, score, before and now."""
    changes = [(test.name, change) for test in tests if (change := _main_change(test))]
    fallen = [each for each in changes if each[1].difference < -1.0 and each[1].p_value < _CHANCE]
    return [(name, change.name, change.a.value, change.b.value) for name, change in fallen]
