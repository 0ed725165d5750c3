"""Distillation (Kim and Rush 2016): a small, fast model learns from what a better one translates.

The teacher, which may be several models together, translates the training text. Of its best translations of a sentence,
the one that is nearest to the reference is taught. The student is a recurrent model, as its teacher is, or a
Transformer with a deep encoder and few decoder layers (Kasai et al. 2021), as large as a share of the teacher's size
allows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

from tolka.config.recipe_settings import RECIPES, RecipeConfig
from tolka.errors import ConfigError
from tolka.formats.any_model import settings_of, tokenizer_of
from tolka.formats.ctranslate2.plain_model import inexpressible_reason
from tolka.model_directory.names import models_of
from tolka.models.options import MODELS
from tolka.models.rnn import config as rnn
from tolka.models.transformer.config import TransformerConfig
from tolka.options.parsing import build
from tolka.options.settings import setting
from tolka.recipes.outcome import check_model, deliver
from tolka.recipes.steps import Step
from tolka.recipes.task import RecipeTask
from tolka.system.number_format import count_text

# What makes the forms that a phone or a server runs, as mt-train has them.
_FORMS = {"int8": ["quantise"], "ctranslate2": ["export", "--to", "ctranslate2", "--dtype", "int8"]}
_WIDTHS = (1.0, 0.75, 0.5, 0.375, 0.25)  # of the teacher's
_MULTIPLE = 32  # of which a student's width is
_MODEL = ("model", "model.d_model", "model.layers", "model.decoder_layers")


@RECIPES.register("distillation")
@dataclass(frozen=True)
class DistillationConfig(RecipeConfig):
    """Which teacher is learnt from, how large the student shall be, and what it is taught."""

    name: str = "distillation"
    """the recipe: distillation"""
    teacher: str = setting("", literal=True)
    """the model to learn from, or several joined by commas, which translate together; short: teacher"""
    size: float = 0.25
    """most parameters of the student, as a share of the teacher's"""
    hypotheses: int = 4
    """translations of each sentence, of which the nearest to its reference is taught; 1 = the likeliest"""

    def __post_init__(self) -> None:
        if not 1 <= self.hypotheses <= 100:
            raise ConfigError(f"recipe.hypotheses ({self.hypotheses}) must be from 1 to 100")
        if not 0 < self.size <= 10:
            raise ConfigError(f"recipe.size ({self.size:g}) must be above 0, and at most 10")

    def steps(self, task: RecipeTask) -> Iterator[Step]:
        if not self.teacher:
            raise ConfigError("recipe=distillation needs a model to learn from: teacher=MODEL, or MODEL,MODEL")
        if task.is_both:
            raise ConfigError("recipe=distillation is for one direction: leave corpus.both_directions out")
        check_model(self.teacher, task.direction)
        direction, texts = task.direction, task.texts
        student = {} if task.has_typed(*_MODEL) else self._student(task)
        is_exported = (
            student["model.family"] == "transformer" if student else not inexpressible_reason(task.config.model)
        )
        source, beam = Path(f"{texts.train}.{direction.source}"), str(max(4, self.hypotheses))
        pairs = task.at("lessons", "pairs")
        yield task.write_texts()
        yield task.translate(
            "taught",
            f"translate the text with {self.teacher}",
            self.teacher,
            source,
            direction,
            {"search.beam_size": beam, "search.n_best": str(self.hypotheses), "output.format": "nbest"},
        )
        yield Step(
            "lessons",
            "choose what is taught",
            [task.at("taught", "lines.txt"), *texts.files],
            direction.files(pairs),
            do=lambda: texts.nearest(task.at("taught", "lines.txt"), pairs),
        )
        yield task.train("student", "train the student", [pairs, texts.train], settings=student)
        forms = {}
        for form, words in _FORMS.items():
            if form != "ctranslate2" or (is_exported and find_spec("ctranslate2")):
                forms[form] = task.at(form, "model")
                command = ["train", *words, str(task.model("student")), "-o", str(forms[form])]
                yield Step(form, f"write it as {form}", [task.model("student")], [forms[form]], command)
        yield deliver(task, self.teacher, "student", forms, lambda: self._words(task))

    def _words(self, task: RecipeTask) -> str:
        """Return a model card's words on the student."""
        names = ", ".join(each.name for each in models_of(self.teacher))
        return f"distilled from {names}, which translated {count_text(task.figures('lessons')['kept'], 'line')}"

    def _student(self, task: RecipeTask) -> dict[str, str]:
        """Return the settings of the widest student of at most `size` of the teacher's parameters.

        It may have half of the teacher's subwords. ConfigError if none is so small.
        """
        names = models_of(self.teacher)
        saved, tokenizer = [settings_of(name)["model"] for name in names], tokenizer_of(names[0])
        teachers = [build(MODELS.get(each["name"]), each, "model") for each in saved]
        family = next((each.partition("=")[2] for each in task.typed if each.startswith("model.family=")), "any")
        # Where a recurrent model was the better teacher, it is the better student.
        if family == "any":
            family = "transformer" if isinstance(teachers[0], TransformerConfig) else "rnn"
        kinds: list[Any] = [rnn.PRESETS["bilstm_attention"]]
        if family == "transformer":
            layers = max(3, *(getattr(each, "layers", 1) for each in teachers))
            few = dict.fromkeys((max(1, layers // 3), 1))
            kinds = [TransformerConfig(layers=layers, decoder_layers=count) for count in few]
        whole = tokenizer.target_size
        is_fixed = any(each.startswith("tokenizer") for each in task.typed)
        sizes = tokenizer.source_size, whole, tokenizer.shared
        most = self.size * sum(each.shapes(*sizes).parameter_count() for each in teachers)
        widths = [max(1, round(teachers[0].d_model * share / _MULTIPLE)) * _MULTIPLE for share in _WIDTHS]
        for width, kind, rows in product(widths, kinds, [whole] if is_fixed else [whole, whole // 2]):
            if replace(kind, d_model=width).shapes(rows, rows, True).parameter_count() <= most:
                found = {"model": "auto", "model.family": family, "model.d_model": width, "model.layers": kind.layers}
                found |= {"model.decoder_layers": kind.decoder_layers} if family == "transformer" else {}
                found |= {} if is_fixed else {"tokenizer.vocab_size": rows}
                return {key: str(value) for key, value in found.items()}
        raise ConfigError(
            f"no student has at most {self.size:.0%} of the teacher's {round(most / self.size):,} parameters: raise "
            "recipe.size"
        )
