"""The three commands as functions: a configuration in, a typed result out."""

import os
import threading
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from tolka.config.command_line import evaluate_config, train_config, translate_config, with_recipe
from tolka.config.plugins import load_plugins, loaded_plugins
from tolka.config.schemas import EvaluateConfig, TrainConfig, TranslateConfig, rebuild
from tolka.config.typed import as_overrides
from tolka.data.preparation import Prepared
from tolka.errors import ConfigError, DataError, LostProcessError, StoppedError, TolkaError
from tolka.evaluation.calibration import Calibrated, calibrated
from tolka.evaluation.perplexity import Perplexity, PerplexityMeter
from tolka.evaluation.tester import TestResult
from tolka.interchange.load import load_any_ensemble
from tolka.interchange.opening import open_translator
from tolka.metrics.scores import Comparison, MetricsConfig, Score, choose_bleu_tokenizer, compare, score
from tolka.metrics.tables import score_table
from tolka.model_directory.file_names import CARD
from tolka.model_directory.manifest import QUALITY
from tolka.model_directory.read import Folders, languages, load_model
from tolka.model_directory.write import rescore
from tolka.options.registry import plugins_of
from tolka.report.summary import closing_words
from tolka.run.data_check import check_first
from tolka.run.inputs import Inputs, open_corpus
from tolka.run.pipeline import Pipeline
from tolka.run.provenance import PROVENANCE, provenance, recorded, unlike
from tolka.system import interrupts, slurm
from tolka.system.device import Precision, choose_device, use_threads
from tolka.system.launch import launch, restarts
from tolka.system.memory import is_out_of_memory, keep_freed_memory, peak_memory_bytes
from tolka.system.processes import process_count, run_together
from tolka.system.progress import bar, say
from tolka.system.ranks import others_present, process_group
from tolka.text.lines import LineLimit, read_lines, user_path
from tolka.text.normalization import references_note, unlike_note
from tolka.text.pairs import Pair
from tolka.text.windows import full_windows
from tolka.training.lr_finder import RangeTest
from tolka.training.state import TrainState
from tolka.translation.attention_maps import AttentionConfig
from tolka.translation.batch_decoder import Tick
from tolka.translation.input_output import InputConfig, OutputConfig
from tolka.translation.results import Translation
from tolka.translation.torch_engine import TorchEngine
from tolka.translation.translator import Translator

_LATE_SECONDS = 5.0  # for the agent to end a process that a signal or the loss of another one has stopped


@dataclass(frozen=True, repr=False)
class TrainResult:
    """The result of a training. model: the directory to translate with, as in `Translator.load(result.model)`."""

    model: Path
    state: TrainState
    tests: list[TestResult]
    seconds: float

    def __repr__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """Return scores, time, memory and the next command, as text for a terminal."""
        decoding = ", ".join(f"{test.name} {test.sentences / test.seconds:.0f} sentences/s" for test in self.tests)
        mean = ", ".join(map(str, self.state.best_mean_of))
        which = f"mean of updates {mean}" if mean else f"update {self.state.best_update} of {self.state.update}"
        facts = {
            "best model": f"{self.model} ({which})",
            "training": f"{self.state.seconds / 60:.1f} min, {self.state.tokens:,} target tokens, validation included, "
            f"{self.state.safety_seconds:.1f} s waiting for saves",
            "whole run": f"{self.seconds / 60:.1f} min, peak memory {peak_memory_bytes() / 1e9:.2f} GB",
        }
        if decoding:
            facts["decoding"] = decoding
        return closing_words(self.model.parent, facts, {test.name: test.as_dict() for test in self.tests})


def train(config: TrainConfig | Sequence[str] = (), **settings: Any) -> TrainResult:
    """Train, keep the best model, and test it; the same settings resume the run, as with `mt-train`.

    config: settings as mt-train takes them, or a TrainConfig. settings: more of them as keywords, a group as a mapping.
    Logs to stderr and into the run's folder. TolkaError says in one line why it cannot.

        tolka.train(["model=lstm", "trainer.updates=300"])
        tolka.train(model="lstm", trainer={"updates": 300}, run={"name": "mine"})
    """
    slurm.translate()
    if not isinstance(config, TrainConfig):
        return train(train_config(with_recipe([*config, *as_overrides(settings)])))
    _check_complete(settings)
    if config.trainer.find_lr:
        raise ConfigError("trainer.find_lr=true asks for no training: call find_lr, or leave it out")
    options = config.trainer
    count = 1 if launch().size > 1 else process_count(options.devices, choose_device(options.device))
    if count > 1:
        plugins = dict.fromkeys([*loaded_plugins(), *plugins_of(config.as_dict())])
        named = [f"plugins=[{name}]" for name in plugins]
        result: TrainResult = run_together(count, options.restarts, _train_rank, config.as_dict(), named, count)
        return result
    started_at = time.perf_counter()
    keep_freed_memory()
    with process_group(), others_present():
        pipeline = Pipeline(config)
        try:
            pipeline.claim()
            if config.corpus.check:
                check_first(pipeline)
            state, tests = pipeline.complete()
        finally:
            pipeline.run.release()
    return TrainResult(pipeline.run.best, state, tests, time.perf_counter() - started_at)


def _train_rank(values: Mapping[str, Any], plugins: Sequence[str], count: int) -> TrainResult | Exception:
    """Train as one of `count` processes of this machine; return an error instead of raising it."""
    load_plugins(plugins)
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // count))
    if restarts():
        most = values["trainer"]["restarts"]
        say(f"note: a process was killed: all of them begin again from last/ ({restarts()} of {most} times)")
    try:
        return train(rebuild(values))
    except TolkaError as error:
        if isinstance(error, LostProcessError) and not error.reported:
            interrupts.tell(f"warning: {error}")  # the agent, which ends this process, does not know the details
        if isinstance(error, LostProcessError | StoppedError):
            # The agent may be waiting for this process to end, after a signal that training has answered.
            late = threading.Timer(_LATE_SECONDS, os._exit, [1])
            late.daemon = True
            late.start()
        return error
    except Exception as error:  # which restarts would not mend
        if isinstance(error, OSError):
            return error
        if is_out_of_memory(error):
            return MemoryError(str(error))
        traceback.print_exc()  # a bug: the agent would not show where it is
        return TolkaError(f"process {launch().rank} of {count} met {type(error).__name__}: {error}")


def unlike_before(run: Path, config: TrainConfig) -> list[str]:
    """Return the differences to a run's machine, versions and texts that may change its results."""
    calls = recorded(run)
    if not calls:
        return [f"nothing is known of it: {run / PROVENANCE} is missing or damaged"]
    use_threads(config.trainer.threads)
    return list(unlike(calls[0], provenance(open_corpus(config)[0], choose_device(config.trainer.device))))


def prepare(config: TrainConfig) -> Prepared:
    """Prepare the text as a training would, and read what it would validate and test on; logs to stderr.

    Processes with the same settings, on all machines that share run.prepared, do it together. TolkaError as `train`.
    """
    inputs = Inputs(config, say)
    inputs.read()
    return inputs.prepared


def find_lr(config: TrainConfig) -> RangeTest:
    """Run a learning-rate range test on a fresh model; return a recommended peak rate, and keep no weights.

    ConfigError in one of several processes, or when the run's folder holds a run that has begun; TolkaError when no
    rate makes the loss fall.
    """
    if launch().size > 1:
        raise ConfigError("trainer.find_lr=true trains in one process: start it without torchrun and srun")
    keep_freed_memory()
    pipeline = Pipeline(replace(config, trainer=replace(config.trainer, find_lr=True)))
    try:
        return pipeline.find_lr()
    finally:
        pipeline.run.release()


def translate(
    model: Folders,
    lines: str | Iterable[str],
    config: TranslateConfig | Sequence[str] = (),
    tick: Tick = lambda lines_done: None,
    **settings: Any,
) -> Iterator[Translation]:
    """Return one translation per line, in order; `tick` gets how many are done, after every decoding.window lines.

    model: a model or run directory, or several that translate together. lines: a str is one line. config, settings: as
    mt-translate takes them, those of search and decoding.

        [found] = tolka.translate("runs/sample", "I love you.", search="greedy")
        print(found.text)
    """
    if not isinstance(config, TranslateConfig):
        return translate(model, lines, translate_config([*config, *as_overrides(settings)]), tick)
    _check_complete(settings)
    for group, default in (("input", InputConfig()), ("output", OutputConfig()), ("attention", AttentionConfig())):
        if getattr(config, group) != default:
            raise ConfigError(
                f"settings of {group}.* are for mt-translate's files: tolka.translate has texts; leave them out"
            )
    windows = full_windows([lines] if isinstance(lines, str) else lines, config.decoding.window)
    return chain.from_iterable(translate_windows(model, windows, config, tick))


def _check_complete(settings: Mapping[str, Any]) -> None:
    """Raise TypeError for settings given beside a configuration."""
    if settings:
        raise TypeError("a configuration is complete: change it with dataclasses.replace, or give settings alone")


def translate_windows(
    model: Folders, windows: Iterable[list[str]], config: TranslateConfig, tick: Tick = lambda lines_done: None
) -> Iterator[list[Translation]]:
    """Translate groups of lines; each group is translated before the next one is read."""
    translator = open_translator(model, config.search, config.decoding)
    for window in windows:
        yield translator.translate(window, tick)


@dataclass(frozen=True, repr=False)
class EvaluateResult:
    """Scores of the translations; perplexity where a model was given. hypotheses: the translations.

    notes: what may make the scores other than they seem.
    """

    scores: list[Score]
    perplexity: Perplexity | None
    hypotheses: list[str]
    notes: list[str]

    def __repr__(self) -> str:
        """Return the table that mt-eval prints, and the notes."""
        perplexity = [f"\n{self.perplexity}"] if self.perplexity else []
        return "\n".join([score_table(self.scores), *perplexity, *(f"note: {note}" for note in self.notes)])


def evaluate(config: EvaluateConfig | Sequence[str] = (), model: Folders = (), **settings: Any) -> EvaluateResult:
    """Score a file of translations, or a model's translations of a file of sources, against the references.

    config, settings: as mt-eval takes them. model: as in `translate`; none to score a file.
    ConfigError when the files named do not add up to a job; DataError when their line counts differ.

        tolka.evaluate(hypothesis="mine.de", reference="test.de", language="de")
        tolka.evaluate(model="runs/mine", source="test.en", reference="test.de")
    """
    if not isinstance(config, EvaluateConfig):
        return evaluate(evaluate_config([*config, *as_overrides(settings)]), model)
    _check_complete(settings)
    files = config.files
    if not files.reference:
        raise ConfigError("reference=FILE is missing: scores need references")
    wanted, unwanted = ("source", "hypothesis") if model else ("hypothesis", "source")
    if not getattr(files, wanted) or getattr(files, unwanted):
        raise ConfigError(
            "give either MODEL source=FILE reference=FILE (to translate and score) "
            "or hypothesis=FILE reference=FILE (only to score)"
        )
    limit = config.decoding.line_limit
    references = _lines(files.reference, limit)
    given = _lines(getattr(files, wanted), limit)
    if len(given) != len(references):
        raise DataError(
            f"{getattr(files, wanted)} has {len(given)} lines but {files.reference} has {len(references)}; "
            "scores compare line by line"
        )
    perplexity, hypotheses, language, notes = None, given, files.language, list[str]()
    if model:
        saved = load_any_ensemble(model, config.decoding.weights)
        keep_freed_memory()
        language = language or languages(saved.config)[1]
        if config.decoding.backend == "torch":
            translator: Translator[Any] = Translator.of(saved, config.search, config.decoding)
        else:
            translator = open_translator(model, config.search, config.decoding)
        with bar("translating", len(given), " lines") as progress:
            hypotheses = translator(given, progress.update)
        pairs = [Pair(s.strip(), r.strip()) for s, r in zip(given, references, strict=True)]
        engine = translator.engine  # CTranslate2 has a copy of the weights, and leaves torch's where they were loaded
        device = engine.device if isinstance(engine, TorchEngine) else choose_device("cpu")
        precision = Precision(device, "fp32")
        meter = PerplexityMeter(pairs, saved.tokenizer, config.decoding.tokens, unicode=translator.unicode)
        perplexity = meter.measure(saved.model, precision)
        notes.append(
            references_note(references, translator.unicode, files.reference)
            or unlike_note({"the translations": hypotheses, files.reference: references})
        )
    else:
        notes.append(unlike_note({files.hypothesis: given, files.reference: references}))
    notes.append(_tokenizer_note(config.metrics, language))
    scores = score(hypotheses, references, config.metrics, language)
    return EvaluateResult(scores, perplexity, hypotheses, [note for note in notes if note])


def calibrate(model: Folders, config: EvaluateConfig | Sequence[str] = (), **settings: Any) -> Calibrated:
    """Fit the quality estimates of a model on a file of sources and one of references; write them into its directory.

    model: a model or run directory. config, settings: as mt-eval takes them. The result tells how good the estimates
    are. ConfigError for several models; DataError for fewer than 100 lines.
    """
    if not isinstance(config, EvaluateConfig):
        return calibrate(model, evaluate_config([*config, *as_overrides(settings)]))
    _check_complete(settings)
    files, limit = config.files, config.decoding.line_limit
    if not files.source or not files.reference or files.hypothesis:
        raise ConfigError("calibrate takes a model, source=FILE and reference=FILE: it translates the sources itself")
    if not isinstance(model, str | Path):
        if len(model) != 1:
            raise ConfigError(f"calibrate takes one model, not {len(model)}: estimates are of a single model")
        (model,) = model
    sources, references = _lines(files.source, limit), _lines(files.reference, limit)
    if len(sources) != len(references):
        raise DataError(f"{files.source} has {len(sources)} lines but {files.reference} has {len(references)}")
    saved = load_model(Path(model), or_int8=True)
    keep_freed_memory()
    translator = Translator.of(saved, config.search, config.decoding)
    with bar("translating", len(sources), " lines") as progress:
        found = calibrated(translator, sources, references, progress.update)
    scores = {**saved.scores, QUALITY: found.calibration.as_dict()}
    rescore(saved.folder, scores, (saved.folder / CARD).read_text(encoding="utf-8"))
    return found


def _tokenizer_note(metrics: MetricsConfig, language: str) -> str:
    """Return why BLEU does not use the language's own tokenizer; "" if it does, or if one was chosen."""
    return (metrics.tokenizer == "auto" and choose_bleu_tokenizer(language)[1]) or ""


def compare_files(a: Path, b: Path, config: EvaluateConfig) -> list[Comparison]:
    """Test by paired bootstrap whether translations `b` are better than `a`; raises as `evaluate` does."""
    if not config.files.reference:
        raise ConfigError("reference=FILE is missing: scores need references")
    limit = config.decoding.line_limit
    texts = {str(path): _lines(str(path), limit) for path in (a, b, config.files.reference)}
    for note in (unlike_note(texts), _tokenizer_note(config.metrics, config.files.language)):
        if note:
            say(f"note: {note}")
    one, other, references = (texts[str(path)] for path in (a, b, config.files.reference))
    return compare(one, other, references, config.metrics, config.files.language)


def _lines(path: str, limit: LineLimit) -> list[str]:
    lines = list(read_lines(user_path(path), limit=limit))
    if not lines:
        raise DataError(f"{path}: the file is empty")
    return lines
