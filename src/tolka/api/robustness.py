"""Measure what noise in a text costs a model, and write it into the model's card."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tolka.api.scored_texts import read_parallel
from tolka.config.command_line import evaluate_config
from tolka.config.schemas import EvaluateConfig
from tolka.config.typed import Settings, as_config
from tolka.errors import CheckpointError
from tolka.evaluation.robustness import Robustness, measure
from tolka.model_directory.card import ROBUSTNESS, facts_of, model_card, parity_section
from tolka.model_directory.file_names import SCORES
from tolka.model_directory.settings import Folders, find_model_folder, load_settings
from tolka.model_directory.verify import read_json
from tolka.model_directory.write import rescore
from tolka.system.progress import Say, bar, say
from tolka.text.direction import Direction
from tolka.text.pairs import Pair
from tolka.translation.opening import open_model
from tolka.translation.translator import Translator


def robustness(model: Folders, config: EvaluateConfig | Settings = (), say: Say = say, **settings: Any) -> Robustness:
    """Return what capitals, typing errors, tags and other changes of a test set cost a model in chrF2.

    model, config, settings: as in `evaluate`, with source and one reference; at most 500 lines are translated, evenly
    spaced. say: receives notes. The costs go into the card and scores.json of a model directory.
    """
    config = as_config(EvaluateConfig, partial(evaluate_config, say=say), config, settings)
    sources, references = read_parallel(config, say, "robustness", model)
    translator: Translator[Any] = open_model(model, config.search, config.decoding, say=say)
    folder = _folder_of(model, say)
    direction = Direction(translator.direction.source, config.files.language or translator.direction.target)
    pairs = [Pair(*both) for both in zip(sources, references, strict=True)]
    with bar("translating", None, " lines") as progress:
        result = measure(partial(translator, tick=progress.update), pairs, direction)
    result = replace(result, text=Path(config.files.source).name)
    if folder:
        _write(folder, result)
    return result


def _folder_of(model: Folders, say: Say) -> Path | None:
    """Return the model directory with a card to write to; None with a note, or for several models, which have none."""
    if not isinstance(model, str | Path) and len(model) != 1:
        return None
    one = Path(model if isinstance(model, str | Path) else model[0])
    try:
        folder = find_model_folder(one)
        load_settings(folder)
        return folder
    except CheckpointError:
        say(f"note: {one} is no model directory of tolka, so that no card has these figures")
        return None


def _write(folder: Path, result: Robustness) -> None:
    """Write the costs into a model directory."""
    settings, scores = load_settings(folder), read_json(folder / SCORES)
    # Without the examples: a card may be published, and the text need not be.
    found = {**scores, ROBUSTNESS: result.as_dict(with_examples=False)}
    facts = facts_of(folder, scores)
    rescore(folder, found, model_card(settings, facts, found, parity=parity_section(folder)))
