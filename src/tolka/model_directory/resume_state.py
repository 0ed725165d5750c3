"""The state from which a training resumes, in `last/` of its run directory."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from tolka.model_directory.file_names import STATE_FACTS, STATE_SHARDS, STATE_TENSORS
from tolka.model_directory.verify import as_written, read_json, verified_manifest
from tolka.model_directory.weights import read_tensors

if TYPE_CHECKING:  # torch's distributed checkpoints take a second to import
    from tolka.model_directory.shards import Shards


@dataclass(frozen=True)
class ResumeState:
    """State of a training besides the weights: named tensors, and values for JSON.

    shards: further tensors in a folder, of which each process has a part.
    """

    tensors: dict[str, Tensor]
    facts: dict[str, Any]
    shards: "Shards | None" = None


def restoring(folder: Path) -> AbstractContextManager[None]:
    """Raise CheckpointError if the values of a state are not those that a training writes. folder: `last/`."""
    return as_written(f"{folder / STATE_FACTS} or {STATE_TENSORS}")


def load_state(folder: Path) -> ResumeState:
    """Verify and load the resume state of a run's `last/`."""
    verified_manifest(folder).require([STATE_FACTS, STATE_TENSORS])
    shards = None
    if (folder / STATE_SHARDS).is_dir():
        from tolka.model_directory.shards import Shards

        shards = Shards(folder / STATE_SHARDS)
    return ResumeState(read_tensors(folder / STATE_TENSORS), read_json(folder / STATE_FACTS), shards)
