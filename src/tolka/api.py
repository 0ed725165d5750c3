"""The three jobs as functions: a configuration in, a typed result out."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from unicodedata import is_normalized

from tolka.checkpoint import Folders, languages, load_ensemble, unicode_form
from tolka.checkup import check_first
from tolka.config import EvaluateConfig, TrainConfig, TranslateConfig
from tolka.errors import ConfigError, DataError
from tolka.evaluation.attention_maps import AttentionMap, AttentionReader
from tolka.evaluation.perplexity import Perplexity, PerplexityMeter
from tolka.evaluation.tester import TestResult
from tolka.pipeline import Pipeline
from tolka.progress import bar
from tolka.provenance import PROVENANCE, provenance, recorded, unlike
from tolka.report.summary import closing_words
from tolka.runtime import Precision, choose_device, keep_freed_memory, peak_memory_bytes, use_threads
from tolka.scoring import Comparison, Score, choose_bleu_tokenizer, compare, score
from tolka.text.cleaning_steps import spelt
from tolka.text.corpus import Pair
from tolka.text.lines import read_lines, user_path
from tolka.training.lr_finder import RangeTest
from tolka.training.state import TrainState
from tolka.translator import Tick, Translation, Translator


@dataclass(frozen=True)
class TrainResult:
    """A finished training. model: the directory to translate with."""

    model: Path
    state: TrainState
    tests: list[TestResult]
    seconds: float

    def summary(self) -> str:
        """For a terminal: scores, time, memory, and the command to type next."""
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


def train(config: TrainConfig) -> TrainResult:
    """Train, keep the best model, test it. Logs to stderr and into the run's folder; TolkaError when it cannot.

    An existing run of this configuration goes on.
    """
    if config.trainer.find_lr:
        raise ConfigError("trainer.find_lr=true asks for no training: call find_lr, or leave it out")
    started_at = time.perf_counter()
    keep_freed_memory()
    pipeline = Pipeline(config)
    try:
        pipeline.claim()
        if config.corpus.check:
            check_first(pipeline)
        state = pipeline.train()
        tests = pipeline.test()
        pipeline.report()
    finally:
        pipeline.run.release()
    return TrainResult(pipeline.run.best, state, tests, time.perf_counter() - started_at)


def unlike_before(run: Path, config: TrainConfig) -> list[str]:
    """What differs here from where a run was made, and may make its results differ: versions, machine, texts."""
    calls = recorded(run)
    if not calls:
        return [f"nothing is known of it: {run / PROVENANCE} is missing or damaged"]
    use_threads(config.trainer.threads)
    return list(unlike(calls[0], provenance(config.corpus.open(), choose_device(config.trainer.device))))


def find_lr(config: TrainConfig) -> RangeTest:
    """Try learning rates on this run's fresh model and its text; recommends a peak rate and keeps no weights.

    ConfigError when the run's folder holds a run that has begun; TolkaError when no rate makes the loss fall.
    """
    keep_freed_memory()
    pipeline = Pipeline(replace(config, trainer=replace(config.trainer, find_lr=True)))
    try:
        return pipeline.find_lr()
    finally:
        pipeline.run.release()


def translate(
    model: Folders, lines: Iterable[str], config: TranslateConfig, tick: Tick = lambda lines_done: None
) -> Iterator[Translation]:
    """One translation for each line, in order, a window of lines at a time; `tick` is told how many lines are done.

    model: a model or run directory, or several that translate together.
    """
    for _, window in _translated(model, lines, config, tick):
        yield from window


def translate_and_look(
    model: Folders, lines: Iterable[str], config: TranslateConfig, tick: Tick = lambda lines_done: None
) -> Iterator[tuple[Translation, list[AttentionMap]]]:
    """As `translate`, with the maps that config.attention asks for, read back from the finished translations.

    ConfigError when the model has no such map.
    """
    for translator, window in _translated(model, lines, config, tick):
        yield from zip(window, AttentionReader(translator, config.attention)(window), strict=True)


def _translated(
    model: Folders, lines: Iterable[str], config: TranslateConfig, tick: Tick
) -> Iterator[tuple[Translator, list[Translation]]]:
    """A window of lines at a time."""
    keep_freed_memory()
    translator = Translator.of(load_ensemble(model), config.search, config.decoding)
    remaining = iter(lines)
    while window := list(islice(remaining, config.decoding.window)):
        yield translator, translator.translate(window, tick)


@dataclass(frozen=True)
class EvaluateResult:
    """Scores of the translations; perplexity and the translations themselves where a model was given.

    notes: what may make the scores other than they seem.
    """

    scores: list[Score]
    perplexity: Perplexity | None
    hypotheses: list[str]
    notes: list[str]


def evaluate(config: EvaluateConfig, model: Folders = ()) -> EvaluateResult:
    """Score a file of translations, or what a model makes of a file of sources, against the references.

    model: as in `translate`; none to score a file.
    ConfigError when the files named do not add up to a job; DataError when their line counts differ.
    """
    files = config.files
    if not files.reference:
        raise ConfigError("reference=FILE is missing: scores need references")
    wanted, unwanted = ("source", "hypothesis") if model else ("hypothesis", "source")
    if not getattr(files, wanted) or getattr(files, unwanted):
        raise ConfigError(
            "give either MODEL source=FILE reference=FILE (to translate and score) "
            "or hypothesis=FILE reference=FILE (only to score)"
        )
    references = _lines(files.reference)
    given = _lines(getattr(files, wanted))
    if len(given) != len(references):
        raise DataError(
            f"{getattr(files, wanted)} has {len(given)} lines but {files.reference} has {len(references)}; "
            "scores compare line by line"
        )
    perplexity, hypotheses, language, notes = None, given, files.language, list[str]()
    if model:
        saved = load_ensemble(model)
        keep_freed_memory()
        language = language or languages(saved.config)[1]
        translator = Translator.of(saved, config.search, config.decoding)
        with bar("translating", len(given), " lines") as progress:
            hypotheses = translator(given, progress.update)
        form = unicode_form(saved.config)
        references = [spelt(reference, form) for reference in references]
        pairs = [Pair(spelt(s.strip(), form), r.strip()) for s, r in zip(given, references, strict=True)]
        precision = Precision(choose_device(config.decoding.device, "decoding.device"), "fp32")
        perplexity = PerplexityMeter(pairs, saved.tokenizer, config.decoding.tokens).measure(saved.model, precision)
    elif unlike_spelt := _unlike_spelt({files.hypothesis: given, files.reference: references}):
        notes.append(unlike_spelt)
    if config.metrics.tokenizer == "auto" and (note := choose_bleu_tokenizer(language)[1]):
        notes.append(note)
    return EvaluateResult(score(hypotheses, references, config.metrics, language), perplexity, hypotheses, notes)


def _unlike_spelt(files: Mapping[str, Sequence[str]]) -> str:
    """A word on it where one file has accents apart from their letters (or Hangul in its parts), and the other has not:
    the same text does not look the same to a metric.
    """
    apart = {name: sum(not is_normalized("NFC", line) for line in lines) for name, lines in files.items()}
    if not any(apart.values()) or len(set(apart.values())) == 1:
        return ""
    counts = ", ".join(f"{name}: {count} lines" for name, count in apart.items())
    return f"letters and accents stand apart (no Unicode NFC) in {counts}; the same text then counts as another one"


def compare_files(a: Path, b: Path, config: EvaluateConfig) -> list[Comparison]:
    """Whether translations `b` are better than `a`, by paired bootstrap; errors as `evaluate`."""
    if not config.files.reference:
        raise ConfigError("reference=FILE is missing: scores need references")
    hypotheses = _lines(str(a)), _lines(str(b))
    return compare(*hypotheses, _lines(config.files.reference), config.metrics, config.files.language)


def _lines(path: str) -> list[str]:
    lines = list(read_lines(user_path(path)))
    if not lines:
        raise DataError(f"{path}: the file is empty")
    return lines
