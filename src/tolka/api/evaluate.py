"""Score translations, or a model by its translations: a configuration in, a typed result out."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tolka.config.command_line import evaluate_config
from tolka.config.schemas import EvaluateConfig
from tolka.config.typed import Settings, as_config
from tolka.engines.torch_engine import TorchEngine
from tolka.errors import ConfigError, DataError
from tolka.evaluation.calibration import CalibrationResult, calibrate_translator
from tolka.evaluation.input_notes import (
    NamedText,
    as_text,
    blank_note,
    copied_note,
    count_error,
    language_note,
    notes_on,
)
from tolka.evaluation.perplexity import Perplexity, PerplexityMeter
from tolka.formats.any_model import load_any
from tolka.metrics.scores import Score, score
from tolka.metrics.significance import Comparison, compare
from tolka.metrics.tables import score_table
from tolka.model_directory.file_names import CARD
from tolka.model_directory.read import Folders, load_model
from tolka.model_directory.verify import QUALITY
from tolka.model_directory.write import rescore
from tolka.system.device import Precision, choose_device
from tolka.system.memory import keep_freed_memory
from tolka.system.number_format import count_text
from tolka.system.progress import bar, say
from tolka.text.lines import LineLimit, read_lines, refuse_pipe, user_path
from tolka.text.normalization import mixed_forms_note, references_note
from tolka.text.pairs import Pair
from tolka.translation.opening import open_model
from tolka.translation.results import blank_translations_note
from tolka.translation.translator import Translator


@dataclass(frozen=True, repr=False)
class EvaluateResult:
    """Scores of the translations, and the perplexity of the references if a model was given.

    notes: reasons why the scores may mislead.
    """

    scores: list[Score]
    perplexity: Perplexity | None
    hypotheses: list[str]
    notes: list[str]

    def __repr__(self) -> str:
        """Return the table that mt-eval prints, and the notes."""
        perplexity = [f"\n{self.perplexity}"] if self.perplexity else []
        return "\n".join([score_table(self.scores), *perplexity, *(f"note: {note}" for note in self.notes)])


def evaluate(config: EvaluateConfig | Settings = (), model: Folders = (), **settings: Any) -> EvaluateResult:
    """Score a file of translations, or a model's translations of a file of sources, against the references.

    config, settings: as mt-eval takes them. model: as in `translate`; none to score a file. ConfigError unless the
    files are those of one of the two; DataError if their numbers of lines differ.

        tolka.evaluate(hypothesis="mine.de", reference="test.de", language="de")
        tolka.evaluate(model="runs/mine", source="test.en", reference="test.de")
    """
    config = as_config(EvaluateConfig, evaluate_config, config, settings)
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
    references = files.reference, _lines(files.reference, limit)
    texts = getattr(files, wanted), _lines(getattr(files, wanted), limit)
    if model:
        return _evaluate_model(config, model, texts, references)
    hypotheses, note = as_text(texts)
    both = [hypotheses, references]
    on_texts = notes_on([hypotheses], references, config.metrics, files.language)
    notes = [note, *on_texts, blank_note(both), mixed_forms_note(dict(both))]
    scores = score(hypotheses[1], references[1], config.metrics, files.language)
    return EvaluateResult(scores, None, list(hypotheses[1]), [note for note in notes if note])


def _evaluate_model(
    config: EvaluateConfig, model: Folders, sources: NamedText, references: NamedText
) -> EvaluateResult:
    """Translate the sources, and score the translations and the references' perplexity."""
    if len(sources[1]) != len(references[1]):
        raise count_error(sources, references)
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
    meter = PerplexityMeter(
        pairs,
        saved.tokenizer,
        config.decoding.batch_tokens(),
        characters=characters,
        language=language,
        say=say,
        tags=saved.tokenizer.tags(translator.direction),
    )
    # In fp32 whatever decoding.precision is, so that perplexities can be compared.
    perplexity = meter.measure(saved.model, Precision(device, "fp32"))
    translations = "the translations", hypotheses
    # Of sources that are not blank to the model.
    written = [text for source, text in zip(sources[1], hypotheses, strict=True) if characters.source(source)]
    notes = [
        blank_note([sources, references]),
        language_note(sources, source_language),
        copied_note(translations, sources),
        blank_translations_note(sum(not text.strip() for text in written), len(written)),
        *notes_on([translations], references, config.metrics, language),
        references_note(references[1], characters.unicode, references[0])
        or mixed_forms_note(dict([translations, references])),
        f"{perplexity.skipped} pairs are not in the PPL: a blank side, or too long" if perplexity.skipped else "",
    ]
    scores = score(hypotheses, references[1], config.metrics, language)
    return EvaluateResult(scores, perplexity, hypotheses, [note for note in notes if note])


def calibrate(model: Folders, config: EvaluateConfig | Settings = (), **settings: Any) -> CalibrationResult:
    """Fit the quality estimates of a model on a file of sources and one of references; write them into its directory.

    model: a model or run directory. config, settings: as mt-eval takes them. ConfigError for several models; DataError
    for fewer than 100 lines.
    """
    config = as_config(EvaluateConfig, evaluate_config, config, settings)
    files, limit = config.files, config.decoding.line_limit
    if not files.source or not files.reference or files.hypothesis:
        raise ConfigError("calibrate takes a model, source=FILE and reference=FILE: it translates the sources itself")
    if not isinstance(model, str | Path):
        if len(model) != 1:
            raise ConfigError(f"calibrate takes one model, not {len(model)}: estimates are of a single model")
        (model,) = model
    sources, references = _lines(files.source, limit), _lines(files.reference, limit)
    if len(sources) != len(references):
        raise DataError(
            f"{files.source} has {count_text(len(sources), 'line')} but {files.reference} has {len(references)}"
        )
    saved = load_model(Path(model), or_int8=True)
    keep_freed_memory()
    translator = Translator.of(saved, config.search, config.decoding, say)
    with bar("translating", len(sources), " lines") as progress:
        result = calibrate_translator(translator, sources, references, config.search, progress.update)
    calibration, of_several = result.calibration, bool(saved.tokenizer.languages)
    values = calibration.beside(saved.scores, translator.direction) if of_several else calibration.as_dict()
    scores = {**saved.scores, QUALITY: values}
    rescore(saved.folder, scores, (saved.folder / CARD).read_text(encoding="utf-8"))
    return result


def compare_files(a: Path, b: Path, config: EvaluateConfig) -> list[Comparison]:
    """Test by metrics.significance whether translations `b` are better than `a`; raises as `evaluate` does."""
    if not config.files.reference:
        raise ConfigError("reference=FILE is missing: scores need references")
    limit = config.decoding.line_limit
    references = config.files.reference, _lines(config.files.reference, limit)
    (one, note), (other, other_note) = (as_text((str(path), _lines(str(path), limit))) for path in (a, b))
    language = config.files.language
    texts = [one, other, references]
    notes = [note, other_note, *notes_on([one, other], references, config.metrics, language)]
    for each in (*notes, blank_note(texts), mixed_forms_note(dict(texts))):
        if each:
            say(f"note: {each}")
    return compare(one[1], other[1], references[1], config.metrics, language)


def _lines(path: str, limit: LineLimit) -> list[str]:
    """Return the lines of a file; DataError if it cannot be read or is empty."""
    file = user_path(path)
    # A pipe that nobody writes to would hang; a shell makes /dev/fd/63 of <(...), to which a process writes.
    if file.parts[:2] != ("/", "dev"):
        refuse_pipe(file)
    lines = list(read_lines(file, limit=limit))
    if not lines:
        raise DataError(f"{path}: the file is empty")
    return lines
