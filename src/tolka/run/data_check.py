"""What is in a corpus, what is wrong with it, and what training on it here would take."""

import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tolka.config.schemas import TrainConfig
from tolka.data.store import TokenStore
from tolka.errors import DataError
from tolka.formats.hub import opus_mt_name
from tolka.report.data_check import write_check_page
from tolka.run.chosen import with_chosen_settings
from tolka.run.inputs import Inputs
from tolka.run.text_faults import TextFaults
from tolka.run.training_setup import build_trainer, ready_device
from tolka.system.memory import keep_freed_memory
from tolka.system.progress import Say, bar, silent
from tolka.text.check.diagnosis import HeldOut, diagnose
from tolka.text.check.histogram import histograms, quarters
from tolka.text.cleaning.steps import changes_of
from tolka.text.corpora.base import Corpus
from tolka.text.pairs import Pair
from tolka.training.run_folder import RunFolder
from tolka.training.time_estimate import TrainingEstimate, estimate_training

_Sets = dict[str, list[Pair]]


def check(config: TrainConfig, say: Say = silent) -> dict[str, Any]:
    """Examine the text and, where it can be trained on, time some updates; leaves no run, only the prepared text.

    Returns the result as plain values for JSON. training: a diagnosis of each text. leaks: from "valid" and "test"
    into the training text. overlaps: of test sets with the validation set. wrong_sides: text -> what is wrong with its
    sides. unlike: sentences about training text that is written otherwise than held-out text. varieties: see
    `TextFaults`. kept: what the settings keep of the whole text. pieces: both sides in subwords; like kept, None for a
    text that cannot be read. unfit: why it cannot be trained on. pace: None for a text that is unfit. cleaning: the
    settings that decide what is kept.

    say: receives notes. DataError where a file cannot be read at all.
    """
    keep_freed_memory()
    # A trainer writes into a run's folder: into one that is gone afterwards.
    with tempfile.TemporaryDirectory() as folder:
        run, device = RunFolder(Path(folder), say=say), ready_device(config.trainer)
        inputs = Inputs(config, run.log)
        return _examine(config, inputs, lambda: estimate_training(build_trainer(config, inputs, run, device)))


def check_with_page(config: TrainConfig, say: Say) -> tuple[dict[str, Any], Path]:
    """Check with the settings that are chosen by the text; return what is found, and its page in the run's folder.

    Beside what `check` returns: chosen, as in `with_chosen_settings`; parent: a model to start from, or "".
    """
    try:
        config, choices = with_chosen_settings(config)
    except DataError:  # a broken text, which the check describes
        choices = []
    found = {
        **check(config, say),
        "chosen": [asdict(choice) for choice in choices],
        "parent": "" if config.run.init_from else opus_mt_name(*config.corpus.direction),
    }
    return found, write_check_page(config.run.folder, config.as_dict(), found)


def _examine(config: TrainConfig, inputs: Inputs, pace: Callable[[], TrainingEstimate]) -> dict[str, Any]:
    """Examine a training's text. pace: times some updates, once the text is known to be fit."""
    # Raised here: that a SentencePiece model cannot be read is not a fault of the text.
    config.tokenizer.load_given()
    corpus, valid, tests = _sets_to_compare(inputs)
    held_out = HeldOut({**valid, **tests}, changes_of(config.cleaning, corpus.sole_direction))
    diagnoses = []
    for source in corpus.train:
        with bar(f"examining {source.name}", None, " pairs") as progress:
            found = asdict(diagnose(source, source.direction, held_out, progress.update))
            diagnoses.append({**found, "direction": list(source.direction)})
    leaks = {"valid": asdict(held_out.leaks(valid)), "test": asdict(held_out.leaks(tests))}
    result: dict[str, Any] = {"training": diagnoses, "leaks": leaks, "cleaning": asdict(config.cleaning)}
    result |= {"kept": None, "pieces": None, "pace": None, **asdict(TextFaults())}
    try:
        result |= asdict(inputs.faults)
        result["unfit"] = result["unfit"] or inputs.loss
        result |= {"kept": inputs.prepared.tally.as_dict(), "pieces": _pieces(inputs.prepared.store)}
        if not result["unfit"]:
            result["pace"] = asdict(pace())
    # Text that cannot be trained on is a result too; what was found before stays.
    except DataError as error:
        result["unfit"] = result["unfit"] or str(error)
    return result


def _sets_to_compare(inputs: Inputs) -> tuple[Corpus, _Sets, _Sets]:
    """Return the corpus, and the validation and test sets whose pairs may also be in the training text.

    Sets taken out of the training text are left out; there are none at all where the text is too broken for it.
    """
    try:
        corpus = inputs.corpus
    # Sets cannot be taken out of a broken text, which is examined without them.
    except DataError:
        corpus = inputs.config.corpus.open()
        if not corpus.sizes:
            raise
        return corpus, {}, {}
    (valid, pairs), *tests = inputs.held_out.items()
    apart = inputs.set_aside
    return (
        corpus,
        {valid: pairs} if valid not in apart else {},
        {name: pairs for name, pairs in tests if name not in apart},
    )


def _pieces(store: TokenStore) -> dict[str, dict[str, Any]]:
    """Return the number of subwords on each side, their lengths' quarters and histogram."""
    sides = {"source": store.source_lengths, "target": store.target_lengths}
    drawn = histograms(*sides.values())
    return {
        name: {"total": int(lengths.sum()), "lengths": quarters(lengths), "histogram": asdict(histogram)}
        for (name, lengths), histogram in zip(sides.items(), drawn, strict=True)
    }
