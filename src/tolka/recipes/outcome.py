"""What came of a recipe: whether its model is better than the one without it, and which of them is handed over."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tolka.config.translate_command import translate_config
from tolka.errors import DataError
from tolka.evaluation.verdict_evidence import USELESS
from tolka.metrics.metric import References
from tolka.metrics.options import MetricsConfig
from tolka.metrics.significance import Comparison, compare
from tolka.metrics.tables import table
from tolka.model_directory.card import facts_of, model_card
from tolka.model_directory.file_names import SCORES
from tolka.model_directory.names import models_of
from tolka.model_directory.settings import load_settings
from tolka.model_directory.verify import read_json
from tolka.model_directory.write import rescore
from tolka.recipes.steps import Figures, Step
from tolka.recipes.task import RecipeTask
from tolka.report.page import write_page
from tolka.report.runs import read_run
from tolka.system.progress import say
from tolka.system.workers import call
from tolka.text.direction import Direction
from tolka.text.lines import read_lines
from tolka.translation.opening import open_model

_ROUNDS = 5  # of translating, in turn
_CHANCE = 0.05  # p of a gain from which on it may be chance


def check_model(model: str, direction: Direction) -> None:
    """Raise TolkaError, as mt-translate reports it, unless a model is there and has a direction."""
    with TemporaryDirectory() as folder:
        nothing = Path(folder, "nothing")
        nothing.touch()
        translated({"checked": model}, nothing, Path(folder), direction)


def check_useful(task: RecipeTask, name: str, model: Path) -> Step:
    """Return the step that ends the recipe where a model that others shall learn from is useless."""

    def check() -> Figures:
        verdict = read_json(model / SCORES).get("verdict") or {}
        if verdict.get("level") != USELESS:
            return {"verdict": verdict.get("level", "")}
        words = f"{model}: {' '.join(verdict['sentences'])}"
        if not task.has_typed("trainer.updates", "trainer.epochs", "trainer.max_minutes"):
            raise DataError(f"{words} What it makes would teach nothing: more pairs are needed first")
        task.say(f"warning: {words} What it makes will teach little")
        return {"verdict": USELESS}

    return Step(name, "look whether it is of use", [model], (), do=check)


def choose(task: RecipeTask, before: str, after: str, words: Callable[[], str]) -> Step:
    """Return the step that hands over a recipe's model if it is better than that of another step, or else the latter.

    words: of what was done, for the model card.
    """
    models = [task.model(step) for step in (before, after)]

    def decide() -> Figures:
        # By BLEU, whatever metrics.names has: of some of these, more is not better.
        decisive = replace(task.config.metrics, names=["bleu"], command="")
        ((deciding,), *_) = _compare_steps(task, before, after, decisive).values()
        gain, is_chance = deciding.difference, deciding.p_value >= _CHANCE
        is_gain = gain > 0 and not is_chance
        _hand_over(models[is_gain], task.best, words() if is_gain else f"tried, and no gain: {words()}")
        # Told after the model is there: a command of the user's own may fail.
        metrics = task.config.metrics
        tests = _compare_steps(task, before, after, replace(metrics, names=[*dict.fromkeys(("bleu", *metrics.names))]))
        for test, each in tests.items():
            task.say("\n".join(f"{test}: {_in_words(comparison)}" for comparison in each))
        lost = "the recipe made it worse" if gain < 0 and not is_chance else "its gain may be chance"
        found = "it is better than without the recipe" if is_gain else lost
        task.say(f"{task.best} is the model of the step {after if is_gain else before}: {found}")
        report = task.config.report
        if report.page:
            labels = {before: "without the recipe", after: "with it"}
            runs = [read_run(task.steps / step, label) for step, label in labels.items()]
            task.say(f"both side by side: {write_page(task.folder, task.folder.name, runs, {}, report.plots)}")
        return {"chosen": after if is_gain else before, "tests": {n: [*map(asdict, each)] for n, each in tests.items()}}

    return Step("outcome", "compare both, and hand over the better one", models, [task.best], do=decide)


def deliver(task: RecipeTask, teacher: str, student: str, forms: Mapping[str, Path], words: Callable[[], str]) -> Step:
    """Return the step that hands over what a step has distilled, with its scores and speed beside the teacher's.

    forms: the same model in other forms, by their names. words: for the model card.
    """
    model = task.model(student)

    def tell() -> Figures:
        models = {"teacher": teacher, "student": str(model), **{name: str(path) for name, path in forms.items()}}
        _hand_over(model, task.best, words())
        test = task.texts.sets["test"][0]
        source, _ = task.direction.files(test)
        rates = translated(models, source, task.steps / "outcome", task.direction)
        texts = {name: [*read_lines(task.at("outcome", f"{name}.txt"))] for name in models}
        references, rows = _references(test, task.direction), list[list[str]]()
        for name in models:
            both = [texts["teacher"], texts[name]]
            changes = compare(both, references, task.config.metrics, task.direction.target)[:2]
            p_values = ["" if name == "teacher" else f" (p {each.p_value:.3f})" for each in changes]
            scores = [f"{each.b.value:.2f}{p}" for each, p in zip(changes, p_values, strict=True)]
            speed = [f"{rates[name]:.0f}", f"{rates[name] / rates['teacher']:.1f}"]
            rows.append([name, _megabytes(models[name]), *speed, *scores])
        header = ["", "MB", "lines/s", "times", *(each.name for each in changes)]
        signatures = [f"{each.name}: {each.signature}" for each in changes]
        task.say("\n".join([table(rows, header, f"l{'r' * len(header[1:])}"), *signatures]))
        return {"rows": rows, "lines per second": rates}

    return Step("outcome", "compare it with its teacher", [model, *forms.values()], [task.best], do=tell)


def _compare_steps(task: RecipeTask, before: str, after: str, metrics: MetricsConfig) -> dict[str, list[Comparison]]:
    """Return, for each test set, how the scores of two steps differ."""
    target, found, names = task.direction.target, {}, dict[str, list[str]]()
    for step in (before, after):
        tests = read_json(task.model(step) / SCORES)["test"]
        names[step] = [name for name, each in tests.items() if each["direction"] == [*task.direction]]
    for *both, prefix in zip(names[before], names[after], task.texts.sets["test"], strict=True):
        tested = zip(names, both, strict=True)
        a, b = ([*read_lines(task.at(step, f"samples/{name}.{target}.txt"))] for step, name in tested)
        found[both[1]] = compare([a, b], _references(prefix, task.direction), metrics, target)
    return found


def _references(prefix: Path, direction: Direction) -> References:
    source, target = ([*read_lines(path)] for path in direction.files(prefix))
    return References([target], source)


def _megabytes(models: str) -> str:
    """Return the size of the largest files of models, which are their weights; "" where they are not on this disk."""
    folders = [next((each for each in (name / "best", name) if each.is_dir()), None) for name in models_of(models)]
    sizes = [max(file.stat().st_size for file in folder.iterdir()) / 1e6 for folder in folders if folder]
    return f"{sum(sizes):.1f}" if len(sizes) == len(folders) else ""


def _in_words(comparison: Comparison) -> str:
    a, b = comparison.a, comparison.b
    return (
        f"{comparison.name} {a.value:.2f} without, {b.value:.2f} with the recipe: {comparison.difference:+.2f}, "
        f"p = {comparison.p_value:.3f} ({comparison.signature})"
    )


def _hand_over(model: Path, out: Path, words: str) -> None:
    """Copy a model directory, with what was done in its card."""
    scores = read_json(model / SCORES)
    facts = {**facts_of(model, scores), "recipe": words}
    scores = {**scores, "facts": facts}
    rescore(model, scores, model_card(load_settings(model), facts, scores), out)


def translated(models: Mapping[str, str], source: Path, out: Path, direction: Direction) -> dict[str, float]:
    """Translate a file with each model into OUT/NAME.txt; return lines a second, the median of rounds in turn."""
    return call(_translate, models, source, out, direction, is_command=True)


def _translate(models: Mapping[str, str], source: Path, out: Path, direction: Direction) -> dict[str, float]:
    codes = [f"decoding.{side}={code}" for side, code in zip(("source", "target"), direction, strict=True)]
    config, lines = translate_config(codes), [*read_lines(source)]
    translators = {
        name: open_model(models_of(path), config.search, config.decoding, say=say) for name, path in models.items()
    }
    for name, translator in translators.items():
        (out / f"{name}.txt").write_text("".join(f"{line}\n" for line in translator(lines)), encoding="utf-8")
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(_ROUNDS):  # in turn, for a busy machine
        for name, translator in translators.items():
            started_at = time.perf_counter()
            translator(lines)
            seconds[name].append(time.perf_counter() - started_at)
    return {name: len(lines) / statistics.median(times) for name, times in seconds.items()}
