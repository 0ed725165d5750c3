"""What is in a corpus, what is wrong with it, and what training on it here would take."""

import tempfile
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
from tolka.system.memory import keep_freed_memory
from tolka.system.progress import Say, bar
from tolka.text.check.diagnosis import HeldOut, diagnose
from tolka.text.check.histogram import histograms, quarters
from tolka.text.cleaning.steps import CleaningConfig, changes_of
from tolka.text.corpora.base import CorpusConfig
from tolka.text.pairs import Pair
from tolka.training.run_folder import RunFolder
from tolka.training.time_estimate import estimate_training


def check_with_page(config: TrainConfig, say: Say) -> tuple[dict[str, Any], Path]:
    """Examine the text with the settings that it calls for and, where it can be trained on, time some updates.

    Returns what is found, as plain values for JSON, and its page in the run's folder; leaves no run, but for the
    prepared text. training: a diagnosis of each text. leaks: from "valid" and "test" into the training text. overlaps:
    of test sets with the validation set. wrong_sides: text -> what is wrong with its sides. unlike: sentences about
    training text that is written otherwise than held-out text. varieties: see `TextFaults`. kept: what the settings
    keep of the whole text. pieces: both sides in subwords; like kept, None for a text that cannot be read. unfit: why
    it cannot be trained on. pace: None for a text that is unfit. cleaning: the settings that decide what is kept.
    chosen: as in `with_chosen_settings`. parent: a model to start from, or "".

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
                found["pace"] = asdict(estimate_training(build_trainer(config, inputs, run, device)))
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


def _pieces(store: TokenStore) -> dict[str, dict[str, Any]]:
    """Return the number of subwords on each side, their lengths' quarters and histogram."""
    sides = {"source": store.source_lengths, "target": store.target_lengths}
    drawn = histograms(*sides.values())
    return {
        name: {"total": int(lengths.sum()), "lengths": quarters(lengths), "histogram": asdict(histogram)}
        for (name, lengths), histogram in zip(sides.items(), drawn, strict=True)
    }
