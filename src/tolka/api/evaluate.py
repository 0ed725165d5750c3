"""Score translations, or a model by its translations, and measure its estimates and what noise costs it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from tolka.api.scored_texts import ScoredTexts, read_parallel, read_text, read_texts
from tolka.config.command_line import evaluate_config
from tolka.config.schemas import EvaluateConfig
from tolka.config.typed import Settings, as_config
from tolka.engines.torch_engine import TorchEngine
from tolka.errors import CheckpointError, ConfigError
from tolka.evaluation.calibration import CalibrationResult, calibrate_translator
from tolka.evaluation.input_notes import (
    COPIED,
    as_text,
    blank_note,
    equal_note,
    form_note,
    language_note,
    notes_on,
    without_repeats,
)
from tolka.evaluation.perplexity import Perplexity, PerplexityMeter
from tolka.evaluation.robustness import Robustness, measure
from tolka.formats.any_model import load_any
from tolka.metrics.metric import References, Values
from tolka.metrics.scores import Score, scores_and_lines
from tolka.metrics.tables import Form, score_table
from tolka.model_directory.card import ROBUSTNESS, facts_of, model_card, parity_section
from tolka.model_directory.file_names import CARD, SCORES
from tolka.model_directory.read import load_model
from tolka.model_directory.settings import Folders, find_model_folder, listed_folders, load_settings
from tolka.model_directory.verify import QUALITY, LengthRatio, read_json
from tolka.model_directory.write import rescore
from tolka.system.device import Precision, choose_device
from tolka.system.memory import keep_freed_memory
from tolka.system.progress import Say, bar, say
from tolka.text.direction import Direction
from tolka.text.pairs import Pair
from tolka.translation.flags import Flagged, count_flags, flag_table, text_flags
from tolka.translation.opening import open_model
from tolka.translation.results import blank_translations_note
from tolka.translation.translator import Translator


@dataclass(frozen=True, repr=False)
class EvaluateResult:
    """Scores of the translations, and the perplexity of the references if a model was given.

    notes: reasons why the scores may mislead. texts: the references, and the sources if they are known. of_lines:
    returns the score of each line, by the names of the metrics. ratio: of the lengths of the languages, if known.
    """

    scores: list[Score]
    perplexity: Perplexity | None
    hypotheses: list[str]
    notes: list[str]
    texts: References
    of_lines: Callable[[], dict[str, Values]] = field(repr=False)
    ratio: LengthRatio | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        """Return the table that mt-eval prints, and the notes."""
        return "\n".join([self.as_text(), *(f"note: {note}" for note in self.notes)])

    def as_text(self, form: Form = "text") -> str:
        """Return the table of the scores, and the perplexity."""
        parts = [score_table(self.scores, form)]
        parts += [str(self.perplexity)] if self.perplexity else []
        parts += [flag_table(self.flagged, form)] if self.flagged else []
        return "\n\n".join(parts)

    @cached_property
    def flagged(self) -> list[Flagged]:
        """What a person should check, of some of the lines; nothing without the sources."""
        if self.texts.sources is None:
            return []
        return count_flags(self.texts.sources, self.hypotheses, self.texts.lists[0], self.ratio)

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield of each line its number, its score under each metric, source, translation and references."""
        found = {name: values.tolist() for name, values in self.of_lines().items()}
        for row, text in enumerate(self.hypotheses):
            references = [each[row] for each in self.texts.lists]
            source: dict[str, Any] = {}
            if self.texts.sources is not None:
                shown = self.texts.sources[row]
                source = {"flags": text_flags(shown, text, self.ratio), "source": shown}
            scores = {name: values[row] for name, values in found.items()}
            yield {"line": row + 1, **scores, **source, "translation": text, "references": references}


def evaluate(
    config: EvaluateConfig | Settings = (), model: Folders = (), say: Say = say, **settings: Any
) -> EvaluateResult:
    """Score a file of translations, or a model's translations of a file of sources, against the references.

    config, settings: as mt-eval takes them. model: as in `translate`; none to score a file. say: receives notes.
    ConfigError unless the files are those of one of the two; DataError if their numbers of lines differ.

        tolka.evaluate(hypothesis="mine.de", reference="test.de", language="de")
        tolka.evaluate(model="runs/mine", source="test.en", reference="test.de")
    """
    config = as_config(EvaluateConfig, partial(evaluate_config, say=say), config, settings)
    files = config.files
    wanted = "source" if model else "hypothesis"
    if (model and files.hypothesis) or (files.reference and not getattr(files, wanted)):
        raise ConfigError(
            "give either MODEL source=FILE reference=FILE (to translate and score) "
            "or hypothesis=FILE reference=FILE (only to score)"
        )
    texts = read_texts(config, say, model)
    if model:
        return _evaluate_model(config, model, texts, say)
    hypotheses, note = as_text((files.hypothesis, read_text(files.hypothesis, config.decoding.line_limit)))
    on_texts = notes_on([hypotheses], texts.references, config.metrics, files.language, texts.source)
    notes = [note, *on_texts, blank_note([hypotheses, *texts.references])]
    if texts.source:
        notes.append(equal_note(hypotheses, texts.source, COPIED))
    lines, references = list(hypotheses[1]), texts.as_references
    scores, of_lines = scores_and_lines(lines, references, config.metrics, files.language)
    return EvaluateResult(scores, None, lines, without_repeats(notes), references, of_lines)


def _evaluate_model(config: EvaluateConfig, model: Folders, texts: ScoredTexts, say: Say) -> EvaluateResult:
    """Translate the sources, and score the translations and the references' perplexity."""
    sources, references = texts.needed_source("the model translates it"), texts.references[0]
    # Loaded with torch in any case: the perplexity is computed with it, whatever translates.
    saved = load_any(model, to_translate=True)
    keep_freed_memory()
    if config.decoding.backend == "torch":
        translator: Translator[Any] = Translator.of(saved, config.search, config.decoding, say)
    else:
        translator = open_model(model, config.search, config.decoding, say=say)
    source_language, language = translator.direction
    language = config.files.language or language
    with bar("translating", len(sources[1]), " lines") as progress:
        hypotheses = translator(sources[1], tick=progress.update)
    pairs = [Pair(*both) for both in zip(sources[1], references[1], strict=True)]
    # CTranslate2 has a copy of the weights, and leaves torch's where they were loaded: on the CPU.
    engine = translator.engine
    device = engine.device if isinstance(engine, TorchEngine) else choose_device("cpu")
    characters = translator.characters
    tags, tokens = saved.tokenizer.tags(translator.direction), config.decoding.batch_tokens()
    meter = PerplexityMeter(pairs, saved.tokenizer, tokens, characters=characters, language=language, tags=tags)
    # In fp32 whatever decoding.precision is, so that perplexities can be compared.
    perplexity = meter.measure(saved.model.to(device), Precision(device, "fp32"))
    translations = "the translations", hypotheses
    # Of sources that are not blank to the model.
    written = [text for source, text in zip(sources[1], hypotheses, strict=True) if characters.source(source)]
    notes = [
        blank_note([sources, *texts.references]),
        language_note(sources, source_language),
        equal_note(translations, sources, COPIED),
        blank_translations_note(sum(not text.strip() for text in written), len(written)),
        *notes_on([translations], texts.references, config.metrics, language, sources),
        form_note(references, characters),
        f"{perplexity.skipped} pairs are not in the PPL: a blank side, or too long" if perplexity.skipped else "",
    ]
    scores, of_lines = scores_and_lines(hypotheses, texts.as_references, config.metrics, language)
    return EvaluateResult(
        scores, perplexity, hypotheses, without_repeats(notes), texts.as_references, of_lines, translator.length_ratio
    )


def calibrate(
    model: Folders, config: EvaluateConfig | Settings = (), say: Say = say, **settings: Any
) -> CalibrationResult:
    """Fit the quality estimates of a model on a file of sources and one of references; write them into its directory.

    model: a model or run directory. config, settings: as mt-eval takes them. say: receives notes.
    ConfigError for several models; DataError for fewer than 100 lines.
    """
    config = as_config(EvaluateConfig, partial(evaluate_config, say=say), config, settings)
    sources, references = read_parallel(config, say, "calibrate", model)
    one, *others = map(Path, listed_folders(model))
    if others:
        raise ConfigError(f"calibrate takes one model, not {1 + len(others)}: estimates are of a single model")
    saved = load_model(one, or_int8=True)
    keep_freed_memory()
    translator = Translator.of(saved, config.search, config.decoding, say)
    with bar("translating", len(sources), " lines") as progress:
        result = calibrate_translator(translator, sources, references, config.search, progress.update)
    calibration, of_several = result.calibration, bool(saved.tokenizer.languages)
    values = calibration.beside(saved.scores, translator.direction) if of_several else calibration.as_dict()
    scores = {**saved.scores, QUALITY: values}
    rescore(saved.folder, scores, (saved.folder / CARD).read_text(encoding="utf-8"))
    if calibration.with_agreement is None:
        say("note: with several translations of each line (search.n_best=5), estimates also use how alike they are")
    return result


def robustness(model: Folders, config: EvaluateConfig | Settings = (), say: Say = say, **settings: Any) -> Robustness:
    """Measure what capitals, typing errors, tags and other changes of a test set cost a model in chrF2.

    model, config, settings: as in `evaluate`, with source and one reference; at most 500 lines are translated, evenly
    spaced. say: receives notes. The costs go into the card and scores.json of a model directory.
    """
    config = as_config(EvaluateConfig, partial(evaluate_config, say=say), config, settings)
    sources, references = read_parallel(config, say, "robustness", model)
    translator: Translator[Any] = open_model(model, config.search, config.decoding, say=say)
    folder = _folder_with_card(model, say)
    direction = Direction(translator.direction.source, config.files.language or translator.direction.target)
    pairs = [Pair(*both) for both in zip(sources, references, strict=True)]
    with bar("translating", None, " lines") as progress:
        result = measure(partial(translator, tick=progress.update), pairs, direction)
    result = replace(result, text=Path(config.files.source).name)
    if folder:
        settings_of_model, scores = load_settings(folder), read_json(folder / SCORES)
        # Without the examples: a card may be published, and the text need not be.
        found = {**scores, ROBUSTNESS: result.as_dict(with_examples=False)}
        parity = parity_section(folder)
        rescore(folder, found, model_card(settings_of_model, facts_of(folder, scores), found, parity=parity))
    return result


def _folder_with_card(model: Folders, say: Say) -> Path | None:
    """Return the model directory with a card to write to; None with a note, or for several models, which have none."""
    one, *others = map(Path, listed_folders(model))
    if others:
        return None
    try:
        folder = find_model_folder(one)
        load_settings(folder)
        return folder
    except CheckpointError:
        say(f"note: {one} is no model directory of tolka, so that no card has these figures")
        return None
