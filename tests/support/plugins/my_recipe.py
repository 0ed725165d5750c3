"""A recipe of one's own: two trainings that differ in their seeds."""

from collections.abc import Iterator
from dataclasses import dataclass

from tolka.config.recipe_settings import RECIPES, RecipeConfig
from tolka.recipes.steps import Step
from tolka.recipes.task import RecipeTask


@RECIPES.register("twice")
@dataclass(frozen=True)
class TwiceConfig(RecipeConfig):
    """Options of two trainings; there are none."""

    name: str = "twice"
    """the recipe: twice"""

    def steps(self, task: RecipeTask) -> Iterator[Step]:
        yield task.write_texts()
        yield task.train("first", "train once", [task.texts.train])
        yield task.train("second", "train with another seed", [task.texts.train], settings={"run.seed": "2"})
