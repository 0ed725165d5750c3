"""The settings of a recipe among all that were typed."""

from collections.abc import Sequence

from tolka.config.typed import split_setting

# Names that belong to recipes alone, and what they are short for.
_SHORT = {"corpus.monolingual": "recipe.monolingual", "teacher": "recipe.teacher"}


def split_recipe(settings: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the settings of a recipe, with short names written out, and those of its trainings."""
    of_recipe, others = list[str](), list[str]()
    for setting in settings:
        key = split_setting(setting).key
        full = _SHORT.get(key, key)
        is_own = full == "recipe" or full.startswith("recipe.")
        (of_recipe if is_own else others).append(setting.replace(key, full, 1) if is_own else setting)
    return of_recipe, others
