"""Load a translator, translate texts: settings in, translations out. Needs torch only if torch computes."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from tolka.config.translate_command import translate_config
from tolka.config.typed import Settings, as_config
from tolka.errors import ConfigError
from tolka.jobs import translation as jobs
from tolka.jobs.job import Job
from tolka.jobs.options import InputConfig, OutputConfig, TranslateConfig
from tolka.model_directory.settings import Folders, listed_folders
from tolka.system.progress import Say, say
from tolka.text.lines import user_path
from tolka.translation.attention_maps import AttentionMap
from tolka.translation.batch_decoder import Tick
from tolka.translation.opening import open_model
from tolka.translation.results import Translation
from tolka.translation.translator import Translator


def load(model: Folders, config: TranslateConfig | Settings = (), say: Say = say, **settings: Any) -> Translator[Any]:
    """Load a translator: a model or run directory, several that translate together, or another program's model.

    model: as mt-translate takes it: also a folder of Hugging Face's Marian, `hub:OWNER/NAME`, or a folder exported for
    CTranslate2. config, settings: those of search and decoding, as mt-translate takes them. say: receives notes.
    TolkaError, in one line, if it cannot be loaded.

        translator = tolka.load("runs/mine", search={"n_best": 5}, decoding={"threads": 4})
        translator(["I love you.", "A lion sleeps."])    # a list of two translations
    """
    config = _complete(config, settings, say)
    return open_model(model, config.search, config.decoding, say=say)


def translate(
    model: Folders,
    lines: str | Iterable[str],
    config: TranslateConfig | Settings = (),
    tick: Tick = lambda lines_done: None,
    say: Say = say,
    **settings: Any,
) -> Iterator[Translation]:
    """Return an iterator of the translations, one per line, in order.

    model, config, settings: as in `load`. lines: a str is one line; decoding.window of them are read at once. tick:
    receives each batch's share of the lines. say: receives notes.

        [found] = tolka.translate("runs/sample", "I love you.", search="greedy")
        print(found.text)
    """
    config = _complete(config, settings, say)
    if not isinstance(lines, Iterable):
        raise TypeError(f"lines must be a str or several of them, as in ['A sentence.'], not {type(lines).__name__}")

    def translations() -> Iterator[Translation]:  # the model is loaded when the first one is asked for
        yield from open_model(model, config.search, config.decoding, say=say).stream(lines, tick=tick)

    return translations()


def attention(model: Folders | Translator[Any], source: str, target: str = "", **settings: Any) -> list[AttentionMap]:
    """Return the attention maps of a text and its translation, one for each segment.

    model, settings: as in `load`, or a translator. target: a translation; by default the model's own. Each map has the
    subwords of target (`rows`) and source (`columns`) and the `weights` between them: the last decoder layer's, mean
    over its heads. Gradients of a model without cross-attention; ConfigError for an ensemble.

        [found] = tolka.attention("runs/sample", "I love you.")
        print(found.columns, found.weights[0])    # what the first subword of the translation attends to
    """
    translator = model if isinstance(model, Translator) else load(model, **settings)
    if target:
        # Scoring encodes the target into the segments whose attention is read.
        translation = translator.score([(source, target)])[0].translation
    else:
        (translation,) = translator.translate(source)
    return translator.attention([translation])[0]


def translate_files(
    model: Folders,
    files: Sequence[str | Path],
    config: TranslateConfig | Settings = (),
    output: str | Path | None = None,
    attention: str | Path | None = None,
    report: str | Path | None = None,
    score: bool = False,
    stdin: TextIO | None = None,
    stdout: TextIO | None = None,
    say: Say = say,
    **settings: Any,
) -> None:
    """Translate files as mt-translate does, with all of its settings.

    model: as in `load`. config, settings: as mt-translate takes them. files: none = `stdin`. output: a file, written
    whole or not at all, of several documents a folder; None = `stdout`. attention: a folder for attention maps. report:
    a file for what became of documents, as JSON. score: whether the second of two files has translations of the first,
    to be scored. say: receives notes. TolkaError, in one line, if it fails.

        tolka.translate_files("runs/mine", ["book.en"], output="book.de", resume=True)
        tolka.translate_files("runs/mine", ["manual.docx"], output="handbuch.docx", report="report.json")
    """
    config = as_config(TranslateConfig, partial(translate_config, say=say), config, settings)
    models, inputs = [Path(folder) for folder in listed_folders(model)], [user_path(str(file)) for file in files]
    job = Job(models, inputs, _path(output), _path(attention), _path(report), score, stdin, stdout)
    jobs.translate_files(job, config, say)


def _path(name: str | Path | None) -> Path | None:
    return None if name is None else user_path(str(name))


def _complete(config: TranslateConfig | Settings, settings: dict[str, Any], say: Say) -> TranslateConfig:
    """Return the configuration; ConfigError for settings that only files have."""
    config = as_config(TranslateConfig, partial(translate_config, say=say), config, settings)
    for group, default in (("input", InputConfig()), ("output", OutputConfig())):
        if getattr(config, group) != default:
            raise ConfigError(
                f"settings of {group}.* are for the files of mt-translate, and here are none: leave them out"
            )
    return config
