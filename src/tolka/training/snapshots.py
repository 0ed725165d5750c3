"""Snapshots of a run's model for `best/`, `last/` and checkpoints, and reading `last/` back."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tolka.errors import ConfigError
from tolka.model_directory.card import model_card
from tolka.model_directory.read import ResumeState, load_state
from tolka.model_directory.verify import TrainingSources
from tolka.model_directory.weights import load_weights
from tolka.model_directory.write import Snapshot, snapshot
from tolka.models.base import Seq2Seq
from tolka.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class Snapshots:
    """The snapshots of one run. store: the name of its token store. facts: for model cards."""

    model: Seq2Seq
    tokenizer: Tokenizer
    config: Mapping[str, Any]
    sources: TrainingSources
    facts: Mapping[str, str]
    run: Path
    store: str

    def take(self, scores: dict[str, Any], state: ResumeState | None = None) -> Snapshot:
        """Return the model as it is now, with its model card, to be written before training changes the weights."""
        card, all_scores = model_card(self.config, self.facts, scores), {**scores, "facts": dict(self.facts)}
        return snapshot(self.model, self.tokenizer, self.config, self.sources, all_scores, card, state)

    def last_state(self) -> ResumeState:
        """Return the resume state in `last/`; ConfigError if the text has changed."""
        return read_last_state(self.run, self.store)

    def load_last_weights(self) -> None:
        """Put the weights of `last/` into the model; CheckpointError when they do not fit."""
        load_weights(self.model, self.run / "last")


def read_last_state(run: Path, store: str) -> ResumeState:
    """Return the resume state of a run; ConfigError when the text has changed, which the settings do not show."""
    state = load_state(run / "last")
    if state.facts.get("store") != store:
        raise ConfigError(
            f"the training text, or what is held out of it, has changed since the run in {run} began (or "
            "another version of tolka prepared it), so its token ids mean other subwords; choose another run.name, "
            f"with run.init_from={shlex.quote(str(run))} to begin with its weights"
        )
    return state
