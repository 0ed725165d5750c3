"""What is in a corpus, what is wrong with it, and what training on it here would take."""

import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tolka.config.schemas import TrainConfig
from tolka.data.store import TokenStore
from tolka.errors import DataError
from tolka.formats.hub import opus_mt_name
from tolka.metrics.options import MetricsConfig
from tolka.report.data_check import write_check_page
from tolka.run.chosen import with_chosen_settings
from tolka.run.inputs import loss_of, prepare_inputs
from tolka.run.parents import load_parents
from tolka.run.texts import RunTexts, TextFaults, faults_of, open_corpus, read_texts
from tolka.run.training_setup import build_trainer, ready_device
from tolka.system.memory import keep_freed_memory, peak_memory_bytes
from tolka.system.progress import Say, bar
from tolka.text.check.diagnosis import HeldOut, diagnose
from tolka.text.check.histogram import histograms, quarters
from tolka.text.cleaning.steps import CleaningConfig, changes_of
from tolka.text.corpora.base import CorpusConfig
from tolka.text.pairs import Pair
from tolka.training.run_folder import RunFolder
from tolka.training.trainer import Trainer

_MIN_UPDATES, _MAX_UPDATES, _SECONDS = 3, 50, 10.0  # limits on the updates that are timed


def check_with_page(config: TrainConfig, say: Say) -> tuple[dict[str, Any], Path]:
    """Examine the text with the settings that it calls for and, where it can be trained on, time some updates.

    Returns what is found, as plain values for JSON, and its page in the run's folder; leaves no run, but for the
    prepared text. training: a diagnosis of each text. leaks: from "valid" and "test" into the training text. overlaps:
    of test sets with the validation set. wrong_sides: text -> what is wrong with its sides. unlike: sentences about
    training text that is written otherwise than held-out text. varieties: see `TextFaults`. kept: what the settings
    keep of the whole text. pieces: both sides in subwords; like kept, None for a text that cannot be read. unfit: why
    it cannot be trained on. pace: see `estimate_training`; None for a text that is unfit. cleaning: the settings that
    decide what is kept. chosen: as in `with_chosen_settings`. parent: a model to start from, or "".

    say: receives notes. DataError where a file cannot be read at all.
    """
    keep_freed_memory()
    try:
        config, choices = with_chosen_settings(config)
    except DataError:  # a broken text, which is described below
        choices = []
    # Raised here: that a SentencePiece model cannot be read is not a fault of the text.
    config.tokenizer.load_given()
    start = config.run.init_from
    texts, broken = _texts(config.corpus, config.run.prepared_folder, config.cleaning, config.metrics, say)
    found = _examine(texts, config.cleaning)
    found |= {
        "chosen": [asdict(choice) for choice in choices],
        "parent": "" if start else opus_mt_name(*config.corpus.direction),
    }
    # A trainer writes into a run's folder: into one that is gone afterwards.
    with tempfile.TemporaryDirectory() as folder:
        run, device = RunFolder(Path(folder), say=say), ready_device(config.trainer)
        try:
            if broken:
                raise DataError(broken)
            faults = faults_of(texts, config.cleaning)
            found |= asdict(faults)
            parents = load_parents(start, texts.corpus)
            inputs = prepare_inputs(config, texts, faults, parents, run.log)
            found["unfit"] = faults.unfit or loss_of(inputs, config)
            found |= {"kept": inputs.prepared.tally.as_dict(), "pieces": _pieces(inputs.prepared.store)}
            if not found["unfit"]:
                found["pace"] = estimate_training(build_trainer(config, inputs, run, device))
        # Text that cannot be trained on is a result too; what was found before stays.
        except DataError as error:
            found["unfit"] = found["unfit"] or str(error)
    return found, write_check_page(config.run.folder, config.as_dict(), found)


def _texts(
    options: CorpusConfig, cache: Path, cleaning: CleaningConfig, metrics: MetricsConfig, say: Say
) -> tuple[RunTexts, str]:
    """Return the texts, and "" or why they cannot be trained on; without sets where the text is too broken for them."""
    try:
        corpus = open_corpus(options, cache, say)
    # Sets cannot be taken out of a broken text, which is examined without them.
    except DataError as error:
        corpus = options.open()
        if not corpus.sizes:
            raise
        return RunTexts(corpus, {}, {}), str(error)
    return read_texts(corpus, cleaning.characters, metrics, say), ""


def _examine(texts: RunTexts, cleaning: CleaningConfig) -> dict[str, Any]:
    """Examine the training text, and the pairs of held-out sets that are in it; the rest of the result is open."""
    corpus, valid, tests = texts.corpus, dict[str, list[Pair]](), dict[str, list[Pair]]()
    if texts.validation:
        # Sets that were taken out of the training text are left out.
        (name, pairs), *others = texts.held_out.items()
        valid, tests = {name: pairs}, dict(others)
        valid, tests = ({k: v for k, v in sets.items() if k not in texts.set_aside} for sets in (valid, tests))
    held_out = HeldOut({**valid, **tests}, changes_of(cleaning, corpus.sole_direction))
    diagnoses = []
    for source in corpus.train:
        with bar(f"examining {source.name}", None, " pairs") as progress:
            found = asdict(diagnose(source, source.direction, held_out, progress.update))
            diagnoses.append({**found, "direction": list(source.direction)})
    leaks = {"valid": asdict(held_out.leaks(valid)), "test": asdict(held_out.leaks(tests))}
    result: dict[str, Any] = {"training": diagnoses, "leaks": leaks, "cleaning": asdict(cleaning)}
    return result | {"kept": None, "pieces": None, "pace": None, **asdict(TextFaults())}


def estimate_training(trainer: Trainer) -> dict[str, float | None]:
    """Time some updates of a trainer that has trained nothing yet; its weights, optimizer and position change.

    Returns speed, memory and length of a training without its validations, as plain values for JSON. memory_bytes: the
    peak of this process so far. epochs: None for a stream, whose length is unknown. at_plateau: whether training ends
    earlier where validations bring nothing better. unlimited_minutes: without trainer.max_minutes.
    """
    trainer.step.objective.train()
    # Asked first: a stream has no plan for its first buffer later.
    updates_per_epoch = len(trainer.loader.plan(0)) / trainer.config.accumulate
    # The first update is slower: it allocates memory and chooses kernels.
    trainer.probe()
    tokens_before, started_at, timed = trainer.state.tokens, time.perf_counter(), 0
    while timed < _MIN_UPDATES or (timed < _MAX_UPDATES and time.perf_counter() - started_at < _SECONDS):
        trainer.probe()
        timed += 1
    seconds, tokens = time.perf_counter() - started_at, trainer.state.tokens - tokens_before
    updates, most_minutes = trainer.config.updates, trainer.config.max_minutes
    unlimited = minutes = updates * seconds / timed / 60
    if most_minutes and minutes > most_minutes:
        updates, minutes = int(updates * most_minutes / minutes), most_minutes
    return {
        "tokens_per_second": tokens / seconds,
        "memory_bytes": peak_memory_bytes(),
        "updates": updates,
        "epochs": updates / updates_per_epoch if trainer.loader.round == "epoch" else None,
        "minutes": minutes,
        "parameters": trainer.step.objective.model.parameter_count(),
        "at_plateau": trainer.rate.schedule.decays_at_plateau and trainer.config.patience > 0,
        "unlimited_minutes": unlimited,
    }


def _pieces(store: TokenStore) -> dict[str, dict[str, Any]]:
    """Return the number of subwords on each side, their lengths' quarters and histogram."""
    sides = {"source": store.source_lengths, "target": store.target_lengths}
    drawn = histograms(*sides.values())
    return {
        name: {"total": int(lengths.sum()), "lengths": quarters(lengths), "histogram": asdict(histogram)}
        for (name, lengths), histogram in zip(sides.items(), drawn, strict=True)
    }
