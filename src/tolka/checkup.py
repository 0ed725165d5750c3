"""mt-train --check: what is in the text, what is wrong with it, and what training on it here would take."""

import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from tolka.config import TrainConfig
from tolka.errors import DataError
from tolka.pipeline import Pipeline
from tolka.progress import bar
from tolka.runtime import keep_freed_memory
from tolka.text.cleaning import read_split
from tolka.text.doctor import Diagnosis, Finding, HeldOut, diagnose
from tolka.training.pace import Pace


@dataclass(frozen=True)
class Checkup:
    """Of a corpus. leaks: held-out sentences that stand in the training text. unfit: why it cannot be trained on."""

    training: list[Diagnosis]
    leaks: list[Finding]
    pace: Pace | None
    unfit: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "training": [diagnosis.as_dict() for diagnosis in self.training],
            "leaks": [asdict(finding) for finding in self.leaks],
            "pace": asdict(self.pace) if self.pace else None,
            "unfit": self.unfit,
        }


def check(config: TrainConfig, log: Callable[[str], None]) -> Checkup:
    """Examine the text and, where it can be trained on, time some updates; leaves no run, only the prepared text.

    log: is told what is found on the way. DataError where a file cannot be read at all.
    """
    corpus = config.corpus.open()
    sets = {}
    for source in (*corpus.valid, *corpus.tests):
        sets[source.name], tally = read_split([source], source.name)
        log(f"{source.name}: {tally.summary()}")
    held_out = HeldOut(sets)
    diagnoses = []
    for source in corpus.train:
        with bar(f"examining {source.name}", None, " pairs") as progress:
            languages = config.corpus.source, config.corpus.target
            diagnoses.append(diagnose(source, languages, config.cleaning, held_out, progress.update))
    leaks = [finding for finding in held_out.findings() if finding.count]
    try:
        pace, unfit = _pace(config), ""
    except DataError as error:
        pace, unfit = None, str(error)
    return Checkup(diagnoses, leaks, pace, unfit)


def _pace(config: TrainConfig) -> Pace:
    """Of a run that is not kept."""
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as folder:
        return Pipeline(replace(config, run=replace(config.run, dir=folder))).pace()
