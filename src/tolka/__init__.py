"""tolka: from plain parallel text to a translator whose quality is honestly known.

    import tolka

    tolka.train(["run.name=mine", "trainer.updates=300"])     # as mt-train; no corpus named: the embedded sample
    translator = tolka.load("runs/mine")                      # as mt-translate
    translator(["I love you."])
    tolka.evaluate(model="runs/mine", source="test.en", reference="test.ko")   # as mt-eval

train         trains a model, keeps the best one and tests it
load          returns a Translator: texts in, translations out
Request       what one call asks of a translator: search, glossary, prefixes, direction
Direction     from which language into which
translate     translates texts with a model that is loaded for them
translate_files  translates files, as mt-translate does
follow_recipe  several trainings that make one model, as mt-train recipe=NAME
evaluate      scores translations, or a model
robustness    measures what capitals, typing errors or tags in a text cost
compare       tests which of several systems are better by more than chance
calibrate     fits a model's quality estimates
attention     returns what each subword of a translation attends to
train_config  returns the TrainConfig of some settings

Settings are those of the commands (`mt-train --help`): a text, a list of texts, a mapping, or keywords. What goes wrong
by settings or files is a `tolka.TolkaError`, whose text is one line; an argument of a wrong type is a TypeError.
"""

import importlib
from typing import TYPE_CHECKING, Any

from tolka.version import __version__

if TYPE_CHECKING:
    from tolka.api.compare import compare as compare
    from tolka.api.evaluate import calibrate as calibrate
    from tolka.api.evaluate import evaluate as evaluate
    from tolka.api.evaluate import robustness as robustness
    from tolka.api.recipe import follow_recipe as follow_recipe
    from tolka.api.train import train as train
    from tolka.api.translate import attention as attention
    from tolka.api.translate import load as load
    from tolka.api.translate import translate as translate
    from tolka.api.translate import translate_files as translate_files
    from tolka.config.command_line import train_config as train_config
    from tolka.config.schemas import TrainConfig as TrainConfig
    from tolka.errors import TolkaError as TolkaError
    from tolka.text.direction import Direction as Direction
    from tolka.translation.request import Request as Request
    from tolka.translation.translator import Translator as Translator

# Imported when first used, so that a command's --help never waits for torch.
_HOMES = {
    "Direction": "tolka.text.direction",
    "Request": "tolka.translation.request",
    "TolkaError": "tolka.errors",
    "TrainConfig": "tolka.config.schemas",
    "Translator": "tolka.translation.translator",
    "attention": "tolka.api.translate",
    "calibrate": "tolka.api.evaluate",
    "compare": "tolka.api.compare",
    "evaluate": "tolka.api.evaluate",
    "follow_recipe": "tolka.api.recipe",
    "load": "tolka.api.translate",
    "robustness": "tolka.api.evaluate",
    "train": "tolka.api.train",
    "train_config": "tolka.config.command_line",
    "translate": "tolka.api.translate",
    "translate_files": "tolka.api.translate",
}
__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tolka' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """So that help(tolka) and completion find what is imported when first used."""
    return sorted({*globals(), *__all__})
