"""The settings of a recipe, apart from those of the trainings in it: `mt-train recipe=NAME recipe.KEY=VALUE ...`."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tolka.options.registry import Registry

# Modules that are no recipes.
_PARTS = ("outcome", "steps", "task", "texts")


@dataclass(frozen=True)
class RecipeConfig(ABC):
    """Options of a recipe, which is a sequence of steps: each a training, a translation, or what lies between them."""

    name: str = ""
    """the recipe"""

    @abstractmethod
    def steps(self, task: Any) -> Iterable[Any]:
        """Return the steps (`tolka.recipes.steps.Step`) of a task (`tolka.recipes.task.RecipeTask`), in order.

        ConfigError for what is missing.
        """


RECIPES: Registry[RecipeConfig] = Registry("recipe", "tolka.recipes", without=_PARTS)
