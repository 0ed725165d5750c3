"""What is in a corpus, what is wrong with it, and what training on it here would take."""

import tempfile
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tolka.config.schemas import TrainConfig
from tolka.errors import DataError
from tolka.report.data_check_page import write_check_page
from tolka.run.inputs import Inputs
from tolka.run.pipeline import Pipeline
from tolka.system.memory import keep_freed_memory
from tolka.system.progress import bar
from tolka.text.check.diagnosis import Diagnosis, Finding, HeldOut, Leaks, diagnose
from tolka.text.check.histogram import Histogram, histograms, quarters
from tolka.text.cleaning.cleaner import Tally
from tolka.text.cleaning.steps import CleaningConfig
from tolka.text.corpora.base import Corpus
from tolka.text.pairs import Pair
from tolka.training.time_estimate import TrainingEstimate

_Sets = dict[str, list[Pair]]


@dataclass(frozen=True)
class Pieces:
    """One side of the cleaned text as subwords. lengths, histogram: as in `Side`, in subwords."""

    total: int
    lengths: list[int]
    histogram: Histogram


@dataclass(frozen=True)
class DataCheck:
    """What was found in a corpus. leaks: from "valid" and "test" into the training text. unfit: why it cannot be
    trained on.

    cleaning: the settings that decide what is kept. overlaps: of test sets with the validation set. wrong_sides: text
    -> what is wrong with its sides. tokenised: sentences about text that is, where other text is not. kept: what the
    settings keep of the whole text. pieces: of source and target; like kept, None for a text that cannot be read.
    pace: None for each text that is unfit.
    """

    training: list[Diagnosis]
    cleaning: CleaningConfig
    leaks: dict[str, Leaks]
    overlaps: list[Finding] = field(default_factory=list)
    wrong_sides: dict[str, str] = field(default_factory=dict)
    tokenised: list[str] = field(default_factory=list)
    kept: Tally | None = None
    pieces: tuple[Pieces, Pieces] | None = None
    pace: TrainingEstimate | None = None
    unfit: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "training": [asdict(diagnosis) for diagnosis in self.training],
            "kept": self.kept.as_dict() if self.kept else None,
            "leaks": {kind: asdict(leaks) for kind, leaks in self.leaks.items()},
            "overlaps": [asdict(finding) for finding in self.overlaps],
            "wrong_sides": self.wrong_sides,
            "tokenised": self.tokenised,
            "pieces": dict(zip(("source", "target"), map(asdict, self.pieces), strict=True)) if self.pieces else None,
            "pace": asdict(self.pace) if self.pace else None,
            "unfit": self.unfit,
            "cleaning": asdict(self.cleaning),
        }


def check(config: TrainConfig) -> DataCheck:
    """Examine the text and, where it can be trained on, time some updates; leaves no run, only the prepared text.

    DataError where a file cannot be read at all.
    """
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as folder:
        return _examine(Pipeline(replace(config, run=replace(config.run, dir=folder))))


def write_page(config: TrainConfig, found: DataCheck) -> Path:
    """Write check.html into the run's folder, which is created if need be; return its path."""
    return write_check_page(config.run.folder, config.as_dict(), found.as_dict())


def _examine(pipeline: Pipeline) -> DataCheck:
    """Examine a pipeline's text; its inputs stay read."""
    config, inputs = pipeline.config, pipeline.inputs
    config.tokenizer.given()  # a model that cannot be read is no fault of the text
    corpus, valid, tests = _sets_to_compare(inputs)
    held_out = HeldOut({**valid, **tests}, config.cleaning)
    diagnoses = []
    for source in corpus.train:
        with bar(f"examining {source.name}", None, " pairs") as progress:
            diagnoses.append(diagnose(source, config.corpus.direction, held_out, progress.update))
    found = DataCheck(diagnoses, config.cleaning, {"valid": held_out.leaks(valid), "test": held_out.leaks(tests)})
    try:
        found = replace(found, overlaps=inputs.overlaps, wrong_sides=inputs.wrong_sides, tokenised=inputs.tokenised)
        found = replace(found, unfit=inputs.refused_sides)
        unfit = found.unfit or inputs.loss
        found = replace(found, kept=inputs.prepared.tally, pieces=_pieces(pipeline), unfit=unfit)
        return found if unfit else replace(found, pace=pipeline.pace())
    except DataError as error:
        return replace(found, unfit=found.unfit or str(error))


def _sets_to_compare(inputs: Inputs) -> tuple[Corpus, _Sets, _Sets]:
    """Return the corpus, and the validation and test sets whose pairs may also be in the training text.

    Sets taken out of the training text are left out; there are none at all where the text is too broken for it.
    """
    try:
        corpus = inputs.corpus
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


def _pieces(pipeline: Pipeline) -> tuple[Pieces, Pieces]:
    """Return the subword statistics of source and target."""
    store = pipeline.inputs.prepared.store
    lengths = store.source_lengths, store.target_lengths
    source, target = (
        Pieces(int(side.sum()), quarters(side), histogram)
        for side, histogram in zip(lengths, histograms(*lengths), strict=True)
    )
    return source, target
