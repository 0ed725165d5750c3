"""Distillation (Kim and Rush 2016): a small, fast model learns from what a better one translates.

The teacher, which may be several models together, translates the training text. Of its best translations of a sentence,
the one that is nearest to the reference is taught. The student is a recurrent model, as its teacher is, or a
Transformer with a deep encoder and few decoder layers (Kasai et al. 2021), as large as a share of the teacher's size
allows. For other programs (model.leaves_to) it is a Transformer as wide and as deep as its teacher. It learns the
teacher's probabilities, too, and from more text than has references.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

from tolka.auto.rules import FORMS
from tolka.config.recipe_settings import RECIPES, RecipeConfig
from tolka.config.typed import quote_value
from tolka.errors import ConfigError
from tolka.formats.any_model import settings_of, tokenizer_of
from tolka.formats.ctranslate2.plain_model import inexpressible_reason
from tolka.formats.hub import local_folder
from tolka.model_directory.names import models_of
from tolka.model_directory.settings import find_model_folder, is_foreign
from tolka.models.options import MODELS
from tolka.models.rnn import config as rnn
from tolka.models.transformer.config import TransformerConfig
from tolka.options.parsing import build
from tolka.options.settings import setting
from tolka.recipes.outcome import check_model, deliver
from tolka.recipes.steps import Step
from tolka.recipes.task import RecipeTask
from tolka.system.number_format import count_text
from tolka.text.lines import user_path

_WIDTHS = (1.0, 0.75, 0.5, 0.375, 0.25)  # of the teacher's
_MULTIPLE = 32  # of which a student's width is
_RECOMBINED = 2  # sentences made of the sources of the text, for each pair
# Of a student that is as large as its teacher, measured with 256 wide ones on 3000 to 10 000 pairs.
_OF_EQUALS = {"optimizer": "adamw", "model.dropout": "0.1", "batching.tokens": "1024", "scheduler.warmup": "200"}
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
    monolingual: list[str] = setting(default_factory=list, literal=True, any_bytes=True)
    """files of more text in the source language, a sentence a line, that is taught too; short: corpus.monolingual"""

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
        direction, texts, model = task.direction, task.texts, task.config.model
        leaves_to = getattr(model, "leaves_to", "").replace("html", "")
        student = self._equal_student(task) if leaves_to else {} if task.has_typed(*_MODEL) else self._student(task)
        if not leaves_to and find_spec("ctranslate2"):
            is_fit = student["model.family"] == "transformer" if student else not inexpressible_reason(model)
            leaves_to = "ctranslate2" if is_fit else ""
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
        if more := [task.at("more-lessons", "pairs")] if "trainer.teacher" in student or self.monolingual else []:
            yield from self._more(task, more[0])
        yield task.train("student", "train the student", [pairs, texts.train, *more], settings=student)
        # The forms that a phone or a server runs.
        commands = {"int8": ["quantise"]} | ({leaves_to: ["export", "--to", leaves_to]} if leaves_to else {})
        forms = {form: task.at(form, "model") for form in commands}
        for form, words in commands.items():
            dtype = ["--dtype", "int8"] if form == "ctranslate2" else []
            command = ["train", *words, *dtype, str(task.model("student")), "-o", str(forms[form])]
            yield Step(form, f"write it as {form}", [task.model("student")], [forms[form]], command)
        yield deliver(task, self.teacher, "student", forms, lambda: self._words(task))

    def _more(self, task: RecipeTask, prefix: Path) -> Iterator[Step]:
        """Yield the steps that have the teacher translate text without references into pairs to learn from."""
        texts, direction = task.texts, task.direction
        lines, files = task.at("sources", f"lines.{direction.source}"), [user_path(each) for each in self.monolingual]
        yield Step(
            "sources",
            f"gather more text in {direction.source}",
            [*files, *texts.files],
            [lines],
            do=lambda: texts.clean_lines(files, lines, True, _RECOMBINED),
            given={"cleaning": asdict(task.config.cleaning)},
        )
        yield task.translate("more-taught", "translate it", self.teacher, lines, direction, {"search": "greedy"})
        translations = task.at("more-taught", "lines.txt")
        yield Step(
            "more-lessons",
            "leave out what cannot be right",
            [lines, translations, *texts.files],
            direction.files(prefix),
            do=lambda: texts.taught(lines, translations, prefix),
        )

    def _words(self, task: RecipeTask) -> str:
        """Return a model card's words on the student."""
        names = ", ".join(each.name for each in models_of(self.teacher))
        kept = sum(task.figures(step).get("kept", 0) for step in ("lessons", "more-lessons"))
        return f"distilled from {names}, which translated {count_text(kept, 'line')}"

    def _equal_student(self, task: RecipeTask) -> dict[str, str]:
        """Return the settings of a Transformer of the teacher's sizes, which learns its probabilities; {} = as chosen.

        The latter for another program's teacher, for one of several directions, and where a tokenizer is typed.
        """
        names = list(map(local_folder, models_of(self.teacher)))
        tokenizer, has_own = tokenizer_of(names[0]), any(each.startswith("tokenizer") for each in task.typed)
        if has_own or tokenizer.languages or any(map(is_foreign, names)):
            return {}
        folder, first = find_model_folder(names[0]), settings_of(names[0])["model"]
        files = ",".join(quote_value(str(folder / each)) for each in tokenizer.file_names)
        sizes = {f"model.{key}": str(first[key]) for key in ("d_model", "layers")}
        rate = {"optimizer.lr": "0.0015" if getattr(task.config.model, "leaves_to", "") in FORMS else "0.003"}
        return {"tokenizer.model": f"[{files}]", "trainer.teacher": self.teacher, **sizes, **rate, **_OF_EQUALS}

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
