"""Measure what noise in a text costs a model, and write it into the model's card."""

from collections.abc import Sequence
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
from tolka.model_directory.read import Folders
from tolka.model_directory.settings import find_model_folder, load_settings
from tolka.model_directory.verify import read_json
from tolka.model_directory.write import rescore
from tolka.system.progress import bar, say
from tolka.text.pairs import Pair
from tolka.translation.opening import open_model
from tolka.translation.translator import Translator


def robustness(model: Folders, config: EvaluateConfig | Settings = (), **settings: Any) -> Robustness:
    """Return what capitals, typing errors, tags and other changes of a test set cost a model in chrF2.

    model, config, settings: as in `evaluate`, with source and one reference; at most 500 lines are translated, evenly
    spaced. The costs go into the card and scores.json of a model directory.
    """
    config = as_config(EvaluateConfig, evaluate_config, config, settings)
    sources, references = read_parallel(config, "robustness", model)
    translator: Translator[Any] = open_model(model, config.search, config.decoding, say=say)
    with bar("translating", None, " lines") as progress:

        def translate(lines: Sequence[str]) -> Sequence[str]:
            return translator(lines, tick=progress.update)

        language = config.files.language or translator.direction.target
        result = measure(translate, [Pair(*both) for both in zip(sources, references, strict=True)], language)
    if isinstance(model, str | Path) or len(model) == 1:
        _write(Path(model if isinstance(model, str | Path) else model[0]), result)
    return result


def _write(model: Path, result: Robustness) -> None:
    """Write the costs into a model directory."""
    try:
        folder = find_model_folder(model)
        settings, scores = load_settings(folder), read_json(folder / SCORES)
    except CheckpointError:
        say(f"note: {model} is no model directory of tolka, so that no card has these figures")
        return
    # Without the examples: a card may be published, and the text need not be.
    found = {**scores, ROBUSTNESS: result.as_dict(with_examples=False)}
    facts = facts_of(folder, settings, scores)
    rescore(folder, found, model_card(settings, facts, found, parity=parity_section(folder)))
