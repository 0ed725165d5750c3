"""What a recipe works on: a corpus and the settings typed for its trainings; and the steps that commands make."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from pathlib import Path

from tolka.config.command_line import train_config, with_recipe
from tolka.config.schemas import TrainConfig
from tolka.config.typed import quote_value, split_setting
from tolka.errors import ConfigError
from tolka.model_directory.file_names import SCORES
from tolka.model_directory.names import models_of
from tolka.model_directory.verify import read_json
from tolka.recipes.steps import Figures, Step, record_of
from tolka.recipes.texts import SharedTexts
from tolka.run.provenance import recorded_calls
from tolka.run.provenance import texts as digests_of
from tolka.run.texts import open_corpus
from tolka.system.progress import Say, silent
from tolka.text.direction import Direction

# Settings of a training's text and folder, which each step has its own of.
_OWN = ("corpus", "run.dir", "run.name")
_MIXING = "corpus.weights", "corpus.temperature"
# A training's settings that hold for its translations as well.
_OF_BOTH = ("device", "threads")


@dataclass(frozen=True)
class RecipeTask:
    """The corpus and the settings that were typed for the trainings of a recipe.

    name: of the recipe. typed: the settings as they were typed. say: is given notes.
    """

    name: str
    typed: Sequence[str]
    say: Say

    @cached_property
    def config(self) -> TrainConfig:
        """The configuration of a training with these settings alone, of which one is checked here already."""
        if self.has_typed("run.init_from"):
            raise ConfigError(f"recipe={self.name} trains from nothing: leave run.init_from out")
        config = train_config(with_recipe(self.typed), say=self.say)
        if len(config.corpus.directions) > 1 + config.corpus.both_directions:
            raise ConfigError(f"recipe={self.name} is for two languages: name texts of one direction")
        if self.has_typed(*_MIXING):
            raise ConfigError(f"recipe={self.name} joins all training texts: leave {', '.join(_MIXING)} out")
        if not config.metrics.bootstrap:
            raise ConfigError(
                f"recipe={self.name} compares two models, and metrics.bootstrap=0 leaves no way to: leave it out"
            )
        return config

    @property
    def direction(self) -> Direction:
        """From which language into which the final model translates."""
        return self.config.corpus.direction

    @property
    def is_both(self) -> bool:
        """Whether one model is trained for both directions."""
        return self.config.corpus.both_directions

    @property
    def folder(self) -> Path:
        """The folder of the recipe's run: run.dir, or run.name below runs/; if neither is typed, named after both."""
        folder = self.config.run.folder
        is_named = self.has_typed("run.dir", "run.name")
        return folder if is_named else folder.with_name(f"{folder.name}-{self.name}")

    @property
    def best(self) -> Path:
        """The folder of the model that the recipe hands over."""
        return self.folder / "best"

    @property
    def steps(self) -> Path:
        """The folder with a folder for each step."""
        return self.folder / "steps"

    def at(self, step: str, name: str) -> Path:
        """Return a file or folder of a step, or of a run whose path stands in its place."""
        return self.steps / step / name

    def figures(self, step: str) -> Figures:
        """Return the figures of a step that is done."""
        return dict(record_of(self.steps, step).get("figures", {}))

    @cached_property
    def texts(self) -> SharedTexts:
        """The texts that all trainings share."""
        return SharedTexts(self.config, self.steps / "texts", self.say)

    def model(self, step: str) -> Path:
        """Return the model that a training leaves."""
        return self.at(step, "best")

    def write_texts(self) -> Step:
        """Return the step that writes the texts that all trainings share."""
        texts, given = self.texts, {"text": self.texts.fingerprint}
        return Step("texts", "write the text and its held-out sets", (), texts.files, do=texts.write, given=given)

    def has_typed(self, *keys: str) -> bool:
        """Return whether one of these settings was typed."""
        return any(split_setting(each).key in keys for each in self.typed)

    def train(
        self,
        name: str,
        title: str,
        texts: Sequence[Path],
        direction: Direction | None = None,
        settings: Mapping[str, str] | None = None,
        one_way: Sequence[Path] = (),
        symbols: Sequence[str] = (),
    ) -> Step:
        """Return the step that trains a model, with the corpus's own held-out sets; ConfigError for its settings.

        texts: prefixes of its training texts, with corpus.both_directions in both. one_way: those in this direction
        alone. direction: None = the task's. settings: of this training alone, unless they are typed. symbols: of its
        tokenizer, beside those that are typed.
        """
        direction = direction or self.direction
        languages = [direction, *([direction.swapped] if self.is_both else [])]
        own = {"corpus": "files", "run.dir": str(self.steps / name)}
        for key, named in {"train": texts, **self.texts.sets}.items():
            entries = [*product(named, languages), *((text, direction) for text in one_way if key == "train")]
            quoted = [f"{{text:{quote_value(str(text))},source:{a},target:{b}}}" for text, (a, b) in entries]
            own[f"corpus.{key}"] = f"[{','.join(quoted)}]"
        # An experiment names files of its own.
        own |= {"corpus.root": "", "corpus.columns": "[]"} if self.has_typed("experiment") else {}
        kept = [each for each in self.typed if not split_setting(each).key.startswith(_OWN)]
        free = {key: value for key, value in (settings or {}).items() if not self.has_typed(key)}
        if symbols:
            kept = [each for each in kept if split_setting(each).key != "tokenizer.symbols"]
            listed = ",".join(map(quote_value, [*self.config.tokenizer.symbols, *symbols]))
            own["tokenizer.symbols"] = f"[{listed}]"
        command = ["train", *kept, *(f"{key}={value}" for key, value in {**own, **free}.items())]
        train_config(with_recipe(command[1:]))  # without notes, which are the training's
        read = (*texts, *one_way, *chain(*self.texts.sets.values()))
        reads = [*chain.from_iterable(map(direction.files, read))]
        return Step(name, title, reads, [self.model(name)], command)

    def check_run(self, run: Path, key: str) -> None:
        """Raise ConfigError unless a run was trained and tested on the texts of this recipe, and has left a model.

        key: the setting that names it.
        """
        best, calls = run / "best", recorded_calls(run)
        if not best.is_dir() or not read_json(best / SCORES).get("test"):
            raise ConfigError(f"{key} ({run}) is not the folder of a run that has ended with a test")
        if not calls or calls[-1].get("texts") != digests_of(
            open_corpus(self.config.corpus, self.config.run.prepared_folder, silent)
        ):
            raise ConfigError(
                f"{key} ({run}) was trained or tested on other text than corpus.train, valid and test name here: type "
                "them as they were for it, or leave it out"
            )

    def translate(
        self, name: str, title: str, model: str, text: Path, direction: Direction, settings: Mapping[str, str]
    ) -> Step:
        """Return the step that translates a file, line by line, into `lines.txt` of its folder.

        model: as mt-translate takes it.
        """
        out = self.at(name, "lines.txt")
        # What an interrupted one has written counts.
        options = {"decoding.source": direction.source, "decoding.target": direction.target, "output.resume": "true"}
        plugins = [each for each in self.typed if each.startswith("plugins=")]
        shared = [key for key in _OF_BOTH if self.has_typed(f"trainer.{key}")]
        options |= {f"decoding.{key}": str(getattr(self.config.trainer, key)) for key in shared}
        named = [f"{key}={value}" for key, value in {**options, **settings}.items()]
        command = ["translate", model, str(text), "-o", str(out), *plugins, *named]
        return Step(name, title, [*models_of(model), text], [out], command)
