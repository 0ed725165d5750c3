"""Back-translation (Sennrich et al. 2016): a model of the other direction makes pairs of text in the target language.

A model from the target into the source translates the text. The pairs, whose targets people wrote, are marked by a tag
before the source (Caswell et al. 2019) and trained on beside the real ones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tolka.config.recipe_settings import RECIPES, RecipeConfig
from tolka.errors import ConfigError
from tolka.options.checks import one_of
from tolka.options.settings import setting
from tolka.recipes.outcome import check_useful, choose
from tolka.recipes.steps import Step
from tolka.recipes.task import RecipeTask
from tolka.recipes.texts import TAG, SyntheticPairs, to_train
from tolka.system.number_format import count_text
from tolka.text.lines import count_and_digest, user_path

# What each way to translate is in mt-translate's settings.
_SEARCHES = {
    "beam": {"search": "beam", "search.beam_size": "5"},
    "sampling": {"search": "sampling", "search.top_k": "10"},
    "greedy": {"search": "greedy"},
    "noised": {"search": "beam", "search.beam_size": "5"},
}


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
    search: str = "beam"
    """how it translates: beam (5), noised (a beam's words lacking, blanked and moved), sampling (top 10), or greedy"""
    tag: bool = True
    """whether synthetic sources begin with a tag, by which the model tells them from real ones"""
    filter: bool = True
    """whether pairs are left out that are copies, loops, of odd length or with other numbers"""
    drop: float = 0.0
    """share of the pairs to leave out as well: those that the model of the real pairs finds least likely"""
    share: float = 0.5
    """share of an epoch that is synthetic; 0 = as much as there is"""
    rounds: int = 1
    """how often: a second time the model of the other direction learns from the first one's pairs, too"""

    def __post_init__(self) -> None:
        one_of(self, "recipe", "search", _SEARCHES)
        if not 0 <= self.share < 1:
            raise ConfigError(f"recipe.share ({self.share:g}) must be at least 0 and below 1")
        if not 0 <= self.drop < 1:
            raise ConfigError(f"recipe.drop ({self.drop:g}) must be at least 0 and below 1")
        if not 1 <= self.rounds <= 5:
            raise ConfigError(f"recipe.rounds ({self.rounds}) must be from 1 to 5")

    def steps(self, task: RecipeTask) -> Iterator[Step]:
        if not self.monolingual:
            raise ConfigError(
                f"recipe=back_translation needs text in {task.direction.target}, a sentence a line: "
                "corpus.monolingual=FILE"
            )
        if task.is_both and (self.reverse or self.rounds > 1):
            raise ConfigError(
                "recipe.reverse and recipe.rounds are not for corpus.both_directions, whose model is its own reverse"
            )
        if self.reverse:
            task.check_model(self.reverse, task.direction.swapped)
        direction, files, train = task.direction, [user_path(each) for each in self.monolingual], task.texts.train
        lines = task.at("monolingual", f"lines.{direction.target}")
        yield task.write_texts()
        yield self._monolingual(task, files, lines)
        count = sum(count_and_digest(path)[0] for path in files)
        # The folder of a step, or of another run.
        forward = str(user_path(self.forward).resolve()) if self.forward else "forward"
        if self.forward:
            task.check_run(Path(forward), "recipe.forward")
        else:
            yield task.train(forward, "train on the pairs alone, to compare", [train])
        reverse, made = self.reverse, list[Path]()
        for number in range(1, self.rounds + 1):
            round_of = f"-{number}" if self.rounds > 1 else ""
            if task.is_both:
                reverse = str(task.model(forward))
                yield check_useful(task, "check", task.model(forward))
            elif not self.reverse or number > 1:
                name = f"reverse{round_of}"
                yield task.train(
                    name,
                    f"train {direction.swapped}, which makes sources",
                    [train, *made],
                    direction.swapped,
                    self._mixed(made),
                    count if made else 0,
                )
                reverse = str(task.model(name))
                yield check_useful(task, f"check{round_of}", task.model(name))
            found = f"translated{round_of}"
            yield task.translate(
                found,
                f"translate it into {direction.source}",
                reverse,
                [lines],
                direction.swapped,
                _SEARCHES[self.search],
                count,
            )
            texts, scores = [task.at(found, "lines.txt"), lines], f"scored{round_of}"
            if self.drop:
                first, title = str(task.model(forward)), "score the pairs by the first model"
                yield task.translate(scores, title, first, texts, direction, {}, count)
                texts.append(task.at(scores, "lines.txt"))
            made = [task.at(f"synthetic{round_of}", "pairs")]
            yield self._synthetic(task, f"synthetic{round_of}", texts, made[0])
        synthetic = [*map(to_train, made)]
        settings, symbols, title = self._mixed(made, 1 + task.is_both), [TAG] if self.tag else [], "train on both texts"
        yield task.train("final", title, [train], settings=settings, more=count, one_way=synthetic, symbols=symbols)
        yield choose(task, forward, "final", lambda: self._words(task, f"synthetic{round_of}"))

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

    def _mixed(self, made: Sequence[Path], real: int = 1) -> dict[str, str]:
        """Return how texts of real and of synthetic pairs are mixed. real: in how many directions the former are."""
        shares = [f"{(1 - self.share) / real:g}"] * real + [f"{self.share:g}"]
        return {"corpus.weights": f"[{','.join(shares)}]"} if made and self.share else {}

    def _synthetic(self, task: RecipeTask, name: str, texts: Sequence[Path], prefix: Path) -> Step:
        """Return the step that makes pairs of translations and their text, with scores if a share shall be dropped."""
        writes = [*task.direction.files(prefix), *task.direction.files(to_train(prefix))]
        way = SyntheticPairs(self.filter, self.drop, self.tag, self.search == "noised")
        return Step(
            name,
            "make pairs of both",
            [*texts, *task.texts.files],
            writes,
            do=lambda: task.texts.synthetic(texts, prefix, way),
            given=asdict(way),
        )

    def _words(self, task: RecipeTask, made: str) -> str:
        """Return what a model card says of the pairs."""
        kept, read = task.figures(made)["kept"], task.figures("monolingual")["lines"]
        names = ", ".join(user_path(each).name for each in self.monolingual)
        return f"back-translation: {count_text(kept, 'synthetic pair')} of {count_text(read, 'line')} of {names}"
