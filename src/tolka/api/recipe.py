"""Follow a recipe: settings in, the better model out."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tolka.config.command_line import split_recipe
from tolka.config.compose import compose_plainly
from tolka.config.plugins import load_plugins
from tolka.config.recipe_settings import RecipeConfig
from tolka.config.schemas import build_groups
from tolka.config.typed import Settings, split_setting, typed_settings
from tolka.errors import ConfigError
from tolka.evaluation.verdict_evidence import USELESS
from tolka.model_directory.file_names import CONFIG, SCORES
from tolka.model_directory.verify import read_json
from tolka.recipes.steps import Figures, Steps
from tolka.recipes.task import RecipeTask
from tolka.run.provenance import PROVENANCE, versions
from tolka.system.atomic import one_at_a_time, replace_text
from tolka.system.number_format import json_text
from tolka.system.progress import Say, say


@dataclass(frozen=True)
class RecipeResult:
    """model: the folder of the better model. figures: of each step, by its name. useless: why it is, or ""."""

    model: Path
    figures: Mapping[str, Figures]
    useless: str = ""


def follow_recipe(settings: Settings = (), *, only_plan: bool = False, say: Say = say, **keywords: Any) -> RecipeResult:
    """Follow a recipe, or go on with it: the same settings again do only what is not done yet.

    settings: as mt-train takes them with recipe=NAME; what is not the recipe's holds for each training. only_plan:
    whether its steps are only shown. say: receives notes. TolkaError, in one line, if a step fails.

        tolka.follow_recipe(["recipe=back_translation", "corpus.monolingual=news.de", "corpus.train=data/train", ...])
    """
    listed = typed_settings(settings, keywords)
    load_plugins(listed, say)
    of_recipe, typed = split_recipe(listed)
    if not any(split_setting(each).key == "recipe" for each in of_recipe):
        raise ConfigError(
            f"{of_recipe[0] if of_recipe else 'this'} is for a recipe: name it, as in recipe=back_translation"
        )
    recipe: RecipeConfig = build_groups(compose_plainly("recipe", of_recipe))["recipe"]
    task = RecipeTask(recipe.name, typed, say)
    if (task.folder / CONFIG).exists() or (task.best.is_dir() and not task.steps.is_dir()):
        raise ConfigError(f"{task.folder} has a run or a model of its own: choose another run.name or run.dir")
    steps = Steps(task.steps, [*recipe.steps(task)], say)
    say(f"{steps.table()}\n")
    if not only_plan:
        with one_at_a_time(task.steps / ".lock", lambda: say(f"waiting for the process that works in {task.folder}")):
            steps.run()
        say(f"{steps.table()}\n")
        told = {"recipe": asdict(recipe), "settings": typed, "versions": versions(), "steps": steps.figures()}
        replace_text(task.folder / PROVENANCE, json_text(told, ensure_ascii=False, indent=1))
    verdict = read_json(task.best / SCORES).get("verdict") or {} if task.best.is_dir() else {}
    useless = " ".join(verdict["sentences"]) if verdict.get("level") == USELESS else ""
    return RecipeResult(task.best, steps.figures(), useless)
