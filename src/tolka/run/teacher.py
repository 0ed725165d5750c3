"""The model whose probabilities are learnt beside the references (trainer.teacher)."""

from collections.abc import Iterable

from tolka.config.schemas import TrainConfig
from tolka.errors import ConfigError
from tolka.formats.any_model import load_any
from tolka.model_directory.names import models_of
from tolka.model_directory.read import SavedModel
from tolka.text.direction import Direction


def load_teacher(config: TrainConfig, directions: Iterable[Direction], start: SavedModel | None) -> SavedModel | None:
    """Load the teacher, or several as one model; None if there is none.

    ConfigError unless it has the directions of the text, and the subwords of the model to start from (run.init_from).
    """
    name = config.trainer.teacher
    if not name:
        return None
    teacher = load_any(models_of(name))
    if unknown := [each for each in directions if each not in teacher.facts.directions]:
        raise ConfigError(f"trainer.teacher ({name}) does not translate from {unknown[0]}: name one that does")
    if start and (config.tokenizer.extend or start.tokenizer.digests != teacher.tokenizer.digests):
        raise ConfigError(f"trainer.teacher ({name}) has other subwords than run.init_from ({config.run.init_from})")
    return teacher
