"""Snapshots of a run's model for `best/`, `last/` and checkpoints, and reading `last/` back."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tolka.errors import ConfigError
from tolka.model_directory.card import model_card
from tolka.model_directory.card_values import NUMBER, check_kinds
from tolka.model_directory.file_names import STATE_FACTS
from tolka.model_directory.manifest import TrainingSources
from tolka.model_directory.resume_state import ResumeState, load_state
from tolka.model_directory.weights import load_weights
from tolka.model_directory.write import snapshot
from tolka.models.base import Seq2Seq
from tolka.text.tokenizer.tokenizer import Tokenizer
from tolka.training.checkpoint_writer import SavableModel

_COUNTS = ("update", "epoch", "batch", "tokens", "best_update", "stale", "validated_at")
_LATER_COUNTS = ("averaged_at?", "skipped?", "skipped_in_row?", "splits?", "returns?", "validated_start?")
_FACTS = {
    "train": {
        **dict.fromkeys((*_COUNTS, *_LATER_COUNTS), int),
        **dict.fromkeys(("seconds", "safety_seconds?", "best?", "best_nll?"), NUMBER),
        "precision": str,
        "best_mean_of?": [int],
        "kept?": {"*": NUMBER},
        "kept_nll?": {"*": NUMBER},
    },
    "store": str,
    "fit?": {"batches": int, "tokens": int},
    "loader?": {"*": object},
    "window?": [NUMBER, NUMBER],
    "written?": int,
    "unrecorded?": [{"*": object}],
    "round_batches?": int,
}
"""The kinds of the values that a training resumes from."""


class Snapshots(Protocol):
    """The snapshots of a model that a trainer takes, and reads back from `last/`."""

    def take(self, scores: dict[str, Any]) -> SavableModel:
        """Return the model as it is now. scores: for scores.json."""

    def last_state(self) -> ResumeState:
        """Return the resume state in `last/`."""

    def load_last_weights(self) -> None:
        """Put the weights of `last/` into the model."""


@dataclass(frozen=True)
class RunSnapshots:
    """The snapshots of one run. store: the name of its token store. facts: for model cards."""

    model: Seq2Seq
    tokenizer: Tokenizer
    config: Mapping[str, Any]
    sources: TrainingSources
    facts: Mapping[str, str]
    run: Path
    store: str

    def take(self, scores: dict[str, Any]) -> SavableModel:
        """Return the model as it is now, with its model card."""
        card = model_card(self.config, self.facts, scores)
        return snapshot(
            self.model, self.tokenizer, self.config, self.sources, {**scores, "facts": dict(self.facts)}, card
        )

    def last_state(self) -> ResumeState:
        """Return the resume state in `last/`; ConfigError if the text has changed."""
        return read_last_state(self.run, self.store)

    def load_last_weights(self) -> None:
        """Put the weights of `last/` into the model; CheckpointError when they do not fit."""
        load_weights(self.model, self.run / "last")


def read_last_state(run: Path, store: str) -> ResumeState:
    """Return the resume state of a run; ConfigError when the text has changed, which the settings do not show."""
    state = load_state(run / "last")
    check_kinds(state.facts, _FACTS, f"{run / 'last' / STATE_FACTS}:", " ")
    if state.facts["store"] != store:
        raise ConfigError(
            f"the training text, or what is held out of it, has changed since the run in {run} began (or "
            "another version of tolka prepared it), so its token ids mean other subwords; choose another run.name, "
            f"with run.init_from={run} to begin with its weights"
        )
    return state
