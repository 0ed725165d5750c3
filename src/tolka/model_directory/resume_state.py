"""The state from which a training resumes, in `last/` of its run directory."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from tolka.model_directory.file_names import STATE_FACTS, STATE_TENSORS
from tolka.model_directory.verify import as_written, read_json, verified_manifest
from tolka.model_directory.weights import read_tensors


@dataclass(frozen=True)
class ResumeState:
    """State of a training besides the weights: named tensors, and values for JSON."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]


def restoring(folder: Path) -> AbstractContextManager[None]:
    """Raise CheckpointError if the values of a state are not those that a training writes. folder: `last/`."""
    return as_written(f"{folder / STATE_FACTS} or {STATE_TENSORS}")


def load_state(folder: Path) -> ResumeState:
    """Verify and load the resume state of a run's `last/`."""
    verified_manifest(folder).require([STATE_FACTS, STATE_TENSORS])
    return ResumeState(read_tensors(folder / STATE_TENSORS), read_json(folder / STATE_FACTS))
