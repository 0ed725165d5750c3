"""Back-translation (Sennrich et al. 2016): a model of the other direction makes pairs of text in the target language.

A model from the target into the source translates the text. The pairs, whose targets people wrote, are marked by a tag
before the source (Caswell et al. 2019) and trained on beside the real ones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tolka.config.recipe_settings import RECIPES, RecipeConfig
from tolka.errors import ConfigError
from tolka.options.settings import setting
from tolka.recipes.outcome import check_model, check_useful, choose
from tolka.recipes.steps import Step
from tolka.recipes.task import RecipeTask
from tolka.recipes.texts import TAG, to_train
from tolka.system.number_format import count_text
from tolka.text.lines import user_path


@RECIPES.register("back_translation")
@dataclass(frozen=True)
class BackTranslationConfig(RecipeConfig):
    """How text in the target language becomes pairs, and how these are mixed with the real ones."""

    name: str = "back_translation"
    """the recipe: back_translation"""
    monolingual: list[str] = setting(default_factory=list, literal=True, any_bytes=True)
    """files of text in the target language, a sentence a line; short: corpus.monolingual"""
    forward: str = setting("", literal=True)
    """a run on the same text, to compare with and to score by; empty = one is trained"""
    reverse: str = setting("", literal=True)
    """model from the target into the source, or several joined by commas; empty = one trained on the same text"""
    tag: bool = True
    """whether synthetic sources begin with a tag, by which the model tells them from real ones"""
    filter: bool = True
    """whether pairs are left out that are copies, loops, of odd length or with other numbers"""
    share: float = 0.5
    """share of an epoch that is synthetic; 0 = as much as there is"""

    def __post_init__(self) -> None:
        if not 0 <= self.share < 1:
            raise ConfigError(f"recipe.share ({self.share:g}) must be at least 0 and below 1")

    def steps(self, task: RecipeTask) -> Iterator[Step]:
        if not self.monolingual:
            raise ConfigError(
                f"recipe=back_translation needs text in {task.direction.target}, a sentence a line: "
                "corpus.monolingual=FILE"
            )
        if task.is_both and self.reverse:
            raise ConfigError("recipe.reverse is not for corpus.both_directions, whose model is its own reverse")
        if self.reverse:
            check_model(self.reverse, task.direction.swapped)
        direction, files, train = task.direction, [user_path(each) for each in self.monolingual], task.texts.train
        lines = task.at("monolingual", f"lines.{direction.target}")
        yield task.write_texts()
        yield self._monolingual(task, files, lines)
        # The folder of a step, or of another run.
        forward = str(user_path(self.forward).resolve()) if self.forward else "forward"
        if self.forward:
            task.check_run(Path(forward), "recipe.forward")
        else:
            yield task.train(forward, "train on the pairs alone, to compare", [train])
        reverse = self.reverse
        if not reverse:
            if not task.is_both:
                title = f"train {direction.swapped}, which makes sources"
                yield task.train("reverse", title, [train], direction.swapped)
            model = task.model(forward if task.is_both else "reverse")
            yield check_useful(task, "check", model)
            reverse = str(model)
        title, search = f"translate it into {direction.source}", {"search": "beam", "search.beam_size": "5"}
        yield task.translate("translated", title, reverse, lines, direction.swapped, search)
        yield self._synthetic(task, [task.at("translated", "lines.txt"), lines])
        # Real pairs may be in both directions.
        real = 1 + task.is_both
        shares = [f"{(1 - self.share) / real:g}"] * real + [f"{self.share:g}"]
        yield task.train(
            "final",
            "train on both texts",
            [train],
            settings={"corpus.weights": f"[{','.join(shares)}]"} if self.share else {},
            one_way=[to_train(task.at("synthetic", "pairs"))],
            symbols=[TAG] if self.tag else [],
        )
        yield choose(task, forward, "final", lambda: self._words(task))

    def _monolingual(self, task: RecipeTask, files: Sequence[Path], lines: Path) -> Step:
        """Return the step that cleans the text in the target language."""
        return Step(
            "monolingual",
            f"read the text in {task.direction.target}",
            [*files, *task.texts.files],
            [lines],
            do=lambda: task.texts.clean_lines(files, lines),
            given={"cleaning": asdict(task.config.cleaning)},
        )

    def _synthetic(self, task: RecipeTask, texts: Sequence[Path]) -> Step:
        """Return the step that makes pairs of translations and their text."""
        prefix = task.at("synthetic", "pairs")
        writes = [*task.direction.files(prefix), *task.direction.files(to_train(prefix))]
        way = {"filter": self.filter, "tag": self.tag}
        return Step(
            "synthetic",
            "make pairs of both",
            [*texts, *task.texts.files],
            writes,
            do=lambda: task.texts.synthetic(texts, prefix, **way),
            given=way,
        )

    def _words(self, task: RecipeTask) -> str:
        """Return a model card's words on the pairs."""
        kept, read = task.figures("synthetic")["kept"], task.figures("monolingual")["lines"]
        names = ", ".join(user_path(each).name for each in self.monolingual)
        return f"back-translation: {count_text(kept, 'synthetic pair')} of {count_text(read, 'line')} of {names}"
